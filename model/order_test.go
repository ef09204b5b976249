package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/test/golden"
)

// transitions is the matrix R of m, one number after the other from its definition.
func transitions(m *Moves, pi []float64) []float64 {
	c := len(pi)
	var all, stayed, sum float64
	for a := range c {
		for b := range c {
			all += float64(m.Counts[a*c+b])
		}
		stayed += float64(m.Counts[a*c+a])
	}
	stay := (stayed + 1) / (all + 2)
	for _, e := range m.Evidence {
		sum += math.Exp(e)
	}
	r := make([]float64, c*c)
	for a := range c {
		var n float64
		for b := range c {
			n += float64(m.Counts[a*c+b])
		}
		for b := range c {
			bases := []float64{pi[b], 1 / float64(c), stay, stay}
			if a != b {
				bases[2], bases[3] = (1-stay)*pi[b]/(1-pi[a]), (1-stay)/float64(c-1)
			}
			for i, mass := range []float64{0.5, 4, 32} {
				for j, base := range bases {
					r[a*c+b] += math.Exp(m.Evidence[4*i+j]) / sum * (float64(m.Counts[a*c+b]) + mass*base) / (n + mass)
				}
			}
		}
	}
	return r
}

// randomOrder is an order of c classes with random moves, some rows of them empty.
func randomOrder(rng *rand.Rand, c int) (o Order, pi []float64) {
	o = Order{Last: rng.IntN(c), Steps: make([]Moves, MaxSteps)}
	for j := range o.Steps {
		m := &o.Steps[j]
		m.Counts = make([]uint32, c*c)
		for range rng.IntN(40) {
			m.Count(rng.IntN(c), rng.IntN(c), c)
		}
		for z := range m.Evidence {
			m.Evidence[z] = 3 * rng.NormFloat64()
		}
	}
	var sum float64
	for range c {
		v := rng.ExpFloat64() + 1e-3
		pi, sum = append(pi, v), sum+v
	}
	for k := range pi {
		pi[k] /= sum
	}
	return o, pi
}

// The distribution at each distance is the product of the matrices of its bits, and
// sums to 1; the probabilities of the priors are those that the matrices mix.
func TestOrderExpects(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for c := 2; c <= 5; c++ {
		o, pi := randomOrder(rng, c)
		b := forecast{pi: pi}
		for _, ahead := range []int{1, 2, 3, 7, 64, 100, 513, FarAhead} {
			want := make([]float64, c)
			want[o.Last] = 1
			for j := MaxSteps - 1; j >= 0; j-- {
				if ahead&(1<<j) == 0 {
					continue
				}
				r, next := transitions(&o.Steps[j], pi), make([]float64, c)
				for a, v := range want {
					for k := range next {
						next[k] += v * r[a*c+k]
					}
				}
				want = next
			}
			if !b.expect(&o, ahead) {
				t.Fatalf("%d ahead: nothing is expected", ahead)
			}
			golden.Close(t, "expected", b.paths[:c], want, 1e-13)
			r, stays := transitions(&o.Steps[0], pi), 1.0
			for range ahead {
				stays *= max((r[o.Last*c+o.Last]-pi[o.Last])/(1-pi[o.Last]), 0)
			}
			for k, v := range pi {
				want[k] = (1 - stays) * v
			}
			want[o.Last] += stays
			golden.Close(t, "dwelt", b.paths[c:], want, 1e-12)
			for _, path := range [][]float64{b.paths[:c], b.paths[c:]} {
				var sum float64
				for _, v := range path {
					sum += v
				}
				if math.Abs(sum-1) > 1e-13 {
					t.Errorf("%d classes, %d ahead: sum %v, want 1", c, ahead, sum)
				}
			}
		}
		for a := range c {
			for k := range c {
				var logs [Priors]float64
				m := &o.Steps[2]
				m.LogsTo(&logs, a, k, pi)
				var got, sum float64
				for z, e := range m.Evidence {
					got += math.Exp(e + logs[z])
					sum += math.Exp(e)
				}
				if want := transitions(m, pi)[a*c+k]; math.Abs(got/sum-want) > 1e-13 {
					t.Errorf("P(%d | %d) = %v, want %v", k, a, got/sum, want)
				}
			}
		}
	}
}

// A cycle a → b → c → a is predicted at every distance; without a known place, beyond
// the limit and for a single class nothing is.
func TestOrderOfCycle(t *testing.T) {
	o := Order{Last: 0, Steps: make([]Moves, MaxSteps)}
	for j := range o.Steps {
		m := &o.Steps[j]
		m.Counts = make([]uint32, 9)
		for a := range 3 {
			m.Counts[a*3+(a+1<<j)%3] = 1e9
		}
		m.Recount(3)
	}
	b := forecast{pi: []float64{0.3, 0.3, 0.4}}
	for _, ahead := range []int{1, 2, 3, 7, 30, 100, FarAhead} {
		want := make([]float64, 3)
		want[ahead%3] = 1
		b.expect(&o, ahead)
		golden.Close(t, "expected", b.paths[:3], want, 1e-6)
	}
	for _, ahead := range []int{-1, 0, FarAhead + 1} {
		if b.expect(&o, ahead) {
			t.Errorf("%d ahead: something is expected", ahead)
		}
	}
	one := forecast{pi: []float64{1}}
	if one.expect(&Order{Steps: []Moves{{Counts: []uint32{5}}}}, 1) {
		t.Error("of one class: something is expected")
	}
	o.Last = -1
	if b.expect(&o, 1) {
		t.Error("without a last label something is expected")
	}
}

// A count that is full stays.
func TestMovesAreBounded(t *testing.T) {
	m := Moves{Counts: []uint32{0, math.MaxUint32, 0, 0}}
	m.Recount(2)
	m.Count(0, 1, 2)
	if m.Counts[1] != math.MaxUint32 || m.All != math.MaxUint32 {
		t.Errorf("%v, %d in all", m.Counts, m.All)
	}
}
