package online

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// Predict gives the answer of the posterior with its uncertainty.
func TestPredict(t *testing.T) {
	cfg := testConfig(3)
	cfg.Abstain.ConfidenceBelow = 0.999
	l := newTestLearner(t, cfg)
	if p, err := l.Predict([]float64{1, 2, 3}); err != nil || p.Class != "" || len(p.Probs) != 0 || !p.Abstain || p.Set == nil {
		t.Errorf("before the first class: %+v, %v", p, err)
	}
	feed(l, rand.New(rand.NewPCG(1, 1)), 300)
	x := []float64{13, 10, 10}
	p, err := l.Predict(x)
	if err != nil {
		t.Fatal(err)
	}
	want, novelty, _ := l.Posterior().PredictTo(nil, x, model.NewWorkspace())
	top := slices.Index(want, slices.Max(want))
	if !slices.Equal(p.Probs, want) || p.Novelty != novelty || p.Class != p.Classes[top] || !p.Abstain || len(p.Set) == 0 || p.Set[0] != p.Class {
		t.Errorf("%+v, want probabilities %v", p, want)
	}
	if _, err := l.Predict([]float64{1}); !errors.Is(err, model.ErrDimension) {
		t.Errorf("too few features gave %v", err)
	}
	l.cfg.Conformal.Coverage = 0
	off, err := Restore(l.cfg, func() []byte { s, _ := l.AppendBinary(nil); return s }())
	if err != nil {
		t.Fatal(err)
	}
	if p, err := off.Predict(x); err != nil || p.Set != nil {
		t.Errorf("without sets: %+v, %v", p, err)
	}
}
