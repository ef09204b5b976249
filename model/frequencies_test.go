package model

import (
	"slices"
	"testing"

	"edge/test/golden"
)

// The answer is mixed with the class frequencies by their weight, and both parts are
// kept for the vote; the recalled parts of a prediction give the same.
func TestMixFrequencies(t *testing.T) {
	p, ws := stacked()
	p.Bases = []*Basis{NewBasis(1, 2)}
	p.Pool.Prior = 0.3
	dst := []float64{0.5, 0.3, 0.2}
	p.foresee(2, &ws.forecast)
	p.pool(dst, &ws.forecast)
	p.stack(dst, ws)
	before := slices.Clone(dst)
	p.mixFrequencies(dst, ws)
	ws.answer.combined = true

	want := []float64{9. / 28, 10. / 28, 9. / 28}
	answer, pi := ws.Informed()
	golden.Close(t, "answer of features and order", answer, before, 0)
	golden.Close(t, "frequencies", pi, want, 1e-15)
	var sum float64
	for k, v := range dst {
		want[k] = 0.7*before[k] + 0.3*want[k]
		sum += v
	}
	golden.Close(t, "mixture", dst, want, 1e-15)
	golden.Close(t, "sum", []float64{sum}, []float64{1}, 1e-14)

	var again Workspace
	if !p.Recall(ws.AppendParts(nil), &again) {
		t.Fatal("the parts are refused")
	}
	answer, pi = again.Informed()
	golden.Close(t, "recalled answer", answer, before, 1e-6) // parts are 32-bit numbers
	golden.Close(t, "recalled frequencies", pi, []float64{9. / 28, 10. / 28, 9. / 28}, 1e-7)
}
