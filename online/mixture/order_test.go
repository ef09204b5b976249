package mixture

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// slowOrder counts the moves of labels over c classes and weighs the priors, one label
// after the other, from all labels before it.
func slowOrder(labels []int, c int, pi []float64) (counts [][]uint32, evidence [][]float64) {
	for d := 1; d <= 512; d *= 2 {
		n := make([]uint32, c*c)
		e := make([]float64, model.Priors)
		for t := d; t < len(labels); t++ {
			a, b := labels[t-d], labels[t]
			var row, all, stayed float64
			for k := range c {
				row += float64(n[a*c+k])
				stayed += float64(n[k*c+k])
				for l := range c {
					all += float64(n[k*c+l])
				}
			}
			stay := (stayed + 1) / (all + 2)
			bases := []float64{pi[b], 1 / float64(c), stay, stay}
			if a != b {
				bases[2], bases[3] = (1-stay)*pi[b]/(1-pi[a]), (1-stay)/float64(c-1)
			}
			for i, mass := range []float64{0.5, 4, 32} {
				for j, base := range bases {
					p := (float64(n[a*c+b]) + mass*base) / (row + mass)
					e[4*i+j] = e[4*i+j]*(1-1./2000) + math.Log(p)/math.Sqrt(float64(d))
				}
			}
			n[a*c+b]++
		}
		counts, evidence = append(counts, n), append(evidence, e)
	}
	return counts, evidence
}

// persistent draws labels over c classes that mostly stay.
func persistent(rng *rand.Rand, n, c int) []int {
	labels := make([]int, n)
	for i := range labels {
		if i > 0 && rng.Float64() < 0.9 {
			labels[i] = labels[i-1]
		} else {
			labels[i] = rng.IntN(c)
		}
	}
	return labels
}

// Moves and evidence at every distance, the latest label, and a state that carries on
// in the same bytes.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	labels := persistent(rng, 1500, 3)
	m := newTestMixture()
	m.view.Counts = []uint64{5, 1, 9}
	encode := func(m *Mixture) []byte {
		var e wire.Encoder
		m.EncodeOrder(&e)
		return e.Buf
	}
	for i, k := range labels {
		if i == 700 { // carried on by another one
			again := newTestMixture()
			again.view.Counts = m.view.Counts
			d := wire.NewDecoder(encode(m), "", wire.ErrState)
			if again.DecodeOrder(d); d.End() != nil {
				t.Fatal(d.Err())
			}
			m = again
		}
		m.NextLabel(k)
		if rng.IntN(30) == 0 { // often or seldom, it makes no difference
			m.CountMoves()
		}
	}
	m.CountMoves()
	o := &m.view.Pool.Order
	if o.Labels != 1500 || o.Last != labels[1499] {
		t.Errorf("%d labels, the last one %d; want 1500 and %d", o.Labels, o.Last, labels[1499])
	}
	counts, evidence := slowOrder(labels, 3, []float64{6. / 18, 2. / 18, 10. / 18})
	for j := range o.Steps {
		if !slices.Equal(o.Steps[j].Counts, counts[j]) {
			t.Errorf("moves at distance %d are %v, want %v", 1<<j, o.Steps[j].Counts, counts[j])
		}
		closeTo(t, "evidence", o.Steps[j].Evidence[:], evidence[j], 1e-9)
	}
}

// A class that is removed takes its moves along, and the moves to and from its labels
// are not counted any more; one that is added has none.
func TestOrderOfOtherClasses(t *testing.T) {
	m := newTestMixture()
	for _, k := range []int{0, 1, 1, 2, 0} {
		m.NextLabel(k)
	}
	o := &m.view.Pool.Order
	recent := slices.Clone(o.Recent[:3])
	want := func(j int, counts ...uint32) {
		t.Helper()
		m.CountMoves()
		if got := o.Steps[j].Counts; !slices.Equal(got, counts) {
			t.Errorf("moves at distance %d are %v, want %v", 1<<j, got, counts)
		}
	}
	want(0, 0, 1, 0, 0, 1, 1, 1, 0, 0)
	want(1, 0, 1, 0, 1, 0, 1, 0, 0, 0)
	m.DropClass(1, []int{0, -1, 1})
	m.view.Names, m.view.Counts = []string{"a", "c"}, make([]uint64, 2)
	want(0, 0, 0, 1, 0)
	want(1, 0, 0, 0, 0)
	if o.Steps[0].All != 1 || o.Steps[0].Stayed != 0 {
		t.Errorf("%d moves, %d of them stayed; want 1 and 0", o.Steps[0].All, o.Steps[0].Stayed)
	}
	closeTo(t, "latest labels", o.Recent[:2], []float64{recent[0], recent[2]}, 0)
	m.NextLabel(1) // the labels before: a . . c a
	want(0, 0, 1, 1, 0)
	want(1, 0, 0, 0, 1)
	want(2, 1, 0, 0, 0)
	m.view.Names, m.view.Counts = []string{"a", "c", "d"}, make([]uint64, 3)
	m.Grow(2)
	m.NextLabel(2)
	want(0, 0, 1, 0, 1, 0, 1, 0, 0, 0)
	closeTo(t, "latest d", []float64{o.Recent[2]}, []float64{1}, 0)
	m.DropClass(2, []int{0, 1, -1})
	if o.Last != -1 {
		t.Errorf("last label %d, want none", o.Last)
	}
}

// Few labels without an order are evidence for the priors of large mass, which end
// near the frequencies; labels that dwell, for small ones.
func TestOrderLearnsPriors(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for name, c := range map[string]struct {
		next  func(int) int
		small bool
	}{
		"without order": {func(int) int { return rng.IntN(3) }, false},
		"in a circle":   {func(k int) int { return (k + 1) % 3 }, true},
	} {
		m, k := newTestMixture(), 0
		for range 60 {
			k = c.next(k)
			m.NextLabel(k)
		}
		e := m.view.Pool.Order.Steps[0].Evidence
		if small := slices.Max(e[:4]) > slices.Max(e[8:]); small != c.small {
			t.Errorf("%s: evidence %.2f of the priors of mass 0.5, %.2f of mass 32", name, e[:4], e[8:])
		}
	}
}

// The moves of a state of an earlier program become those of the distance 1.
func TestDecodeMoves(t *testing.T) {
	var e wire.Encoder
	m := newTestMixture()
	e.Int(len(m.members))
	e.Floats(m.members)
	e.Floats(m.pending)
	e.Bool(true)
	e.Floats([]float64{4, 1, 0, 2, 5, 0, 0, 0, 7})
	e.Int(3)
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	if m.DecodePool(d, 2); d.End() != nil {
		t.Fatal(d.Err())
	}
	m.NextLabel(0)
	if got, want := m.view.Pool.Order.Steps[0].Counts, []uint32{4, 1, 0, 2, 5, 0, 1, 0, 7}; !slices.Equal(got, want) {
		t.Errorf("moves %v, want %v", got, want)
	}
}

func FuzzDecodeOrder(f *testing.F) {
	m := newTestMixture()
	for _, k := range []int{0, 1, 1, 2, 0, 0, 0} {
		m.NextLabel(k)
		var e wire.Encoder
		m.EncodeOrder(&e)
		f.Add(e.Buf)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newTestMixture()
		d := wire.NewDecoder(data, "", wire.ErrState)
		m.DecodeOrder(d)
		m.NextLabel(1) // what was accepted can be used
		for _, v := range m.view.Pool.Order.Recent {
			if v != v {
				t.Fatal("the latest labels hold NaN")
			}
		}
	})
}

// Foresee leaves the order as it was, for any labels that may come.
func TestForeseeChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	m, ws := newTestMixture(), model.NewWorkspace()
	encode := func() []byte {
		var e wire.Encoder
		m.EncodeOrder(&e)
		return e.Buf
	}
	for n := range 200 {
		before, sums := encode(), m.view.Pool.Order.Steps[0]
		labels := make([]int, rng.IntN(9))
		for i := range labels {
			labels[i] = rng.IntN(4) - 1
		}
		m.Foresee(labels, ws)
		o := &m.view.Pool.Order
		if !bytes.Equal(encode(), before) || o.Steps[0].All != sums.All || o.Steps[0].Stayed != sums.Stayed {
			t.Fatalf("another order after label %d", n)
		}
		k := rng.IntN(3)
		if m.NextLabel(k); o.Last != k {
			t.Fatalf("the last label is %d, want %d", o.Last, k)
		}
	}
}
