package fleet

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"edge/model"
)

// sharer returns a receiver that shares a basis, and a contribution of its own.
func sharer(t testing.TB, m int, has Birth) *Receiver {
	r := receiver(t, m)
	r.Shared, r.Inducing, r.Birth = true, m, has
	return r
}

func of(t testing.TB, b Birth, seed uint64, m int) *Common {
	c, _ := member(t, b.Author, seed, m, Float32, "x", "y")
	return newCommon(b, &c.Header, &c.Basis)
}

func TestBirthsAreOrdered(t *testing.T) {
	all := []Birth{{}, {1, "b", 5}, {1, "a", 1}, {1, "a", 2}, {2, "b", 1}, {2, "a", 0}} // each replaces those before it
	ids := map[uint64]bool{}
	for i, b := range all {
		for j, o := range all {
			if b.Before(o) != (i < j) {
				t.Errorf("%v before %v: %v", b, o, b.Before(o))
			}
		}
		if ids[b.ID()] || b.ID()>>48 != b.Number {
			t.Errorf("%v has the identity %x", b, b.ID())
		}
		ids[b.ID()] = true
	}
	for _, number := range []uint64{1, 2, lastBirth / 2, lastBirth - 1, lastBirth} { // each of them can be replaced
		b, o := Birth{number, "a", 5}, Birth{afterBirth(number), "z", 0}
		if !b.Before(o) || o.Before(b) || o.Number < 1 || o.Number > lastBirth || !(Birth{}).Before(o) {
			t.Errorf("%v before %v: %v", b, o, b.Before(o))
		}
	}
	s := NewSet(0)
	for i, want := range []bool{true, true, false, true, false} {
		if got := s.Offer(&Common{Birth: all[[]int{1, 2, 2, 5, 4}[i]]}); got != want {
			t.Errorf("offer %d: taken %v", i, got)
		}
	}
	if s.Common().Birth != all[5] || s.Clone().Common() != s.Common() {
		t.Errorf("the set has %v", s.Common().Birth)
	}
}

// A common basis is decoded as it was put in, and no damaged one is.
func TestCommonIsEncoded(t *testing.T) {
	c := of(t, Birth{3, "a", 77}, 4, 5)
	c.Scale.Ranks = slices.Repeat([]float64{0.25}, 2*model.RankPoints)
	data, err := c.AppendBinary([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	data = data[len("before"):]
	d, err := DecodeCommon(data)
	if err != nil || d.Birth != c.Birth || d.Features != c.Features || !slices.Equal(d.Classes, c.Classes) || !slices.Equal(d.Counts, c.Counts) ||
		!d.Basis.equal(&c.Basis, Raw) || math.Abs(d.Params.Eps()-c.Params.Eps()) > 1e-7 {
		t.Errorf("another basis after decoding: %+v, %v", d, err)
	}
	refusesDamage(t, data, DecodeCommon, ErrContribution)
	wide := *c
	wide.Scale.Ranks = slices.Repeat([]float64{1e39}, 2*model.RankPoints)
	if _, err := newCommon(c.Birth, &Header{Classes: c.Classes, Counts: c.Counts}, &wide.Basis).AppendBinary(nil); err != nil {
		t.Errorf("with quantiles beyond 32 bits: %v", err)
	}
	for what, change := range map[string]func(*Common){
		"number 0": func(c *Common) { c.Number = 0 }, "number 65536": func(c *Common) { c.Number = 1 << 16 }, "author": func(c *Common) { c.Author = "" },
		"input": func(c *Common) { c.Params.Z()[0] = math.NaN() }, "scale": func(c *Common) { c.Scale.Sd[1] = 0 },
	} {
		bad := *c
		bad.Basis = c.Basis.clone()
		change(&bad)
		if _, err := bad.AppendBinary(nil); !errors.Is(err, ErrContribution) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b []uint64 // labels of x, y; and of y, z
		want float64
	}{{[]uint64{5, 5}, []uint64{10, 0}, 0.5}, {[]uint64{0, 7}, []uint64{2, 0}, 1}, {[]uint64{9, 1}, []uint64{1, 3}, 0.1}, {[]uint64{0, 0}, []uint64{1, 1}, 0}} {
		if got := overlap([]string{"x", "y"}, c.a, []string{"y", "z"}, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v and %v: %g, want %g", c.a, c.b, got, c.want)
		}
	}
	if !alike([]string{"x"}, []uint64{49}, []string{"y"}, []uint64{100}) || alike([]string{"x"}, []uint64{50}, []string{"y"}, []uint64{100}) {
		t.Error("50 labels do not decide with whom a basis is shared")
	}
}

// What a merge does to the basis, by what the receiver has and the set knows.
func TestSharing(t *testing.T) {
	const m = 6
	one, other, two := Birth{1, "a", 5}, Birth{1, "b", 5}, Birth{2, "b", 6}
	set := func(c *Common, request BasisRequest) *Set {
		s := NewSet(0)
		a, _ := member(t, "a", 3, m, Float32, "x", "y")
		s.Put(a)
		s.common, s.BasisRequest = c, request
		return s
	}
	wide, foreign, features := of(t, one, 4, m+1), of(t, one, 4, m), of(t, one, 4, m)
	foreign.Counts, features.Features = []uint64{40, 0}, 8
	old := func(r *Receiver) { r.Own.Counts = []uint64{0, 100} }
	for name, c := range map[string]struct {
		has      Birth
		set      *Set
		change   func(*Receiver)
		want     Birth
		adopts   bool
		announce bool
		unfit    Reason
	}{
		"none, not all messages known": {Birth{}, set(nil, BasisRequest{Tag: 9}), nil, Birth{}, false, false, None},
		"none":                         {Birth{}, set(nil, BasisRequest{Vacant: true, Tag: 9}), nil, Birth{1, "own", 9}, false, true, None},
		"lost by the broker":           {two, set(nil, BasisRequest{Vacant: true, Tag: 9}), nil, two, false, true, None},
		"offered":                      {Birth{}, set(of(t, one, 4, m), BasisRequest{}), nil, one, true, false, None},
		"a smaller name":               {other, set(of(t, one, 4, m), BasisRequest{}), nil, one, true, false, None},
		"a greater name":               {one, set(of(t, other, 4, m), BasisRequest{}), nil, one, false, true, None},
		"a newer one":                  {one, set(of(t, two, 4, m), BasisRequest{}), nil, two, true, false, None},
		"the same":                     {one, set(of(t, one, 4, m), BasisRequest{}), nil, one, false, false, None},
		"in the warm-up":               {one, set(of(t, one, 4, m), BasisRequest{}), func(r *Receiver) { r.Own, r.Basis = nil, Basis{} }, one, true, false, None},
		"in the warm-up, none":         {Birth{}, set(nil, BasisRequest{Vacant: true}), func(r *Receiver) { r.Own, r.Basis = nil, Basis{} }, Birth{}, false, false, None},
		"of another size":              {Birth{}, set(wide, BasisRequest{}), nil, Birth{}, false, false, OtherInducing},
		"of other features":            {Birth{}, set(features, BasisRequest{}), nil, Birth{}, false, false, OtherInputs},
		"of other classes":             {Birth{}, set(foreign, BasisRequest{}), old, Birth{}, false, false, OtherClasses},
		"rebase first":                 {one, set(of(t, one, 4, m), BasisRequest{Rebase: First, Tag: 8}), nil, Birth{2, "own", 8}, false, true, None},
		"rebase pooled":                {one, set(of(t, two, 4, m), BasisRequest{Rebase: Pooled, Tag: 8}), nil, Birth{3, "own", 8}, true, true, None},
		"rebase the last number":       {Birth{lastBirth, "a", 5}, set(of(t, Birth{lastBirth, "a", 5}, 4, m), BasisRequest{Rebase: First, Tag: 8}), nil, Birth{1, "own", 8}, false, true, None},
		"offered after the last":       {Birth{lastBirth, "a", 5}, set(of(t, one, 4, m), BasisRequest{}), nil, one, true, false, None},
	} {
		t.Run(name, func(t *testing.T) {
			r := sharer(t, m, c.has)
			if c.change != nil {
				c.change(r)
			}
			got, err := r.Merge(c.set)
			if err != nil {
				t.Fatal(err)
			}
			s := got.Sharing
			if s.Birth != c.want || (s.Start != nil) != c.adopts || (got.Announce != nil) != c.announce || got.Unfit != c.unfit {
				t.Errorf("%+v, announces %v, unfit %q", s, got.Announce, got.Unfit)
			}
			if got.Announce != nil && got.Announce.Birth != c.want {
				t.Errorf("announces %v", got.Announce.Birth)
			}
			again, err := DecodeMerge(bits(got))
			if err != nil || !bytes.Equal(bits(again), bits(got)) || again.Sharing.Birth != s.Birth || again.Sharing.Members != s.Members || (again.Sharing.Start != nil) != c.adopts {
				t.Fatalf("another merge after decoding: %+v, %v", again, err)
			}
			data := bits(got)
			for i := range data {
				if _, err := DecodeMerge(data[:i]); !errors.Is(err, ErrMerge) {
					t.Fatalf("the first %d bytes: %v", i, err)
				}
			}
		})
	}
	if data := bits(mergeOf(t, receiver(t, m))); string(data[:4]) != mergeMagic {
		t.Errorf("a receiver with a basis of its own writes %s", data[:4])
	}
}

// The parameters move to the mean of the trusted members with the same basis, classes
// alike and 50 labels, each by 1 at most.
func TestAverage(t *testing.T) {
	const m = 6
	birth := Birth{1, "a", 5}
	r, s := sharer(t, m, birth), NewSet(0)
	r.Own.Counts = []uint64{50, 50}
	var want []float64
	add := func(name string, seed uint64, change func(*Contribution)) {
		c, _ := member(t, name, seed, m, Float32, "x", "y")
		c.BasisEpoch = birth.ID()
		change(c)
		s.Put(c)
	}
	takes := func(c *Contribution) { want = append(want, c.Params.Theta...) }
	add("a", 3, takes)
	add("b", 4, takes)
	add("few", 5, func(c *Contribution) { c.N, c.Counts = 49, []uint64{20, 20} })
	add("other basis", 6, func(c *Contribution) { c.BasisEpoch = Birth{1, "b", 5}.ID() })
	add("other classes", 7, func(c *Contribution) { c.Classes = []string{"x", "z"}; c.Counts = []uint64{1, 100} })
	add("refused", 8, func(c *Contribution) { c.Features = 8 })
	got, err := r.Merge(s)
	if err != nil || got.Sharing.Members != 3 {
		t.Fatalf("%+v, %v", got.Sharing, err)
	}
	n, clipped := len(r.Params.Theta), 0
	for i, own := range r.Params.Theta {
		move := (want[i]+want[n+i]+own)/3 - own
		if math.Abs(move) > 1 {
			clipped++
		}
		if move = min(max(move, -1), 1); math.Abs(float64(got.Sharing.Move[i])-move) > 1e-6 {
			t.Errorf("parameter %d moves by %g, want %g", i, got.Sharing.Move[i], move)
		}
	}
	if clipped == 0 || clipped == n {
		t.Errorf("%d of %d moves are clipped: the test shows nothing", clipped, n)
	}
	r.Own.N = 49 // too few labels: the mean of the others
	if got, _ = r.Merge(s); got.Sharing.Members != 2 || math.Abs(float64(got.Sharing.Move[0])-min(max((want[0]+want[n])/2-r.Params.Theta[0], -1), 1)) > 1e-6 {
		t.Errorf("with few labels: %d members, moves by %g", got.Sharing.Members, got.Sharing.Move[0])
	}
	*r.Params.LogitEps() = math.Inf(-1)
	if got, _ = r.Merge(s); got.Sharing.Move[n-1] != 0 {
		t.Errorf("a label noise of 0 moves by %g", got.Sharing.Move[n-1])
	}
	if _, err := DecodeMerge(bits(got)); err != nil {
		t.Error(err)
	}
	got.Sharing.Move[2] = 1.5
	if _, err := DecodeMerge(bits(got)); !errors.Is(err, ErrMerge) {
		t.Errorf("a move by 1.5: %v", err)
	}
}

// The sums of a receiver that adopts a basis are those of one that has it, and in standard
// units the device keeps its own scaling.
func TestAdoptionSumsOnTheNewBasis(t *testing.T) {
	for _, u := range []Units{Raw, Standard} {
		r, s := sharer(t, 6, Birth{}), NewSet(0)
		r.Units = u
		start := of(t, Birth{1, "a", 5}, 4, 6)
		start.Scale = model.Scale{Mu: []float64{0, -1}, Sd: []float64{1, 2}}
		s.Offer(start)
		for i, name := range []string{"a", "b"} {
			c, _ := member(t, name, uint64(3+i), 5, Float32, "x", "y")
			s.Put(c)
		}
		got, err := r.Merge(s)
		if err != nil {
			t.Fatal(err)
		}
		has := receiver(t, 6)
		has.Units, has.Basis.Params = u, start.Params
		if u == Raw {
			has.Scale = start.Scale
		}
		want, err := has.Merge(s)
		if err != nil || got.Taken() != 2 || !slices.Equal(got.A, want.A) || !slices.Equal(got.B, want.B) || !got.Basis.equal(&want.Basis, Raw) {
			t.Errorf("units %d: other sums (%v)", u, err)
		}
	}
	// Members that have the basis already, with enough labels, say where it is now.
	r, s, birth := sharer(t, 5, Birth{}), NewSet(0), Birth{1, "a", 5}
	s.Offer(of(t, birth, 4, 5))
	c, _ := member(t, "a", 3, 5, Float32, "x", "y")
	c.BasisEpoch = birth.ID()
	s.Put(c)
	if got, _ := r.Merge(s); !slices.Equal(got.Sharing.Start.Params.Z(), c.Params.Z()) {
		t.Error("the basis does not begin where its members are")
	}
}

func FuzzDecodeCommon(f *testing.F) {
	data, _ := of(f, Birth{3, "a", 77}, 4, 3).AppendBinary(nil)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCommon(sealed(data))
		if err != nil {
			return
		}
		again, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatalf("accepted, and refused after encoding: %v", err)
		}
		if d, err := DecodeCommon(again); err != nil || d.Birth != c.Birth || !d.Basis.equal(&c.Basis, Raw) {
			t.Errorf("another basis after encoding: %v", err)
		}
	})
}

func FuzzDecodeMerge(f *testing.F) {
	r := sharer(f, 3, Birth{})
	s := NewSet(0)
	a, _ := member(f, "a", 3, 3, Bfloat16, "x", "y")
	s.Put(a)
	s.Offer(of(f, Birth{1, "a", 5}, 4, 3))
	m, err := r.Merge(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bits(m))
	r.Experts = ownExperts
	s.Put(blended(f, "b", ownExperts, 1))
	if m, err = r.Merge(s); err != nil || m.Exponents == nil {
		f.Fatalf("%v: exponents %v", err, m.Exponents)
	}
	f.Add(bits(m))
	mixer := receiver(f, 3)
	mixer.Mix = true
	c, _ := member(f, "c", 4, 3, Bfloat16, "y", "z")
	if m = mergeOf(f, mixer, c); m.Unseen == nil {
		f.Fatal("no sums for unseen classes")
	}
	f.Add(bits(m))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMerge(sealed(data))
		if err != nil {
			return
		}
		again, err := DecodeMerge(bits(m))
		if err != nil || !bytes.Equal(bits(again), bits(m)) {
			t.Errorf("another merge after encoding: %v", err)
		}
	})
}
