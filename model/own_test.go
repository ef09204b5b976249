package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"edge/test/golden"
)

// The answer without a fleet is that of a posterior which never had one, with and without
// members' forests, also when it is made of parts, and the answer is the mixture of both.
func TestOwn(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	forest, _ := randomForest(rng, 8, 4, 3, 2)
	other, _ := randomForest(rng, 8, 4, 3, 2)
	members := &MemberForests{Own: 1, Share: 0.6, All: []MemberForest{{Forest: other, Weight: 2, Index: []int{0, 1, 2}}}}
	predict := func(p *Posterior, ws *Workspace, ahead int) []float64 {
		p.Bases, p.Scale.Mu, ws.raw = []*Basis{NewBasis(1, 1)}, make([]float64, 2), []float32{9, 9, 0.3, -0.2}
		dst := []float64{0, floorExpert, 0} // without a latent function
		for h := range p.Bank {
			for at, k := range p.Latent {
				dst[k] += p.Weights[h] * ws.perHorizon[2*h+at]
			}
		}
		p.foresee(ahead, &ws.forecast)
		p.pool(dst, &ws.forecast)
		p.stack(dst, ws)
		p.mixFrequencies(dst, ws)
		p.mixOwn(dst, ws)
		ws.answer.combined = true
		return slices.Clone(dst)
	}
	for _, ahead := range []int{0, 1, 5} {
		for _, all := range []*MemberForests{nil, members} {
			alone, ws := stacked()
			alone.Weights, alone.Pool.Prior, alone.Pool.Stack.Forest = []float64{0.3, 0.7}, 0.05, forest
			s := &alone.Pool.Stack
			s.Ordered.Exponents, s.Plain.Exponents = slices.Insert(s.Ordered.Exponents, 3, 0.35), append(s.Plain.Exponents, 0.45)
			want := predict(alone, ws, ahead)
			if with, _, _ := ws.Own(); with != nil {
				t.Fatal("a posterior without a fleet has two answers")
			}

			p, joined := stacked()
			p.Bank, p.Weights = append(p.Bank, Gaussian{}), []float64{0.2, 0.3, 0.5}
			p.Fleet = &Fleet{Horizons: 1, Own: &Posterior{Weights: alone.Weights, Pool: alone.Pool}, Share: 0.8}
			joined.perHorizon = append(joined.perHorizon, 0.85, 0.15)
			p.Pool.Stack.Forest, p.Pool.Stack.Members = forest, all
			p.Pool.Stack.Ordered = Blend{[]float64{0.4, 0.2, 0.5, 0.1, 0.3, 0.9, 0.1, 0.2, 0.1}[:len(s.Ordered.Exponents)+1], 0.7}
			p.Pool.Stack.Plain = Blend{[]float64{0.4, 0.2, 0.5, 0.1, 0.3}, 0.6}
			got := predict(p, joined, ahead)
			with, own, _ := joined.Own()
			golden.Close(t, "own answer", own, want, 1e-9)
			for k, v := range got {
				if mixed := 0.8*with[k] + 0.2*own[k]; v != mixed && !(v-mixed < 1e-15 && mixed-v < 1e-15) {
					t.Errorf("answer %v, want %v", v, mixed)
				}
			}

			var again Workspace
			if !p.Recall(joined.AppendParts(nil), &again) {
				t.Fatal("the parts are not recalled")
			}
			recalled, ownAgain, _ := again.Own()
			golden.Close(t, "recalled answer", recalled, with, 1e-6)
			golden.Close(t, "recalled own answer", ownAgain, own, 1e-6)
			dst := make([]float64, 3)
			if n := testing.AllocsPerRun(20, func() { p.mixOwn(dst, joined) }); n > 0 {
				t.Errorf("%v allocations", n)
			}
		}
	}
}

// The weight of a fleet in the answers is less than that of its horizons in the answer with
// them, where the own answer has a share.
func TestFleetWeight(t *testing.T) {
	own := &Posterior{}
	for name, tc := range map[string]struct {
		fleet *Fleet
		want  float64
	}{
		"no fleet":             {nil, 0},
		"own labels disagree":  {&Fleet{Horizons: 2, Own: own, Share: 0.125}, 0.09375},
		"own labels agree":     {&Fleet{Horizons: 2, Own: own, Share: 1}, 0.75},
		"one answer":           {&Fleet{Horizons: 2}, 0.75},
		"members without sums": {&Fleet{Own: own, Share: 1}, 0},
		"guest in the warm-up": {&Fleet{Guest: &Posterior{}, GuestWeight: 0.3}, 0.3},
	} {
		p := &Posterior{Weights: []float64{0.25, 0.25, 0.5}, Fleet: tc.fleet}
		if got := p.FleetWeight(); got != tc.want {
			t.Errorf("%s: weight %g, want %g", name, got, tc.want)
		}
	}
}
