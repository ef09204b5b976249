package fleet

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// encoded returns a forest as encodeForest writes it.
func encoded(f *model.Forest) []byte {
	var e wire.Encoder
	encodeForest(&e, f)
	return e.Buf
}

// fieldsOf returns the fields of a forest; nil if it has none.
func fieldsOf(f *model.Forest) []byte {
	var e wire.Encoder
	if !appendFields(&e, encoded(f), f.Classes) {
		return nil
	}
	return e.Buf
}

// A forest is the same after it was written by its fields and read, with weights of every size.
func TestFields(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for classes := 2; classes < 5; classes++ {
		f := grown(uint64(classes), classes, 7)
		for i := range f.Weights {
			f.Weights[i] = float32(rng.NormFloat64() * math.Exp(3*rng.NormFloat64()))
		}
		f.Weights[0], f.Weights[1], f.Bias[0] = 1e9, -1e-9, float32(math.Copysign(0, -1))
		all := make([]int, classes)
		for k := range all {
			all[k] = k
		}
		f = Select(f, centred, all)
		fields := fieldsOf(f)
		if fields == nil {
			t.Fatalf("%d classes: no fields", classes)
		}
		d := wire.NewDecoder(fields, "", ErrContribution)
		got := readFields(d, classes)
		if err := d.End(); err != nil || !bytes.Equal(got, encoded(f)) {
			t.Errorf("%d classes: another forest (%v)", classes, err)
		}
		for n := range fields {
			d := wire.NewDecoder(fields[:n], "", ErrContribution)
			if readFields(d, classes); !errors.Is(d.End(), ErrContribution) {
				t.Errorf("%d classes: %d of %d bytes are accepted", classes, n, len(fields))
			}
		}
	}
}

// A contribution of a forest goes by its fields, and one of an earlier program, whose weights
// are no whole units, as that has written it. Both are read.
func TestContributionOfEarlierForest(t *testing.T) {
	c, _ := member(t, "a", 3, 4, Bfloat16, "x", "y")
	f := Select(grown(1, 2, 2), centred, []int{0, 1})
	for name, change := range map[string]struct {
		weight  float32
		opening string
	}{
		"units":          {-3 * unit, partsMagic},
		"half a unit":    {unit / 2, forestMagic},
		"zero with sign": {float32(math.Copysign(0, -1)), forestMagic},
	} {
		f.Weights[0] = change.weight
		c.SetForest(f)
		if plain := c.plain(); string(plain[:4]) != change.opening {
			t.Errorf("%s: the contribution begins with %q, want %q", name, plain[:4], change.opening)
		}
		data, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := Decode(data)
		if err != nil || !bytes.Equal(got.forest, c.forest) {
			t.Errorf("%s: another forest (%v)", name, err)
		}
	}
}

// Fields that are out of range are refused before memory is made for them.
func TestFieldsOutOfRange(t *testing.T) {
	const classes = 2
	d := wire.NewDecoder(deflate([]byte{8}, make([]byte, 8)), "", ErrContribution)
	if readFields(d, classes); !errors.Is(d.End(), ErrContribution) {
		t.Errorf("no tree: %v", d.Err())
	}
	for name, write := range map[string]func(e *wire.Encoder){
		"too many trees":  func(e *wire.Encoder) { e.Int(maxTrees + 1); e.Int(2) },
		"too many leaves": func(e *wire.Encoder) { e.Int(1); e.Int(maxLeaves + 1) },
		"promises": func(e *wire.Encoder) {
			e.Int(maxTrees)
			e.Int(maxLeaves)
			e.Ints(slices.Repeat([]int{maxLeaves}, maxTrees))
		},
		"large weight": func(e *wire.Encoder) {
			e.Int(1)
			e.Int(2)
			e.Int(1)
			e.Uint(2 * (maxWeight + 64) / unit)
			e.Ints([]int{0, 0, 0})
		},
		"fine weight": func(e *wire.Encoder) {
			e.Int(1)
			e.Int(2)
			e.Int(1)
			e.Uint(2 * 257) // takes nine bits
			e.Ints([]int{0, 0, 0})
		},
	} {
		var e wire.Encoder
		write(&e)
		d := wire.NewDecoder(e.Buf, "", ErrContribution)
		if readPlainFields(d, classes); d.Err() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
