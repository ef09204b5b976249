package linear

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/lab"
	"edge/lab/labtest"
)

// A step of soft-max regression goes down the numerical gradient of the log loss.
func TestSoftmaxGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := New(2, 1e-3)
	s.Grow(2)
	for range 50 {
		s.Learn([]float64{rng.NormFloat64(), 3 + 2*rng.NormFloat64()}, rng.IntN(3))
	}
	// The step's own sample moves the mean, so that the loss is that of the scaling after it.
	x, class := []float64{0.7, 1.5}, 1
	before := slices.Clone(s.W)
	s.Learn(x, class)
	after := s.W
	for j := range before {
		const h = 1e-6
		var loss [2]float64
		for side, sign := range []float64{1, -1} {
			s.W = slices.Clone(before)
			s.W[j] += sign * h
			loss[side] = -math.Log(s.Probs(x)[class])
		}
		want := before[j] - s.rate*(loss[0]-loss[1])/(2*h)
		if math.Abs(after[j]-want) > 1e-10 {
			t.Errorf("weight %d is %g after the step, want %g", j, after[j], want)
		}
	}
}

func TestTrain(t *testing.T) {
	d, _ := labtest.Twelve()
	watched := 0
	c, err := Train(5, 0.1)(t.Context(), &lab.Problem{Data: d, Updates: 40, Watch: func(lab.Classifier) { watched++ }})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Predict(d.X)
	if err != nil {
		t.Fatal(err)
	}
	var nll float64
	for i, y := range d.Y {
		nll -= math.Log(p.At(i, y)) / float64(d.N())
	}
	if !(nll < 0.8*math.Log(3)) || watched != 80 {
		t.Errorf("log loss %g of the rows learnt, watched %d times", nll, watched)
	}
	watched = 0
	ctx, end := context.WithCancel(t.Context())
	if _, err := Train(100, 0.1)(ctx, &lab.Problem{Data: d, Updates: 40, Watch: func(lab.Classifier) {
		if watched++; watched == 3 {
			end()
		}
	}}); err == nil || watched != 3 {
		t.Errorf("of minibatches larger than all rows: %v, watched %d times, want 3", err, watched)
	}
}
