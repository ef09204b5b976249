package model

import (
	"math"
	"slices"
	"testing"
)

// A calibrated posterior answers as one without calibration does at the features in its
// units, alone and in batches, and missing features stay missing.
func TestCalibration(t *testing.T) {
	c := &Calibration{Gain: []float64{0.5, 1}, Offset: []float64{-3, 0}}
	plain := uncertain(t, 3, 0.05)
	moved := *plain
	moved.Calibration = c
	rows, ws := [][]float64{{8, 1}, {math.NaN(), -2}, {4, math.NaN()}}, NewWorkspace()
	var batch []float64
	for _, x := range rows {
		batch = append(batch, x...)
	}
	if err := moved.Load(batch, len(rows), NewWorkspace()); err != nil {
		t.Fatal(err)
	}
	for _, x := range rows {
		inUnits := []float64{0.5*x[0] - 3, x[1]}
		want, novelty, err := plain.PredictTo(nil, inUnits, ws)
		if err != nil {
			t.Fatal(err)
		}
		got, also, err := moved.PredictTo(nil, x, ws)
		if err != nil || !slices.Equal(got, want) || also != novelty {
			t.Errorf("at %v: %v, novelty %v, error %v, want %v, %v", x, got, also, err, want, novelty)
		}
	}
	if plain.SameInputs(&moved) {
		t.Error("inputs are the same with and without a calibration")
	}
	if got, want := c.At(0, moved.Mean(0)), plain.Mean(0); math.Abs(got-want) > 1e-12 {
		t.Errorf("the mean is %v in units of the model, want %v", got, want)
	}
}

// A calibration is valid if its gains are positive and its numbers bounded.
func TestValidCalibration(t *testing.T) {
	for _, bad := range [][2]float64{{0, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(1), 0}, {1, math.NaN()}, {1, math.Inf(-1)}} {
		if c := (&Calibration{Gain: []float64{bad[0]}, Offset: []float64{bad[1]}}); c.Valid() {
			t.Errorf("gain %v and offset %v are valid", bad[0], bad[1])
		}
	}
	if c := newCalibration(2); !c.Valid() || c.OrNone() != nil {
		t.Error("one that changes nothing is not valid, or is one")
	}
	if got := (&Calibration{Gain: []float64{1e100}, Offset: []float64{0}}).At(0, 1e300); got != MaxFeature {
		t.Errorf("%g, want the largest feature", got)
	}
}
