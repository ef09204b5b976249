package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/model"
	"edge/online/score"
)

// linearRates are the learning rates that eval --linear tries.
var linearRates = []float64{0.001, 0.003, 0.01, 0.03}

// softmax is soft-max regression by stochastic gradient descent, one sample at
// a time, on features that a running mean and deviation standardise: the
// simplest learner that a user would try in this one's place.
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

// standardise stores x in units of its deviation so far in s.x.
func (s *softmax) standardise(x []float64) {
	for j, v := range x {
		s.x[j] = 0 // of what is missing, too
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

// linear judges soft-max regression on the same rows, whose labels arrive after
// every batch of predictions, at each rate, and reports the rate with the least
// log loss.
func linear(rows dataset.Rows, d int, classes []string, batch int, name string) (*report.Report, error) {
	var (
		row     dataset.Row
		learner []*softmax
		judges  = make([]score.Judge, len(linearRates))
		waiting [][]float64
		labels  []int
		index   = map[string]int{}
		start   = time.Now()
	)
	for k, class := range classes {
		index[class] = k
	}
	for _, rate := range linearRates {
		s := newSoftmax(d, rate)
		s.grow(len(classes) - 1)
		learner = append(learner, s)
	}
	teach := func() {
		for i, x := range waiting {
			for _, s := range learner {
				s.learn(x, labels[i])
			}
		}
		waiting, labels = waiting[:0], labels[:0]
	}
	for {
		if err := rows.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		k := index[row.Label]
		for i, s := range learner {
			judges[i].Add(s.predict(row.X), k)
		}
		waiting, labels = append(waiting, append([]float64(nil), row.X...)), append(labels, k)
		if len(waiting) == batch {
			teach()
		}
	}
	var best *report.Report
	for i, rate := range linearRates {
		s := judges[i].Scores(classes)
		if best == nil || s.NLL < best.NLL {
			best = &report.Report{
				Dataset: fmt.Sprintf("%s, soft-max regression at rate %g", name, rate), Mode: "prequential", Samples: s.N, Classes: classes,
				Figures: report.Figures{Error: s.Error, NLL: s.NLL, Brier: s.Brier, ECE: s.ECE, MacroF1: s.MacroF1, Balanced: s.Balanced, Kappa: s.Kappa}, Curve: []report.CurvePoint{}, Runs: []report.Run{},
			}
		}
	}
	best.Seconds = time.Since(start).Seconds()
	best.SamplesPerSecond = float64(best.Samples) * float64(len(linearRates)) / best.Seconds
	return best, nil
}
