// Package linear is soft-max regression, the simplest alternative to the model.
package linear

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// Softmax is soft-max regression by stochastic gradient descent, one sample at a
// time, on features standardised by a running mean and deviation.
type Softmax struct {
	model.Regression
	rate     float64
	n        float64
	mean, m2 []float64 // D  running mean and sum of squared deviations (Welford 1962)
	x, probs []float64 // D, C
}

// New returns a regression on d features without classes.
func New(d int, rate float64) *Softmax {
	return &Softmax{Regression: model.Regression{D: d}, rate: rate, mean: make([]float64, d), m2: make([]float64, d), x: make([]float64, d)}
}

// Grow makes room for class k.
func (s *Softmax) Grow(k int) {
	for len(s.probs) <= k {
		s.W, s.probs = append(s.W, make([]float64, s.D+1)...), append(s.probs, 0)
	}
}

// standardise stores x, in units of its deviation so far, in s.x.
func (s *Softmax) standardise(x []float64) {
	for j, v := range x {
		s.x[j] = 0 // of a missing feature as well
		if sd := math.Sqrt(s.m2[j] / max(s.n, 1)); sd > 0 && !math.IsNaN(v) {
			s.x[j] = min(max((v-s.mean[j])/sd, -8), 8)
		}
	}
}

// Probs returns P(class | x); valid until the next call.
func (s *Softmax) Probs(x []float64) []float64 {
	s.standardise(x)
	s.LogsTo(s.probs, s.x)
	for k, logp := range s.probs {
		s.probs[k] = math.Exp(logp)
	}
	return s.probs
}

// Learn takes one step down the gradient of −log P(class | x).
func (s *Softmax) Learn(x []float64, class int) {
	s.Grow(class)
	s.n++
	for j, v := range x {
		if math.IsNaN(v) {
			v = s.mean[j]
		}
		d := v - s.mean[j]
		s.mean[j] += d / s.n
		s.m2[j] += d * (v - s.mean[j])
	}
	for k, p := range s.Probs(x) {
		if k == class {
			p--
		}
		w := s.W[k*(s.D+1):][:s.D+1]
		for j, v := range s.x {
			w[j] -= s.rate * p * v
		}
		w[s.D] -= s.rate * p
	}
}

// Predict returns class probabilities, n×C.
func (s *Softmax) Predict(x []float64) (*mat.Dense, error) {
	n := len(x) / s.D
	out := mat.NewDense(n, len(s.probs), nil)
	for i := range n {
		out.SetRow(i, s.Probs(x[i*s.D:(i+1)*s.D]))
	}
	return out, nil
}

// Train returns a method that passes over the rows in a new order each, and is watched after
// every minibatch of that size, or of all rows where they are fewer; the updates of a problem are
// passes.
func Train(size int, rate float64) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		s, r := New(p.Data.D, rate), rand.New(rand.NewPCG(p.Seed, 1))
		s.Grow(p.Data.C - 1)
		size := min(size, p.Data.N())
		for range p.Updates {
			for at, i := range r.Perm(p.Data.N()) {
				s.Learn(p.Data.Row(i), p.Data.Y[i])
				if (at+1)%size != 0 {
					continue
				}
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if p.Watch != nil {
					p.Watch(s)
				}
			}
		}
		return s, nil
	}
}
