package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/harness"
)

// A step of soft-max regression goes down the numerical gradient of the log loss.
func TestSoftmaxGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := newSoftmax(2, 1e-3)
	s.grow(2)
	for range 50 {
		s.learn([]float64{rng.NormFloat64(), 3 + 2*rng.NormFloat64()}, rng.IntN(3))
	}
	// The step's own sample moves the mean, so that the loss is that of the scaling after it.
	x, class := []float64{0.7, 1.5}, 1
	before := slices.Clone(s.W)
	s.learn(x, class)
	after := s.W
	for j := range before {
		const h = 1e-6
		var loss [2]float64
		for side, sign := range []float64{1, -1} {
			s.W = slices.Clone(before)
			s.W[j] += sign * h
			loss[side] = -math.Log(s.predict(x)[class])
		}
		want := before[j] - s.rate*(loss[0]-loss[1])/(2*h)
		if math.Abs(after[j]-want) > 1e-10 {
			t.Errorf("weight %d is %g after the step, want %g", j, after[j], want)
		}
	}
}

func TestEvalLinear(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 600)
	r := evalJSON(t, path, "--inducing", "10", "--linear")
	if len(r) != 2 || !strings.HasPrefix(r[1].Dataset, "table, soft-max regression at rate 0.0") || r[1].Samples != 600 {
		t.Fatalf("%d reports, the second of %+v", len(r), r[len(r)-1])
	}
	if r[1].Balanced < 0.5 || r[1].Kappa <= 0 || r[1].Error <= 0 || r[1].Error > 0.5 || r[1].NLL <= 0 || r[1].NLL > math.Log(3) {
		t.Errorf("soft-max regression did not learn: error %g, log loss %g", r[1].Error, r[1].NLL)
	}
	late := evalJSON(t, path, "--inducing", "10", "--linear", "--batch", "300")
	if late[1].NLL <= r[1].NLL {
		t.Errorf("log loss is %g with labels after every 300 predictions, %g after 16", late[1].NLL, r[1].NLL)
	}
	if code, _, errOut := edge(t, "eval", path, "--linear", "--mode", "cv"); code != exit.Usage || !strings.Contains(errOut, "--linear") {
		t.Errorf("--linear --mode cv exits with %d: %s", code, errOut)
	}
}
