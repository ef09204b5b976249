package offline

import (
	"math"
	"slices"
	"testing"

	"edge/lab"
	"edge/online"
	"edge/online/train"
)

// The method is the training of package train on the same rows, raw ones: both standardise.
func TestTrainIsTheTraining(t *testing.T) {
	watched := 0
	p := problem(3, 5)
	p.Watch = func(lab.Classifier) { watched++ }
	d := p.Data
	c, err := Train(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if watched != p.Updates {
		t.Errorf("watched %d times, want %d", watched, p.Updates)
	}
	got, err := c.Predict(d.X)
	if err != nil {
		t.Fatal(err)
	}

	cfg, how := online.DefaultConfig(), Default()
	cfg.Features, cfg.Inducing, cfg.Kernel, cfg.LabelNoise.Start, how.Passes = names(d.D), 6, online.PerClass, 0, 5
	want, err := train.New(cfg, how, names(3), samples{d})
	if err != nil {
		t.Fatal(err)
	}
	for !want.Done() {
		if _, err := want.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := want.Predict(samples{d}, func(i int, probs []float64) {
		if !slices.Equal(probs, got.RawRowView(i)) {
			t.Errorf("row %d: %v, want %v", i, got.RawRowView(i), probs)
		}
		if math.IsNaN(probs[0]) {
			t.Errorf("row %d is not finite", i)
		}
	}); err != nil {
		t.Fatal(err)
	}
	p.Hold = func([]float64) {}
	if _, err := Train(t.Context(), p); err == nil {
		t.Error("parameters were to be kept, and no error")
	}
}
