package online

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// A published probability that is no number would stay in the scores, whose state no start
// could read.
func TestPublishedProbabilitiesAreChecked(t *testing.T) {
	cfg := testConfig(2)
	for _, p := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.5} {
		l := newTestLearner(t, cfg)
		feed(l, rand.New(rand.NewPCG(1, 1)), 30)
		before := l.Digest()
		for _, ev := range []Event{
			{Kind: Observe, X: []float64{1, 2}, Label: "class 1", Probs: []float64{p, 1}},
			{Kind: Correct, X: []float64{1, 2}, Label: "class 1", Name: "class 0", Probs: []float64{p, 1}},
		} {
			if out := l.Add(&ev); !errors.Is(out.Refused, ErrProbs) || l.Digest() != before {
				t.Errorf("kind %d with probability %g: refused with %v, want ErrProbs and the state of before", ev.Kind, p, out.Refused)
			}
		}
	}
}

// The samples of a label that is not a class yet are checked when a state is read: they are
// learnt later without another look.
func TestRestoreChecksHeldSamples(t *testing.T) {
	cfg := testConfig(2)
	cfg.Classes.Confirm = 3
	l := newTestLearner(t, cfg)
	feed(l, rand.New(rand.NewPCG(1, 1)), 30)
	const weight, feature, prob = 12.345, 7.654, 0.4321
	l.Add(&Event{Kind: Observe, X: []float64{feature, 1}, Label: "new", Weight: weight, Probs: []float64{prob, 1 - prob}})
	state, _ := l.AppendBinary(nil)
	bits := func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
	for _, c := range []struct {
		name     string
		from, to float64
	}{
		{"NaN weight", weight, math.NaN()}, {"negative weight", weight, -1}, {"large weight", weight, 2 * MaxWeight},
		{"infinite feature", feature, math.Inf(-1)}, {"NaN probability", prob, math.NaN()}, {"infinite probability", prob, math.Inf(1)},
	} {
		damaged := bytes.Replace(state, bits(c.from), bits(c.to), 1)
		if bytes.Equal(damaged, state) {
			t.Fatalf("%s: the state does not hold %g", c.name, c.from)
		}
		if _, err := Restore(cfg, damaged); !errors.Is(err, ErrState) {
			t.Errorf("%s: error %v, want ErrState", c.name, err)
		}
	}
	if _, err := Restore(cfg, state); err != nil {
		t.Error(err)
	}
}
