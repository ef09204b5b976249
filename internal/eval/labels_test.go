package eval

import (
	"math/rand/v2"
	"testing"

	"edge/internal/dataset"
	"edge/online"
)

// walkers feeds n rows whose label stays for long and which the features do not tell.
func walkers(t *testing.T, p streamPolicy, n int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	var k int
	for range n {
		if rng.Float64() < 0.05 {
			k = rng.IntN(3)
		}
		row := dataset.Row{X: []float64{rng.NormFloat64(), rng.NormFloat64()}, Label: string(rune('a' + k))}
		if err := p.Row(&row); err != nil {
			t.Fatal(err)
		}
	}
	p.finish()
}

// Labels that come after each minibatch are not used inside it, and every row is judged;
// labels that come at once are, and end in the learner's own state.
func TestLabelsOfMinibatches(t *testing.T) {
	loss := map[int]float64{}
	for _, hold := range []int{0, 16} {
		cfg := online.DefaultConfig()
		cfg.Features, cfg.Inducing, cfg.Classes.Names = []string{"x", "y"}, 5, []string{"a", "b", "c"}
		l, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p := newPrequential(l, 1001, hold)
		walkers(t, p, 1001)
		s := p.Scores()
		if loss[hold] = s.NLL; s.N != 1001 || l.Pending() != 1001%16 {
			t.Errorf("labels of %d rows together: %d rows are judged, %d in the open minibatch; want 1001 and 9", hold, s.N, l.Pending())
		}
	}
	if loss[0] > 0.35 || loss[16] < loss[0]+0.2 {
		t.Errorf("log loss %.3f with labels at once, %.3f after each minibatch", loss[0], loss[16])
	}
}
