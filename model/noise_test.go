package model

import (
	"math"
	"slices"
	"testing"

	"edge/test/golden"
)

// The answer is sharpened and gets the share of the class frequencies, by the weight; the
// recalled parts of a prediction give the same. A zero value changes nothing.
func TestMixNoise(t *testing.T) {
	for _, n := range []Noise{{}, {Sharpness: 3, Share: 0.2, Weight: 0.4}, {Sharpness: 1, Share: 0.5, Weight: 1}} {
		p, ws := stacked()
		p.Bases = []*Basis{NewBasis(1, 2)}
		p.Pool.Noise, p.Pool.Prior = n, 0.1
		dst := []float64{0.5, 0.3, 0.2}
		p.foresee(2, &ws.forecast)
		p.pool(dst, &ws.forecast)
		p.stack(dst, ws)
		before := slices.Clone(dst)
		p.mixNoise(dst, ws)
		p.mixFrequencies(slices.Clone(dst), ws)
		ws.answer.combined = true

		pi := []float64{9. / 28, 10. / 28, 9. / 28}
		want, all := slices.Clone(before), 0.0
		for _, v := range before {
			all += math.Pow(v, n.Sharpness)
		}
		for k, v := range before {
			want[k] = (1-n.Weight)*v + n.Weight*((1-n.Share)*math.Pow(v, n.Sharpness)/all+n.Share*pi[k])
		}
		golden.Close(t, "answer", dst, want, 1e-14)
		if logs, sharp := ws.Noisy(); (len(logs) > 0) != (n.Sharpness > 0) || len(sharp) != len(logs) {
			t.Errorf("%+v: %d logarithms, %d sharpened", n, len(logs), len(sharp))
		}
		if n == (Noise{}) && !slices.Equal(dst, before) {
			t.Errorf("without noise the answer is %v, want %v to the last bit", dst, before)
		}
		var again Workspace
		if !p.Recall(ws.AppendParts(nil), &again) {
			t.Fatal("the parts are refused")
		}
		answer, _ := again.Informed()
		golden.Close(t, "recalled answer", answer, want, 1e-6) // parts are 32-bit numbers
	}
}
