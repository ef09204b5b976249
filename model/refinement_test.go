package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/test/golden"
)

// guestCase is a guest of four classes with random forests of the classes that indices name.
func guestCase(rng *rand.Rand, d int, indices ...[]int) *Posterior {
	p := &Posterior{Names: []string{"a", "b", "c", "d"}, Scale: Scale{Mu: make([]float64, d)}}
	p.Pool.Stack.Members = &MemberForests{Own: 5, Share: 0.3}
	for i, index := range indices {
		f, _ := randomForest(rng, 5+i, 8, len(index), d)
		p.Pool.Stack.Members.All = append(p.Pool.Stack.Members.All, MemberForest{Forest: f, Weight: float64(1 + i), Index: index})
	}
	return p
}

// The answer of a guest with forests against the products of probabilities that define it.
func TestGuestWithForests(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 5))
	const d, c = 3, 4
	for name, indices := range map[string][][]int{
		"all classes":      {{0, 1, 2, 3}, {3, 2, 1, 0}},
		"some classes":     {{0, 1, 2, 3}, {2, 0}, {1, -1, 0}},
		"an unknown class": {{0, 1, 2}, {1, 0, -1}},
	} {
		p, ws := guestCase(rng, d, indices...), NewWorkspace()
		ws.raw = make([]float32, 2*d)
		for range 50 {
			RawTo(ws.raw[d:], randomInput(rng, d))
			g := []float64{0.5 * rng.Float64(), 0, rng.Float64(), 1e-9}
			want, total := slices.Clone(g), make([]float64, c)
			for k := range want {
				want[k] = max(g[k], floorExpert)
				for i, index := range indices {
					if slices.Contains(index, k) {
						total[k] += float64(1 + i)
					}
				}
			}
			sites := slices.Clone(want)
			for k := range want {
				want[k] = math.Pow(sites[k], 0.9)
			}
			for i, m := range p.Pool.Stack.Members.All {
				logs := make([]float64, len(m.Index))
				m.LogsTo(logs, ws.raw[d:])
				var said, fleet float64
				for at, k := range m.Index {
					if logs[at] = max(math.Exp(logs[at]), floorExpert); k >= 0 {
						said, fleet = said+logs[at], fleet+sites[k]
					}
				}
				for at, k := range m.Index {
					if k >= 0 {
						want[k] *= math.Pow(logs[at]/said/(sites[k]/fleet), 0.4*float64(1+i)/total[k])
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
			p.withForests(g, 1, 1, nil, ws)
			golden.Close(t, name, g, want, 1e-9)
		}
		g := []float64{0.1, 0.2, 0.3, 0.4}
		if n := testing.AllocsPerRun(20, func() { p.withForests(g, 1, 0.3, nil, ws) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Forests that all know the classes leave a product of powers; without forests, or with
// those that know none, the answer stays as it is to the last bit.
func TestGuestProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 6))
	p, ws := guestCase(rng, 2, []int{0, 1, 2, 3}), NewWorkspace()
	ws.raw = []float32{0.3, missing}
	g, logs := []float64{0.4, 0.3, 0.2, 0.1}, make([]float64, 4)
	p.Pool.Stack.Members.All[0].LogsTo(logs, ws.raw)
	want, sum := make([]float64, 4), 0.
	for k := range want {
		want[k] = math.Pow(g[k], guestSites) * math.Exp(guestForests*logs[k])
		sum += want[k]
	}
	for k := range want {
		want[k] /= sum
	}
	got := slices.Clone(g)
	p.withForests(got, 0, 1, nil, ws)
	golden.Close(t, "product", got, want, 1e-12)
	for k := range want {
		want[k] = 0.3*want[k] + 0.7*g[k]
	}
	got = slices.Clone(g)
	p.withForests(got, 0, 0.3, nil, ws)
	golden.Close(t, "mixture with the sites alone", got, want, 1e-12)
	for _, members := range []*MemberForests{nil, {}} {
		got, p.Pool.Stack.Members = slices.Clone(g), members
		if p.withForests(got, 0, 1, nil, ws); !slices.Equal(got, g) {
			t.Error("another answer without forests")
		}
	}
}
