package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model/dense"
	"edge/test/golden"
)

// unseenCase is a workspace after a prediction with a fleet: four classes of which the
// node knows 0 and 1, and two members that know 1, 2, 3 and 3, 0.
func unseenCase() (p *Posterior, ws *Workspace, answers [][]float64) {
	rng := rand.New(rand.NewPCG(6, 6))
	p = &Posterior{Names: []string{"a", "b", "c", "d"}, Latent: []int{0, 1, 2, 3}}
	p.Fleet = &Fleet{Rare: []bool{false, false, true, true}}
	members := &MemberForests{Own: 3, Share: 1}
	ws = NewWorkspace()
	x := []float32{0.3, -0.2}
	logs := make([]float64, 4)
	own, _ := randomForest(rng, 8, 4, 4, 2)
	own.LogsTo(logs, x)
	answers = append(answers, slices.Clone(logs))
	for i, index := range [][]int{{1, 2, 3}, {3, 0}} {
		f, _ := randomForest(rng, 8, 4, len(index), 2)
		members.All = append(members.All, MemberForest{Forest: f, Weight: float64(1 + i), Index: index})
		said := make([]float64, len(index))
		f.LogsTo(said, x)
		answers = append(answers, said)
	}
	p.Pool.Stack.Members = members
	ws.blends.forests = members.mix(logs, nil, nil, x, nil)
	ws.blends.output.Answer = []float64{1}
	return p, ws, answers
}

// The report names the most probable class, and the most probable of those with few own labels,
// which may be another one.
func TestReport(t *testing.T) {
	p := &Posterior{Names: []string{"a", "b", "c"}, Latent: []int{0, 1}}
	p.Fleet = &Fleet{Members: 2, Horizons: 1, Classes: []string{"c", "d"}, Index: []int{2, -1}, Rare: []bool{false, true, true}}
	ws := NewWorkspace()
	ws.company.known, ws.company.probs = true, []float64{0.375, 0.0625, 0.25, 0.3125}
	want := Report{Class: "a", Confidence: 0.375, Unseen: 0.625, Rare: "d", Rarely: 0.3125, Members: 2}
	if got, ok := p.Report(ws); !ok || got != want {
		t.Errorf("of latent functions: got %+v, want %+v", got, want)
	}
	p.Fleet.Guest, ws.company.named = &Posterior{}, []float64{0.5, 0.125, 0.375}
	want = Report{Class: "a", Confidence: 0.5, Unseen: 0.5, Rare: "c", Rarely: 0.375, Members: 2}
	if got, ok := p.Report(ws); !ok || got != want {
		t.Errorf("of a guest: got %+v, want %+v", got, want)
	}
}

// The refined answer against products of probabilities.
func TestRefine(t *testing.T) {
	p, ws, answers := unseenCase()
	g := []float64{0.4, 0.3, 0.2, 0.1}
	want := slices.Clone(g)
	weights := []float64{3, 1, 2}
	for i, index := range [][]int{{0, 1, -1, -1}, {1, 2, 3}, {3, 0}} {
		var said, fleet float64
		for at, k := range index {
			if k >= 0 {
				said, fleet = said+math.Exp(answers[i][at]), fleet+g[k]
			}
		}
		for at, k := range index {
			if k >= 0 {
				ratio := math.Exp(answers[i][at]) / said / (g[k] / fleet)
				want[k] *= math.Pow(ratio, refining*weights[i]/[]float64{5, 4, 1, 3}[k])
			}
		}
	}
	var sum float64
	for _, v := range want {
		sum += v
	}
	for k := range want {
		want[k] /= sum
	}
	got := slices.Clone(g)
	p.refine(got, ws)
	golden.Close(t, "refined answer", got, want, 1e-9)
	if n := testing.AllocsPerRun(20, func() { p.refine(got, ws) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	ws.blends.output.Answer = nil // no blend: the forests have not answered
	copy(got, g)
	if p.refine(got, ws); !slices.Equal(got, g) {
		t.Error("refined by forests that have not answered")
	}
	ws.blends.output.Answer, p.Pool.Stack.Members = []float64{1}, nil
	if p.refine(got, ws); !slices.Equal(got, g) {
		t.Error("refined without forests")
	}
}

// The answer for rare classes is that of Unseen, refined; the others keep their ratios.
// Without a rare class, or without Unseen, the fleet does not answer.
func TestMixFew(t *testing.T) {
	p, ws, _ := unseenCase()
	unseen := &Posterior{Names: p.Names, Counts: []uint64{40, 30, 20, 10}, N: 100} // answers by frequencies
	p.Fleet.Unseen = unseen
	p.loadFleet(nil, 0, ws)
	frequencies := unseen.FrequenciesTo(make([]float64, 4))
	g := slices.Clone(frequencies)
	p.refine(g, ws)
	dst := []float64{0.9, 0.05, 0.03, 0.02}
	p.answerUnseen(0, 4, ws)
	golden.Close(t, "answer for unseen classes", ws.company.named, g, 1e-12)
	golden.Close(t, "answer before its exponent and the forests", ws.Unseen(), frequencies, 1e-12)
	p.Fleet.Exponent = 2
	p.answerUnseen(0, 4, ws)
	var square [4]float64
	sum := dense.Dot(frequencies, frequencies)
	for k, v := range frequencies {
		square[k] = v * v / sum
	}
	p.refine(square[:], ws)
	golden.Close(t, "answer to the power of 2", ws.company.named, square[:], 1e-12)
	p.Fleet.Exponent = 1
	p.answerUnseen(0, 4, ws)
	p.Fleet.mixRare(dst, ws.company.named)
	u := g[2] + g[3]
	golden.Close(t, "answer", dst, []float64{(1 - u) * 0.9 / 0.95, (1 - u) * 0.05 / 0.95, g[2], g[3]}, 1e-12)
	p.Fleet.Unseen = nil
	if p.Fleet.Mixes() {
		t.Error("mixes without Unseen")
	}
	if p.Fleet.Unseen, p.Fleet.Rare = unseen, make([]bool, 4); p.Fleet.Mixes() {
		t.Error("mixes without rare classes")
	}
}
