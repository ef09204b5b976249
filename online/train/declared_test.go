package train

import (
	"slices"
	"testing"

	"edge/model"
	"edge/online"
	"edge/test/golden"
)

// A declared class of which the set has no row leaves the answers as the trainer judged them, and is learnt
// from its first label on.
func TestDeclaredClassWithoutRows(t *testing.T) {
	set := newCloud(240, 3, 4, 12)
	three := &cloud{d: 3}
	for i, y := range set.y {
		if y < 3 {
			three.x, three.y = append(three.x, set.x[i*3:(i+1)*3]...), append(three.y, y)
		}
	}
	for _, kernel := range []online.Kernel{online.Shared, online.PerClass} {
		t.Run(string(kernel), func(t *testing.T) {
			cfg := trainConfig(3, 10, kernel)
			cfg.Classes.Names = names(4)
			how := Default()
			how.Batch, how.Passes = 30, 4
			tr := newTestTrainer(t, cfg, how, 3, three)
			run(t, tr, 1000)
			l, err := tr.Learner()
			if err != nil {
				t.Fatal(err)
			}
			p, ws := l.Posterior(), model.NewWorkspace()
			err = tr.Predict(three, func(i int, want []float64) {
				got, _, err := p.PredictTo(nil, three.x[i*3:(i+1)*3], ws)
				if err != nil {
					t.Fatal(err)
				}
				golden.Close(t, "probabilities", got, append(slices.Clone(want), 0), 1e-9)
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range set.y {
				if out := l.Add(set.event(i)); out.Refused != nil {
					t.Fatal(out.Refused)
				}
			}
			if s := l.Scores(); s.Error > 0.3 || l.Posterior().Counts[3] != 60 {
				t.Errorf("error %.3f, samples %v", s.Error, l.Posterior().Counts)
			}
		})
	}
}
