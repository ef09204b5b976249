package fleet

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// In standard units a member whose device has another gain and offset adds the same sums,
// to the last bit, and in raw units other ones.
func TestStandardUnitsIgnoreGainAndOffset(t *testing.T) {
	for _, basis := range []bool{true, false} { // the receiver has a basis, or takes the member's
		r := receiver(t, 6)
		if !basis {
			r.Basis, r.Own = Basis{}, nil
		}
		r.Units = Standard
		a, _ := member(t, "a", 3, 5, Float32, "x", "y")
		want := mergeOf(t, r, a)
		moved, _ := member(t, "a", 3, 5, Float32, "x", "y")
		moved.Scale.Mu, moved.Scale.Sd = []float64{7, 8}, []float64{0.1, 30}
		got := mergeOf(t, r, moved)
		if want.Taken() != 1 || !slices.Equal(got.A, want.A) || !slices.Equal(got.B, want.B) {
			t.Errorf("basis %v: the sums of a device with other units differ", basis)
		}
		if r.Units = Raw; basis && slices.Equal(mergeOf(t, r, moved).A, want.A) {
			t.Error("in raw units the sums are the same: the test shows nothing")
		}
	}
}

// Inducing inputs between a scaling with ranks and one without: by the definition of the
// scalings, through the value that the device would measure.
func TestStandardUnitsBetweenRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	ranked := model.Scale{Mu: []float64{3}, Sd: []float64{2}}
	for range model.RankPoints {
		ranked.Ranks = append(ranked.Ranks, 3+2*rng.NormFloat64())
	}
	slices.Sort(ranked.Ranks)
	plain := model.Scale{Mu: []float64{-10}, Sd: []float64{0.25}}
	for range 20 {
		x := 3 + 2*rng.NormFloat64()
		there, here := make([]float64, 1), make([]float64, 1)
		ranked.To(there, []float64{x})
		plain.To(here, []float64{(x-3)/2*0.25 - 10})
		b := Basis{Params: model.Params{M: 1, D: 1, Theta: []float64{there[0], 0, 0, 0, 0}}, Scale: ranked}
		got := make([]float64, 1)
		if b.convert(got, &plain, Standard); math.Abs(got[0]-here[0]) > 1e-9 {
			t.Errorf("x = %g: coordinate %g, want %g", x, got[0], here[0])
		}
		b.Params.Theta[0], b.Scale = here[0], plain
		if b.convert(got, &ranked, Standard); math.Abs(got[0]-there[0]) > 1e-9 {
			t.Errorf("x = %g: ranked coordinate %g, want %g", x, got[0], there[0])
		}
		on, z := OnDevice(&ranked, plain.Mu, plain.Sd), make([]float64, 1)
		if on.To(z, []float64{(x-3)/2*0.25 - 10}); math.Abs(z[0]-there[0]) > 1e-9 {
			t.Errorf("x = %g: on the device %g, want %g", x, z[0], there[0])
		}
	}
}

// In standard units a sample that another device measures has the leaves of its forest that
// it has there: by the gain and the offset between the two devices.
func TestThresholdsInStandardUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	r := receiver(t, 5)
	r.Units, r.Scale = Standard, model.Scale{Mu: []float64{5, -7}, Sd: []float64{0.25, 100}}
	c, _ := member(t, "a", 3, 4, Bfloat16, "x", "y")
	gain, offset := make([]float64, 2), make([]float64, 2)
	for j := range gain {
		gain[j] = r.Scale.Sd[j] / c.Scale.Sd[j]
		offset[j] = r.Scale.Mu[j] - gain[j]*c.Scale.Mu[j]
	}
	there := Select(grown(1, 2, 2), centred, []int{0, 1})
	c.SetForest(there)
	m := mergeOf(t, r, c)
	if len(m.Forests) != 1 {
		t.Fatalf("%d forests", len(m.Forests))
	}
	here := m.Forests[0].Forest
	for range 300 {
		x := []float64{rng.NormFloat64(), rng.NormFloat64()}
		a, b := make([]float32, 2), make([]float32, 2)
		model.RawTo(a, x)
		model.RawTo(b, []float64{gain[0]*x[0] + offset[0], gain[1]*x[1] + offset[1]})
		for tree := range there.Used {
			if here.Leaf(tree, b) != there.Leaf(tree, a) {
				t.Fatalf("tree %d: %v has another leaf than %v", tree, b, a)
			}
		}
	}
	again, err := DecodeMerge(bits(m))
	if err != nil || !slices.Equal(again.Forests[0].Nodes, here.Nodes) || !bytes.Equal(bits(again), bits(m)) {
		t.Errorf("another forest is journalled: %v", err)
	}
	if !slices.Equal(c.Forest().Nodes, there.Nodes) {
		t.Error("the contribution has changed")
	}
	there.Nodes[5].Threshold, r.Scale.Sd[there.Nodes[5].Feature] = -math.MaxFloat32, 1e30 // the root of the second tree
	c.SetForest(there)
	m = mergeOf(t, r, c)
	if got := m.Forests[0].Nodes[5].Threshold; got != -math.MaxFloat32 {
		t.Errorf("threshold %g, want the least number", got)
	}
	if _, err := DecodeMerge(bits(m)); err != nil {
		t.Error(err)
	}
	r.Basis, r.Own = Basis{}, nil
	if m := mergeOf(t, r, c); m.Taken() != 1 || len(m.Forests) > 0 {
		t.Error("a receiver without a scaling takes a forest")
	}
}

// The comparison of a merge is the mean trust that merges in either units find, and no
// part of what is journalled.
func TestComparison(t *testing.T) {
	r, w, all := tested(t)
	merges := map[Units]*Merge{}
	for _, u := range []Units{Raw, Standard} {
		r.Units = u
		merges[u] = mergeOf(t, r, all...)
	}
	for u, m := range merges {
		if m.Comparison.Members != 3 {
			t.Fatalf("units %d: %d members were compared", u, m.Comparison.Members)
		}
		var used, other float64
		for i := range m.Members {
			used += m.Members[i].Trust / 3
			other += merges[u.other()].Members[i].Trust / 3
		}
		if c := m.Comparison; math.Abs(c.Used-used) > 1e-9 || math.Abs(c.Other-other) > 1e-9 || math.Abs(used-other) < 0.1 {
			t.Errorf("units %d: comparison %+v, want %g and %g", u, c, used, other)
		}
		again, err := DecodeMerge(bits(m))
		if err != nil || again.Comparison.Members != 0 || !bytes.Equal(bits(again), bits(m)) {
			t.Errorf("units %d: the comparison is journalled (%v)", u, err)
		}
	}
	for _, c := range all {
		c.Scale = r.Scale
	}
	if c := mergeOf(t, r, all...).Comparison; c.Members != 0 {
		t.Errorf("members with the receiver's scaling are compared: %+v", c)
	}
	w.Y = w.Y[:MinWindow-1]
	if c := mergeOf(t, r, all...).Comparison; c.Members != 0 {
		t.Errorf("compared by %d labels", len(w.Y))
	}
}

// tested returns a receiver with labels, and three members whose scalings differ.
func tested(t *testing.T) (*Receiver, *Window, []*Contribution) {
	const m, n = 6, 80
	r := receiver(t, m)
	basis := model.NewBasis(m, 2)
	if _, err := basis.Set(&r.Params); err != nil {
		t.Fatal(err)
	}
	rng, x := rand.New(rand.NewPCG(4, 4)), make([]float64, 2*n)
	w := &Window{Classes: []string{"x", "y"}, Known: []bool{true, true}, A: make([]float64, 2*m*m), B: make([]float64, 2*m), Eps: 0.01}
	for i := range n {
		w.Y = append(w.Y, rng.IntN(2))
		x[2*i], x[2*i+1] = 1.5*float64(1-2*w.Y[i])+0.4*rng.NormFloat64(), 0.4*rng.NormFloat64()
	}
	w.W, w.Q = make([]float64, n*m), make([]float64, n)
	basis.FeaturesTo(make([]float64, n*m), w.W, w.Q, n, x, make([]float64, 2*n), make([]float64, n))
	r.Window, r.Own, r.Trust = w, nil, math.Inf(-1)
	var all []*Contribution
	for i := range 3 {
		c, _ := member(t, string(rune('a'+i)), uint64(i), 5, Float32, "x", "y")
		c.Scale = model.Scale{Mu: []float64{float64(i), 1}, Sd: []float64{2, 0.5 + float64(i)}}
		all = append(all, c)
	}
	return r, w, all
}
