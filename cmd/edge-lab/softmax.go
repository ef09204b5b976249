package main

import (
	"math"

	"edge/model"
)

// softmax is soft-max regression by stochastic gradient descent, one sample at a
// time, on features standardised by a running mean and deviation: the simplest
// alternative to the model.
type softmax struct {
	model.Regression
	rate     float64
	n        float64
	mean, m2 []float64 // D  running mean and sum of squared deviations (Welford 1962)
	x, probs []float64 // D, C
}

func newSoftmax(d int, rate float64) *softmax {
	return &softmax{Regression: model.Regression{D: d}, rate: rate, mean: make([]float64, d), m2: make([]float64, d), x: make([]float64, d)}
}

// grow makes room for class k.
func (s *softmax) grow(k int) {
	for len(s.probs) <= k {
		s.W, s.probs = append(s.W, make([]float64, s.D+1)...), append(s.probs, 0)
	}
}

// standardise stores x, in units of its deviation so far, in s.x.
func (s *softmax) standardise(x []float64) {
	for j, v := range x {
		s.x[j] = 0 // of a missing feature as well
		if sd := math.Sqrt(s.m2[j] / max(s.n, 1)); sd > 0 && !math.IsNaN(v) {
			s.x[j] = min(max((v-s.mean[j])/sd, -8), 8)
		}
	}
}

// predict returns P(class | x); valid until the next call.
func (s *softmax) predict(x []float64) []float64 {
	s.standardise(x)
	s.LogsTo(s.probs, s.x)
	for k, logp := range s.probs {
		s.probs[k] = math.Exp(logp)
	}
	return s.probs
}

// learn takes one step down the gradient of −log P(class | x).
func (s *softmax) learn(x []float64, class int) {
	s.grow(class)
	s.n++
	for j, v := range x {
		if math.IsNaN(v) {
			v = s.mean[j]
		}
		d := v - s.mean[j]
		s.mean[j] += d / s.n
		s.m2[j] += d * (v - s.mean[j])
	}
	for k, p := range s.predict(x) {
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
