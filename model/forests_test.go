package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/test/golden"
)

// The answer with members' forests against the products of probabilities that define it, with
// and without a tuned forest: a member that knows all classes, one that knows three of four in
// another order, and one of which a class is not known here.
func TestMemberForests(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const d, c = 3, 4
	own, _ := randomForest(rng, 10, 6, c, d)
	tuned, _ := randomForest(rng, 10, 6, c, d)
	f := &MemberForests{Own: 3, Share: 0.7}
	for i, index := range [][]int{{0, 1, 2, 3}, {3, 0, 1}, {2, -1, 0}} {
		g, _ := randomForest(rng, 5+i, 8, len(index), d)
		f.All = append(f.All, MemberForest{Forest: g, Weight: float64(1 + i), Index: index})
	}
	probs := func(g *Forest, x []float32) []float64 {
		logs := make([]float64, g.Classes)
		g.LogsTo(logs, x)
		for k, v := range logs {
			logs[k] = math.Exp(v)
		}
		return logs
	}
	normalise := func(p []float64) {
		var sum float64
		for _, v := range p {
			sum += v
		}
		for k := range p {
			p[k] /= sum
		}
	}
	var ws []float64
	x, leaves := make([]float32, d), make([]uint8, 10)
	for i := range 400 {
		RawTo(x, randomInput(rng, d))
		mine := probs(own, x)
		inMean, other := mine, (*Forest)(nil)
		if i%2 == 1 {
			inMean, other = probs(tuned, x), tuned
			tuned.LeavesTo(leaves, x)
		}
		mean := make([]float64, c)
		for k := range mean {
			mean[k] = math.Pow(inMean[k], 3./9)
		}
		for i, m := range f.All {
			p := probs(m.Forest, x)
			var of, to float64
			for at, k := range m.Index {
				if k >= 0 {
					of, to = of+inMean[k], to+p[at]
				}
			}
			for k := range mean {
				v := inMean[k]
				if at := slices.Index(m.Index, k); at >= 0 {
					v = p[at] / to * of
				}
				mean[k] *= math.Pow(v, float64(1+i)/9)
			}
		}
		normalise(mean)
		want := make([]float64, c)
		for k := range want {
			want[k] = math.Pow(mean[k], 0.7) * math.Pow(mine[k], 0.3)
		}
		normalise(want)
		logs := make([]float64, c)
		own.LogsTo(logs, x)
		floor(logs)
		ws = f.mix(logs, other, leaves, x, ws)
		for k := range want {
			want[k] = math.Log(max(want[k], floorExpert))
		}
		golden.Close(t, "answer", logs, want, 1e-9)
	}
}

// Without a share the members change nothing but a rounding, and the answers of a blend
// with either side alone are those of a blend that has the row of that side.
func TestForestAnswers(t *testing.T) {
	p, ws := stacked()
	rng := rand.New(rand.NewPCG(3, 3))
	p.Scale.Mu = make([]float64, 2)
	own, _ := randomForest(rng, 8, 4, 3, 2)
	other, _ := randomForest(rng, 8, 4, 3, 2)
	ws.raw = []float32{9, 9, 0.3, -0.2}
	s := &p.Pool.Stack
	s.Forest = own
	s.Ordered.Exponents = slices.Insert(s.Ordered.Exponents, 3, 0.35)
	s.Plain.Exponents = append(s.Plain.Exponents, 0.45)
	answer := func(members *MemberForests) []float64 {
		s.Members = members
		dst := []float64{0.5, 0.3, 0.2}
		p.foresee(1, &ws.forecast)
		p.pool(dst, &ws.forecast)
		p.stack(dst, ws)
		return slices.Clone(ws.blends.output.Answer)
	}
	alone := answer(nil)
	if members, _ := ws.ForestAnswers(p); members != nil {
		t.Error("answers of members that are not there")
	}
	with := func(share float64) *MemberForests {
		return &MemberForests{Own: 1, Share: share, All: []MemberForest{{Forest: other, Weight: 2, Index: []int{0, 1, 2}}}}
	}
	golden.Close(t, "answer without a share", answer(with(0)), alone, 1e-12)
	all := answer(with(1))
	answer(with(0.4))
	gotAll, gotOwn := ws.ForestAnswers(p)
	golden.Close(t, "answer with the members alone", gotAll, all, 1e-9)
	golden.Close(t, "answer with the own forest alone", gotOwn, alone, 1e-9)
	if n := testing.AllocsPerRun(50, func() {
		ws.blends.forests = s.Members.mix(ws.blends.experts[9:12], nil, nil, ws.raw[2:], ws.blends.forests)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
