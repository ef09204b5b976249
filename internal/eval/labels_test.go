package eval

import (
	"math/rand/v2"
	"testing"

	"edge/internal/dataset"
	"edge/online"
	"edge/online/active"
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

// Each label is learnt alone unless minibatches are closed by count or the labels come together.
func TestLabelsAlone(t *testing.T) {
	byTime, byCount := online.DefaultConfig(), online.DefaultConfig()
	byCount.Batch.MaxWait = 0
	for _, c := range []struct {
		change func(*Evaluation)
		cfg    *online.Config
		want   int // labels in the open minibatch after 1001 rows
	}{
		{func(*Evaluation) {}, &byTime, 0},
		{func(*Evaluation) {}, &byCount, 1001 % 16},
		{func(e *Evaluation) { e.Labels = LabelsAtOnce }, &byTime, 0},
		{func(e *Evaluation) { e.Arrival.Delay = 5 }, &byTime, 0},
		{func(e *Evaluation) { e.Batch, e.Labels = 16, LabelsAtOnce }, &byTime, 1001 % 16},
		{func(e *Evaluation) { e.Labels = LabelsPerBatch }, &byTime, 1001 % 16},
	} {
		e, cfg := New(), *c.cfg
		c.change(e)
		cfg.Features, cfg.Inducing, cfg.Classes.Names = []string{"x", "y"}, 5, []string{"a", "b", "c"}
		l, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p, _, _ := e.policy(l, nil, active.Config{}, 1001)
		walkers(t, p, 1001)
		if l.Pending() != c.want {
			t.Errorf("labels %q, %d rows late, minibatches of %d, max_wait %v: %d labels wait, want %d",
				e.Labels, e.Arrival.Delay, e.Batch, cfg.Batch.MaxWait, l.Pending(), c.want)
		}
	}
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
		p := newPrequential(l, 1001, false, hold, noneLeftOut)
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

// The rule "same as last label" knows the labels that the predictions know: those of the
// minibatches before. Of late labels as well, and without the order of the labels.
func TestLastLabelThatWasKnown(t *testing.T) {
	const n, hold = 800, 16
	rng, k, labels := rand.New(rand.NewPCG(1, 1)), 0, []int(nil)
	for range n { // as walkers does
		if rng.Float64() < 0.05 {
			k = rng.IntN(3)
		}
		rng.NormFloat64()
		rng.NormFloat64()
		labels = append(labels, k)
	}
	var wrong float64
	for i := hold; i < n; i++ {
		if labels[i/hold*hold-1] != labels[i] {
			wrong++
		}
	}
	for _, temporal := range []online.Temporal{online.TemporalAuto, online.TemporalOff} {
		policy := func(late bool) streamPolicy {
			cfg := online.DefaultConfig()
			cfg.Features, cfg.Inducing, cfg.Classes.Names = []string{"x", "y"}, 5, []string{"a", "b", "c"}
			cfg.Temporal = temporal
			l, err := online.NewLearner(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if late {
				return newDelayed(Arrival{Fraction: 1}, l, false, hold)
			}
			return newPrequential(l, n, false, hold, noneLeftOut)
		}
		for _, late := range []bool{false, true} {
			p := policy(late)
			walkers(t, p, n)
			s := p.Scores()
			first := s.Last.Error*n - wrong // of the rows before any label, at most all of them
			if s.Last.N != n || first < 0 || first > hold || s.Last.Error < 0.2 {
				t.Errorf("temporal %s, late %v: the last label is wrong on %.0f of %d rows, want %.0f and at most %d more", temporal, late, s.Last.Error*n, s.Last.N, wrong, hold)
			}
		}
	}
}

func noneLeftOut() int { return 0 }
