package online

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Weights of classes and scores are of the present classes, also after one was removed.
func TestFiguresAfterAClassIsRemoved(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	cfg.ClassWeights.Mode = Balanced
	l := newTestLearner(t, cfg)
	feed(l, rand.New(rand.NewPCG(1, 1)), 3000)
	l.Add(&Event{Kind: ClassRemove, Label: "c"})
	var sum, n, prevalence float64
	for k, of := range l.view.Counts {
		sum += l.weightOf(&Event{}, k) * float64(of)
		n += float64(of)
	}
	if mean := sum / n; math.Abs(mean-1) > 0.01 {
		t.Errorf("the mean weight is %g, want 1", mean)
	}
	s := l.Scores()
	confusion := s.Matrix
	agreed, chance := 0.0, 0.0
	for k := range confusion {
		predicted := 0.0
		for j := range confusion {
			predicted += float64(confusion[j][k])
		}
		prevalence += float64(s.PerClass[k].Prevalence)
		agreed += float64(confusion[k][k]) / float64(s.PerClass[0].N+s.PerClass[1].N)
		chance += float64(s.PerClass[k].Prevalence) * predicted / float64(s.PerClass[0].N+s.PerClass[1].N)
	}
	if want := (agreed - chance) / (1 - chance); math.Abs(prevalence-1) > 1e-12 || math.Abs(float64(s.Kappa)-want) > 1e-12 {
		t.Errorf("prevalences add up to %g, kappa is %g, want 1 and %g", prevalence, s.Kappa, want)
	}
}
