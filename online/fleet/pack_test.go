package fleet

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// What is packed comes back, whatever its length, and no damaged form is accepted. A
// contribution is packed, and read as one that is not.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 1, 2, 3, 100, 4097} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rng.IntN(256))
		}
		for _, size := range []Precision{Bfloat16, Float32} {
			packed := pack([]byte("before"), data, size)
			if got, err := unpack(packed[len("before"):]); err != nil || !bytes.Equal(got, data) || !bytes.HasPrefix(packed, []byte("before")) {
				t.Errorf("%d bytes in numbers of %d: %v", n, size, err)
			}
		}
	}
	c, _ := member(t, "a", 3, 30, Bfloat16, "x", "y")
	data, plain := encode(t, c), c.plain()
	if !bytes.HasPrefix(data, []byte(packedMagic)) || len(data) >= len(plain)*9/10 {
		t.Errorf("%d bytes in place of %d", len(data), len(plain))
	}
	for _, form := range [][]byte{data, plain} {
		if got, err := Decode(form); err != nil || !bytes.Equal(got.plain(), plain) {
			t.Errorf("another contribution from %q: %v", form[:4], err)
		}
	}
	refusesDamage(t, data, Decode, ErrContribution)
	if _, err := Decode([]byte("EFC5 of a newer program")); !errors.Is(err, ErrContribution) || !strings.Contains(err.Error(), "format EFC5") {
		t.Errorf("a newer format: %v", err)
	}
	if _, err := Decode([]byte("garbage, or another message")); !errors.Is(err, ErrContribution) || !strings.Contains(err.Error(), "does not begin with EFC1 to EFC4") {
		t.Errorf("garbage: %v", err)
	}
}

// By hand: the first bytes of all numbers, then the second ones.
func TestPlanes(t *testing.T) {
	data := []byte{1, 10, 2, 20, 3}
	if got := planes(data, 2); !slices.Equal(got, []byte{1, 2, 3, 10, 20}) || !slices.Equal(join(got, 2), data) {
		t.Errorf("planes %v", got)
	}
	if got := planes(data, 4); !slices.Equal(got, []byte{1, 3, 10, 2, 20}) || !slices.Equal(join(got, 4), data) {
		t.Errorf("planes %v", got)
	}
}

// Announced sizes are checked before memory is made, and exactly they must be packed.
func TestPackedOutOfRange(t *testing.T) {
	stream := func(n int) []byte {
		var b bytes.Buffer
		w, _ := flate.NewWriter(&b, flate.BestCompression)
		_, _ = w.Write(make([]byte, n))
		_ = w.Close()
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		n, size int
		packed  []byte
	}{
		"too large":         {MaxBytes + 1, 2, stream(10)},
		"a bomb":            {1 << 20, 2, stream(1 << 20)},
		"numbers of 0":      {10, 0, stream(10)},
		"numbers of 5":      {10, 5, stream(10)},
		"more":              {10, 2, stream(11)},
		"fewer":             {10, 2, stream(9)},
		"something behind":  {10, 2, append(stream(10), 0)},
		"no DEFLATE stream": {10, 2, bytes.Repeat([]byte{0xff}, 10)},
		"packed twice":      {len(pack(nil, nil, 2)), 2, pack(nil, pack(nil, nil, 2), 2)},
	} {
		e := wire.Encoder{Buf: []byte(packedMagic)}
		e.Int(c.n)
		e.Int(c.size)
		if _, err := Decode(sealed(append(append(e.Buf, c.packed...), 0, 0, 0, 0))); !errors.Is(err, ErrContribution) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A contribution that no receiver would unpack is not packed.
func TestTooLargeToPack(t *testing.T) {
	const m = maxInducing
	h := Header{Member: "a", N: 9, Classes: []string{"x", "y", "z"}, Counts: []uint64{3, 3, 3}, Horizons: []float64{500, 100, 50}, Weights: []float64{1, 0, 0}}
	c := New(h, Basis{Params: model.Params{M: m, D: 1, Theta: make([]float64, m+4)}, Scale: model.Scale{Mu: []float64{0}, Sd: []float64{1}, Clip: 8}}, Float32)
	if _, err := c.AppendBinary(nil); !errors.Is(err, ErrContribution) || !strings.Contains(err.Error(), "before they are packed") {
		t.Errorf("%d bytes: %v", len(c.sites), err)
	}
	c.Horizons, c.Weights, c.sites = c.Horizons[:1], c.Weights[:1], c.sites[:len(c.sites)/3]
	if _, err := c.AppendBinary(nil); err != nil {
		t.Errorf("%d bytes: %v", len(c.sites), err)
	}
}

// FuzzUnpack: bytes are refused, or are what a packed form of no more than eight times their
// number holds.
func FuzzUnpack(f *testing.F) {
	f.Add(pack(nil, []byte("numbers"), Bfloat16))
	f.Add(pack(nil, bytes.Repeat(binary.LittleEndian.AppendUint32(nil, 77), 20), Float32))
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := unpack(sealed(data))
		if err != nil {
			return
		}
		if len(plain) > maxGain*len(data) {
			t.Errorf("%d bytes of %d", len(plain), len(data))
		}
		if again, err := unpack(pack(nil, plain, Bfloat16)); err != nil || !bytes.Equal(again, plain) {
			t.Errorf("another content after packing: %v", err)
		}
	})
}
