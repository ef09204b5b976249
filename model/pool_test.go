package model

import (
	"math"
	"testing"

	"edge/test/golden"
)

// chained is a posterior with three classes, no features and a chain of labels.
func chained(moves []float64, last int, counts ...uint64) *Posterior {
	p := &Posterior{Names: []string{"a", "b", "c"}, Counts: counts}
	for _, n := range counts {
		p.N += n
	}
	p.Pool = Pool{Weights: make([]float64, len(Members)), Order: Order{Last: last, Paths: [Paths]float64{0.75, 0.25}, Steps: make([]Moves, MaxSteps)}}
	for j := range p.Pool.Order.Steps { // as if every distance had the same moves
		m := &p.Pool.Order.Steps[j]
		for _, n := range moves {
			m.Counts = append(m.Counts, uint32(n))
		}
		m.Recount(3)
		m.Evidence[j%Priors] = 2
	}
	p.Pool.Weights[0] = 1
	return p
}

// The member with exponents 1 and 0 leaves the mixture unchanged, with and without a
// known order.
func TestPoolNeutral(t *testing.T) {
	p := chained([]float64{8, 1, 0, 0, 5, 4, 3, 0, 3}, 1, 8, 9, 7)
	for ahead := range 3 {
		dst := []float64{0.2, 0.7, 0.1}
		poolAlone(p, dst, ahead)
		golden.Close(t, "pool", dst, []float64{0.2, 0.7, 0.1}, 1e-14)
	}
}

// Each member against its formula, and their mixture.
func TestPoolMembers(t *testing.T) {
	p := chained([]float64{6, 2, 0, 1, 6, 1, 0, 2, 6}, 2, 8, 9, 8)
	prob := []float64{0.5, 0.3, 0.2}
	pi := []float64{9. / 28, 10. / 28, 9. / 28}
	chain := make([]float64, 3)
	row := transitions(&p.Pool.Order.Steps[0], pi)[6:] // one label ahead
	for k := range chain {
		dwelt := (1 - (row[2]-pi[2])/(1-pi[2])) * pi[k]
		if k == 2 {
			dwelt += (row[2] - pi[2]) / (1 - pi[2])
		}
		chain[k] = 0.75*row[k] + 0.25*dwelt
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
	poolAlone(p, got, 1)
	golden.Close(t, "pool", got, want, 1e-12)
}

// poolAlone is pool with a forecast of its own.
func poolAlone(p *Posterior, dst []float64, ahead int) {
	var b forecast
	p.foresee(ahead, &b)
	p.pool(dst, &b)
}
