package fleet

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"edge/online/natural"
	"edge/online/wire"
)

var ownExperts = natural.Experts{Own: 3, Fleet: 3, Forest: true}

// blended returns a contribution with factors of two exponents, of shifts by those numbers.
func blended(t testing.TB, name string, experts natural.Experts, shift float64) *Contribution {
	t.Helper()
	c, _ := member(t, name, 3, 4, Bfloat16, "x", "y")
	x := &natural.Exponents{Experts: experts}
	for range natural.MaxFactors {
		x.Factors = append(x.Factors, &natural.Factor{Precision: []float64{3, 0, 1, 2}, Shift: []float64{shift, -shift}})
	}
	c.SetExponents(x)
	return c
}

// A contribution carries the factors of exponents, with a forest and without; no damaged one
// is accepted.
func TestContributionWithExponents(t *testing.T) {
	for _, forest := range []bool{false, true} {
		c := blended(t, "a", ownExperts, 1.5)
		if forest {
			c.SetForest(Select(grown(1, 2, 2), centred, []int{0, 1}))
		}
		data := c.plain()
		got, err := Decode(data)
		if err != nil || !bytes.HasPrefix(data, []byte("EFC3")) {
			t.Fatalf("%v: %q", err, data[:4])
		}
		if x := got.Exponents(); x == nil || x.Experts != ownExperts || len(x.Factors) != 4 || x.Factors[3].Shift[1] != -1.5 || x.Factors[3].Precision[2] != 1 {
			t.Errorf("other exponents after decoding: %+v", x)
		}
		if (got.Forest() != nil) != forest {
			t.Errorf("a forest: %v, want %v", !forest, forest)
		}
		refusesDamage(t, data, Decode, ErrContribution)
	}
}

// Parts that occur twice, have no name or hold unsound factors are refused. One that only a newer program knows is passed over.
func TestParts(t *testing.T) {
	part := func(name string, data []byte) []byte {
		var e wire.Encoder
		e.String(name)
		e.Block(data)
		return e.Buf
	}
	c := blended(t, "a", ownExperts, 1)
	good := part(exponentsName, c.exponents)
	negative := blended(t, "a", ownExperts, 1).Exponents()
	negative.Factors[1].Precision[0] = -40
	c.SetExponents(negative)
	bad := part(exponentsName, c.exponents)
	c.SetExponents(nil)
	plain := c.plain()
	for name, test := range map[string]struct {
		parts []byte
		want  string // in the error; "": there is none
	}{
		"one":        {good, ""},
		"newer":      {append(part("newer", []byte{1, 2}), good...), ""},
		"twice":      {append(bytes.Clone(good), good...), "twice"},
		"no name":    {part("", []byte{1}), "no name"},
		"unsound":    {bad, "cannot teach"},
		"too long":   {part(exponentsName, append(bytes.Clone(good[2+len(exponentsName):]), 0)), "exponents"},
		"no forest":  {part(forestsName, []byte{1}), "forest"},
		"open block": {good[: len(good)-3 : len(good)-3], "above"},
	} {
		data := sealed(append(append([]byte(partsMagic), plain[len(magic):len(plain)-wire.ChecksumBytes]...), append(test.parts, 0, 0, 0, 0)...))
		_, err := Decode(data)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (!errors.Is(err, ErrContribution) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// A merge has the product of the members that are taken, of the receiver's experts and
// horizons, and is decoded as it was.
func TestMergeOfExponents(t *testing.T) {
	r := receiver(t, 5)
	r.Experts = ownExperts
	a, b, other, refused, lengths := blended(t, "a", ownExperts, 1), blended(t, "b", ownExperts, 2), blended(t, "c", natural.Experts{Own: 2}, 4), blended(t, "d", ownExperts, 8), blended(t, "e", ownExperts, 16)
	refused.Features = 8
	lengths.Horizons[2] = 50
	m := mergeOf(t, r, a, b, other, refused, lengths)
	if m.Taken() != 4 || m.Exponents == nil || m.Exponents.Factors[0].Shift[0] != 3 || m.Exponents.Factors[2].Precision[0] != 6 {
		t.Fatalf("%d members, exponents %+v", m.Taken(), m.Exponents)
	}
	data := bits(m)
	again, err := DecodeMerge(data)
	if err != nil || !bytes.Equal(bits(again), data) {
		t.Fatalf("another merge after decoding (%v)", err)
	}
	refusesDamage(t, data, DecodeMerge, ErrMerge)
	if again := bits(mergeOf(t, r, lengths, b, refused, a, other)); !bytes.Equal(again, data) {
		t.Error("another order leads to another merge")
	}
	if m := mergeOf(t, r, other, refused, lengths); m.Exponents != nil {
		t.Error("exponents of other experts are taken")
	}
}
