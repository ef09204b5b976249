package model

import (
	"math"
	"runtime"
	"testing"
	"weak"
)

// chained is a posterior with three classes, no features and a chain of labels.
func chained(moves []float64, last int, counts ...uint64) *Posterior {
	p := &Posterior{Names: []string{"a", "b", "c"}, Counts: counts}
	for _, n := range counts {
		p.N += n
	}
	p.Pool = Pool{Weights: make([]float64, len(Members)), Moves: moves, Last: last}
	p.Pool.Weights[0] = 1
	return p
}

// The member with exponents 1 and 0 leaves the mixture unchanged, with and without a
// known order.
func TestPoolNeutral(t *testing.T) {
	p := chained([]float64{8, 1, 0, 0, 5, 4, 3, 0, 3}, 1, 8, 9, 7)
	for ahead := range 3 {
		dst := []float64{0.2, 0.7, 0.1}
		p.pool(dst, p.Pool.Last, ahead, &forecast{})
		closeTo(t, "pool", dst, []float64{0.2, 0.7, 0.1}, 1e-14)
	}
}

// A cycle a → b → c → a is predicted at every distance, forwards and from the start
// again; beyond the limit, or without a known label, it is not used.
func TestChainExpects(t *testing.T) {
	p := chained([]float64{0, 1e9, 0, 0, 0, 1e9, 1e9, 0, 0}, 0, 5, 5, 5)
	var b forecast
	p.pool([]float64{1, 0, 0}, p.Pool.Last, 0, &b)
	for _, ahead := range []int{1, 2, 3, 7, 2, 30} {
		got := b.expect(p, p.Pool.Last, ahead)
		want := make([]float64, 3)
		want[ahead%3] = 1
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-6 {
				t.Errorf("%d ahead: %v, want %v", ahead, got, want)
				break
			}
		}
	}
	for _, ahead := range []int{0, farAhead + 1} {
		if got := b.expect(p, p.Pool.Last, ahead); got != nil {
			t.Errorf("%d ahead: %v, want nothing", ahead, got)
		}
	}
	p.Pool.Last = -1
	if got := b.expect(p, p.Pool.Last, 1); got != nil {
		t.Errorf("without a last label: %v, want nothing", got)
	}
}

// Each member against its formula, and their mixture.
func TestPoolMembers(t *testing.T) {
	p := chained([]float64{6, 2, 0, 1, 6, 1, 0, 2, 6}, 2, 8, 9, 8)
	prob := []float64{0.5, 0.3, 0.2}
	pi := []float64{9. / 28, 10. / 28, 9. / 28}
	chain := make([]float64, 3)
	for k := range chain {
		chain[k] = (p.Pool.Moves[6+k] + chainPrior*pi[k]) / (8 + chainPrior)
	}
	want := make([]float64, 3)
	for m, member := range Members {
		p.Pool.Weights[m] = float64(m+1) / float64(len(Members)*(len(Members)+1)/2)
		q, sum := make([]float64, 3), 0.0
		for k := range q {
			q[k] = math.Pow(prob[k], member.Sharpness) * math.Pow(chain[k]/pi[k], member.Persistence)
			sum += q[k]
		}
		for k := range q {
			want[k] += p.Pool.Weights[m] * q[k] / sum
		}
	}
	got := append([]float64(nil), prob...)
	p.pool(got, p.Pool.Last, 1, &forecast{})
	closeTo(t, "pool", got, want, 1e-12)
}

// The forecast that a prediction leaves in its workspace keeps no posterior alive:
// every step makes a new one.
func TestWorkspaceLetsPosteriorsGo(t *testing.T) {
	p := chained([]float64{6, 2, 0, 1, 6, 1, 0, 2, 6}, 2, 8, 9, 8)
	ws, old := NewWorkspace(), weak.Make(p)
	p.pool([]float64{1, 0, 0}, p.Pool.Last, 1, &ws.forecast)
	p = nil
	runtime.GC()
	if old.Value() != nil {
		t.Error("the posterior is still there")
	}
	runtime.KeepAlive(ws)
}
