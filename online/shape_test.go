package online

import (
	"strings"
	"testing"
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
