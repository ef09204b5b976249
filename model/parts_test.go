package model

import (
	"slices"
	"testing"

	"edge/test/golden"
)

// Parts bring another workspace into the state after their prediction, by the weights
// and exponents of today.
func TestRecall(t *testing.T) {
	for _, ahead := range []int{0, 1, 5} {
		p, ws := stacked()
		p.Bases = []*Basis{NewBasis(1, 1)}
		predict := func(ws *Workspace) {
			dst := []float64{0.5, 0.3, 0.2}
			p.foresee(ahead, &ws.forecast)
			p.pool(dst, &ws.forecast)
			p.stack(dst, ws)
			ws.answer = answer{row: ws.answer.row, novelty: 0.25, combined: true}
		}
		predict(ws)
		parts := ws.AppendParts(nil)
		p.Pool.Stack.Ordered.Exponents[1], p.Pool.Stack.Plain.Exponents[0] = 0.3, 0.1
		p.Pool.Weights[0], p.Pool.Weights[2] = 0.4, 0.3
		predict(ws)
		var again Workspace
		if !p.Recall(parts, &again) || again.Novelty() != 0.25 {
			t.Fatalf("%d ahead: not recalled, or novelty %v", ahead, again.Novelty())
		}
		golden.Close(t, "members", again.PerMember(), ws.PerMember(), 1e-6)
		golden.Close(t, "experts", again.Experts(), ws.Experts(), 1e-6)
		golden.Close(t, "paths", again.PerPath(), ws.PerPath(), 1e-6)
		for _, out := range [][2]BlendOutput{{again.Ordered(), ws.Ordered()}, {again.Plain(p), ws.Plain(p)}} {
			golden.Close(t, "answer", out[0].Answer, out[1].Answer, 1e-6)
			golden.Close(t, "members' answer", out[0].Members, out[1].Members, 1e-6)
		}
		bad := slices.Clone(parts)
		bad[7] /= bad[7] - bad[7] // infinite
		p.Names = append(p.Names, "new")
		if p.Recall(parts, &again) {
			t.Error("parts of other classes are recalled")
		}
		if p.Names = p.Names[:3]; p.Recall(bad, &again) || p.Recall(nil, &again) || p.Recall(parts[1:], &again) {
			t.Error("parts that are not those of a prediction are recalled")
		}
	}
}
