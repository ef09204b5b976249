package online

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"edge/online/wire"
)

// A shape can be read back, with the meaning of the features.
func TestShapeOfSignals(t *testing.T) {
	for _, kernel := range []Kernel{Shared, PerClass} {
		cfg := testConfig(2)
		cfg.Features, cfg.Kernel = []string{"a signals=1", "b"}, kernel
		plain := cfg.Shape()
		cfg.Signals = "0123456789abcdef"
		back, err := ConfigOfShape(cfg.Shape())
		if err != nil || back.Signals != cfg.Signals || back.Kernel != kernel || back.Features[0] != cfg.Features[0] {
			t.Errorf("%s gave %+v, %v", cfg.Shape(), back, err)
		}
		if back, err := ConfigOfShape(plain); err != nil || back.Signals != "" {
			t.Errorf("%s gave %+v, %v", plain, back, err)
		}
		if got := ShapeChange(plain, cfg.Shape()); !strings.Contains(got, "window") {
			t.Errorf("change: %s", got)
		}
		if got := ShapeChange(plain, "another"); !strings.Contains(got, "another") {
			t.Errorf("change: %s", got)
		}
	}
}

// A shape can be read back, whatever characters the names of features have, and a state be restored
// by it, also one in which an earlier program wrote the shape without escapes.
func TestShapeOfNamesWithCommas(t *testing.T) {
	cfg := testConfig(3)
	cfg.Features = []string{`a, b`, `c\`, `\,d`}
	l := newTestLearner(t, cfg)
	feed(l, rand.New(rand.NewPCG(3, 3)), 40)
	state := stateOf(l)
	back, err := ConfigOfShape(cfg.Shape())
	if err != nil || !slices.Equal(back.Features, cfg.Features) {
		t.Fatalf("%s gave the features %q, %v", cfg.Shape(), back.Features, err)
	}
	if _, err := Restore(back, state); err != nil {
		t.Error(err)
	}
	var now, former wire.Encoder
	now.String(cfg.Shape())
	former.String(`features=a, b,c\,\,d` + cfg.Shape()[strings.Index(cfg.Shape(), inducingShape):])
	if !bytes.Contains(state, now.Buf) {
		t.Fatal("the state does not hold its shape")
	}
	if _, err := Restore(cfg, bytes.Replace(state, now.Buf, former.Buf, 1)); err != nil {
		t.Errorf("a state of an earlier program: %v", err)
	}
	cfg.Features = []string{`a`, ` b,c\`, `\,d`}
	if _, err := Restore(cfg, state); err == nil {
		t.Error("a state is restored for features of other names")
	}
}
