package own

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/internal/dataset"
	"edge/lab"
	"edge/online"
	"edge/online/train"
)

// The method is the training of package train on the same rows, raw ones: both standardise.
func TestTrainIsTheTraining(t *testing.T) {
	w, d := dataset.NewWaveform(3), &lab.Data{D: dataset.WaveformFeatures, C: 3}
	for row := (dataset.Row{}); d.N() < 60; {
		w.Next(&row)
		d.X, d.Y = append(d.X, row.X...), append(d.Y, int(row.Label[0]-'0'))
	}
	start := lab.Start(d, 6, 3, rand.New(rand.NewPCG(1, 1)))
	watched := 0
	p := &lab.Problem{Data: d, Start: start, Updates: 5, Watch: func(lab.Classifier) { watched++ }}
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
	cfg.Features, cfg.Inducing, cfg.Kernel, cfg.LabelNoise.Start, how.Passes = w.Features(), 6, online.PerClass, 0, 5
	want, err := train.New(cfg, how, w.Classes(), samples{d})
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

func TestEnsemblePredicts(t *testing.T) {
	w, d := dataset.NewWaveform(3), &lab.Data{D: dataset.WaveformFeatures, C: 3}
	for row := (dataset.Row{}); d.N() < 60; {
		w.Next(&row)
		d.X, d.Y = append(d.X, row.X...), append(d.Y, int(row.Label[0]-'0'))
	}
	p := &lab.Problem{Data: d, Start: lab.Start(d, 6, 3, rand.New(rand.NewPCG(1, 1))), Updates: 20}
	c, err := TrainEnsemble(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Predict(d.X)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i, y := range d.Y {
		probs := got.RawRowView(i)
		if sum := probs[0] + probs[1] + probs[2]; math.Abs(sum-1) > 1e-9 {
			t.Errorf("row %d: probabilities %v", i, probs)
		}
		if probs[y] == slices.Max(probs) {
			right++
		}
	}
	if right < 50 {
		t.Errorf("%d of 60 rows learnt are right", right)
	}
}
