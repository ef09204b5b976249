package fleet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"edge/model"
	"edge/model/dense"
	"edge/online/wire"
)

// member returns a contribution of m inducing points in 2 dimensions, with the sites of
// n random observations of each class, drawn by the seed, and these sites.
func member(t testing.TB, name string, seed uint64, m int, p Precision, classes ...string) (*Contribution, map[string]sum) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	h := Header{
		Member: name, Instance: seed, Version: Version{1, seed}, Features: 7, N: uint64(100 + seed), Classes: classes,
		Horizons: []float64{math.Inf(1), 500, 100}, Weights: []float64{0.5, 0.25, 0.25},
	}
	for range classes {
		h.Counts = append(h.Counts, 20)
	}
	b := Basis{Params: model.NewParams(m, 2), Scale: model.Scale{Mu: []float64{1, -2}, Sd: []float64{2, 0.5}}}
	for i := range b.Params.Z() {
		b.Params.Z()[i] = 2 * rng.NormFloat64()
	}
	b.Params.LogEll()[0], *b.Params.LogNoise(), *b.Params.LogitEps() = 0.3, -2, -4
	c := New(h, b, p)
	sites := map[string]sum{}
	for at := range h.Horizons {
		for k, name := range classes {
			a, linear := make([]float64, m*m), make([]float64, m)
			x, s1 := make([]float64, 9*m), make([]float64, 9)
			for i := range x {
				x[i] = rng.NormFloat64()
			}
			for i := range s1 {
				s1[i] = 30 * rng.Float64()
				dense.Axpy(10*rng.NormFloat64(), x[i*m:(i+1)*m], linear)
			}
			dense.WeightedGram(9, m, s1, 1, x, m, a, m)
			if at == 0 {
				sites[name] = sum{slices.Clone(a), slices.Clone(linear)}
			}
			if err := c.Put(at, k, a, linear); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c, sites
}

func encode(t testing.TB, c *Contribution) []byte {
	t.Helper()
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is decoded is what was put in, to the rounding of the format: the posterior's mean
// and variance in every direction.
func TestContributionKeepsThePosterior(t *testing.T) {
	for _, c := range []struct {
		m         int
		precision Precision
		tolerance float64 // the ridge is 1/1024
	}{{9, Bfloat16, 1. / 64}, {9, Float32, 2e-3}, {50, Bfloat16, 1. / 64}, {150, Bfloat16, 1. / 64}, {150, Float32, 2e-3}} {
		keepsPosterior(t, c.m, c.precision, c.tolerance)
	}
}

// Factors are in whole units in a message of 16 bits, and exact in one of 32.
func TestFactorsInUnits(t *testing.T) {
	for m, unit := range map[int]float64{1: 1. / 32, 50: 1. / 32, 100: 1. / 32, 103: 1. / 64, 200: 1. / 64, 820: 1. / 128} {
		if got := siteUnit(m); got != unit {
			t.Errorf("%d inducing points: unit %g, want %g", m, got, unit)
		}
	}
	for p, want := range map[Precision]bool{Bfloat16: true, Float32: false} {
		c, _ := member(t, "a", 3, 9, p, "x", "y")
		r, b := make([]float64, 81), make([]float64, 9)
		c.Factor(2, 1, r, b)
		whole := true
		for _, v := range r {
			whole = whole && v*32 == math.Trunc(v*32)
		}
		if whole != want {
			t.Errorf("numbers of %d bytes: in whole units %t, want %t", p, whole, want)
		}
	}
}

// keepsPosterior checks one size and format.
func keepsPosterior(t *testing.T, m int, p Precision, tolerance float64) {
	t.Helper()
	c, sites := member(t, "a", 3, m, p, "x", "y")
	d, err := Decode(encode(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if d.Header.Member != "a" || d.Version != c.Version || !slices.Equal(d.Classes, c.Classes) || !slices.Equal(d.Counts, c.Counts) ||
		!slices.Equal(d.Horizons, c.Horizons) || !slices.Equal(d.Weights, c.Weights) || !d.Basis.equal(&c.Basis, Raw) {
		t.Fatalf("decoded %+v, want %+v", d.Header, c.Header)
	}
	for k, name := range c.Classes {
		r, b := make([]float64, m*m), make([]float64, m)
		d.Factor(0, k, r, b)
		a := make([]float64, m*m)
		for i := range m {
			for j := range i + 1 {
				for l := range j + 1 {
					a[i*m+j] += r[i*m+l] * r[j*m+l]
				}
			}
		}
		got, want := posterior(t, a, b), posterior(t, sites[name].a, sites[name].b)
		for i := range got.Mean {
			sd := math.Sqrt(variance(&want, i))
			if diff := math.Abs(got.Mean[i] - want.Mean[i]); diff > 8*tolerance*max(sd, math.Abs(want.Mean[i])) {
				t.Errorf("%d inducing points, %d bytes, class %s: mean %d is %g, want %g", m, p, name, i, got.Mean[i], want.Mean[i])
			}
			if v, w := variance(&got, i), variance(&want, i); math.Abs(v/w-1) > tolerance {
				t.Errorf("%d inducing points, %d bytes, class %s: variance %d is %g, want %g", m, p, name, i, v, w)
			}
		}
	}
}

// posterior is that of one latent function with these sites.
func posterior(t *testing.T, a, b []float64) model.Gaussian {
	t.Helper()
	g := model.Gaussian{M: len(b)}
	g.Grow()
	copy(g.U, a)
	if err := g.Factor(0, b, make([]float64, len(b))); err != nil {
		t.Fatal(err)
	}
	return g
}

// variance is that of coordinate i: the squared length of column i of U.
func variance(g *model.Gaussian, i int) (v float64) {
	for row := i; row < g.M; row++ {
		v += g.U[row*g.M+i] * g.U[row*g.M+i]
	}
	return v
}

// No contribution is accepted of which one bit has turned, or of which the end is missing.
func TestDamagedContributions(t *testing.T) {
	c, _ := member(t, "a", 3, 5, Bfloat16, "x", "y")
	data := encode(t, c)
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			if _, err := Decode(data); !errors.Is(err, ErrContribution) {
				t.Fatalf("byte %d, bit %d: %v", i, bit, err)
			}
			data[i] ^= 1 << bit
		}
		if _, err := Decode(data[:i]); !errors.Is(err, ErrContribution) {
			t.Fatalf("the first %d of %d bytes: %v", i, len(data), err)
		}
	}
	if _, err := Decode(data); err != nil {
		t.Errorf("the whole: %v", err)
	}
}

// refusesDamage reports damaged data, and the beginnings of data, that a decoder accepts.
func refusesDamage[T any](t *testing.T, data []byte, decode func([]byte) (T, error), kind error) {
	t.Helper()
	for i := range data {
		data[i] ^= 0x10
		if _, err := decode(data); !errors.Is(err, kind) {
			t.Fatalf("byte %d: %v", i, err)
		}
		data[i] ^= 0x10
		if _, err := decode(data[:i]); !errors.Is(err, kind) {
			t.Fatalf("the first %d bytes: %v", i, err)
		}
	}
}

// Values that are out of range are refused although the checksum is right.
func TestContributionsOutOfRange(t *testing.T) {
	for name, change := range map[string]func(c *Contribution){
		"no name": func(c *Contribution) { c.Member = "" },
		"one class": func(c *Contribution) {
			c.Classes, c.Counts, c.sites = c.Classes[:1], c.Counts[:1], c.sites[:len(c.sites)/2]
		},
		"a class of no text":   func(c *Contribution) { c.Classes[1] = "\xff" },
		"a class twice":        func(c *Contribution) { c.Classes[1] = c.Classes[0] },
		"no label":             func(c *Contribution) { c.N = 0 },
		"more of a class":      func(c *Contribution) { c.Counts[0] = c.N + 1 },
		"more of all":          func(c *Contribution) { c.Counts[0], c.Counts[1] = 1<<63, 1<<63 },
		"a horizon of 0":       func(c *Contribution) { c.Horizons[0] = 0 },
		"horizons that rise":   func(c *Contribution) { c.Horizons[1], c.Horizons[2] = c.Horizons[2], c.Horizons[1] },
		"a weight above 1":     func(c *Contribution) { c.Weights[0] = 1.5 },
		"other precision":      func(c *Contribution) { c.Precision = 3 },
		"an infinite input":    func(c *Contribution) { c.Params.Z()[0] = math.Inf(1) },
		"a long lengthscale":   func(c *Contribution) { c.Params.LogEll()[0] = 8 },
		"a high label noise":   func(c *Contribution) { *c.Params.LogitEps() = 1 },
		"no deviation":         func(c *Contribution) { c.Scale.Sd[0] = 0 },
		"a mean that is NaN":   func(c *Contribution) { c.Scale.Mu[0] = math.NaN() },
		"a mean of no feature": func(c *Contribution) { c.Scale.Mu[0] = -1e102 },
		"a wide deviation":     func(c *Contribution) { c.Scale.Sd[0] = 1e102 },
		"a negative diagonal":  func(c *Contribution) { c.sites[1] |= 0x80 },
		"an infinite number":   func(c *Contribution) { copy(c.sites, []byte{0x80, 0x7f}) },
		"a number not a one":   func(c *Contribution) { copy(c.sites[2:], []byte{0xc0, 0x7f}) },
		"too large a number":   func(c *Contribution) { copy(c.sites[2:], []byte{0x00, 0x7f}) },
		"more sites than said": func(c *Contribution) { c.sites = append(c.sites, 0, 0) },
	} {
		c, _ := member(t, "a", 3, 5, Bfloat16, "x", "y")
		change(c)
		if _, err := c.AppendBinary(nil); !errors.Is(err, ErrContribution) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A header that announces more than there is makes no memory.
func TestDecodeMakesNoMemoryForPromises(t *testing.T) {
	c, _ := member(t, "a", 3, 5, Bfloat16, "x", "y")
	data := announce(c)
	sizes := []byte{5, 2, byte(Bfloat16), 0} // M, D, size of a number, no ranks
	at := bytes.Index(data, sizes)
	data = sealed(slices.Concat(data[:at], binary.AppendUvarint(binary.AppendUvarint(nil, 900), 9000), data[at+2:]))
	allocated := testing.AllocsPerRun(10, func() {
		if _, err := Decode(data); !errors.Is(err, ErrContribution) {
			t.Fatal(err)
		}
	})
	if allocated > 60 {
		t.Errorf("%g allocations", allocated)
	}
}

// Nor does one whose sites are more bytes than an int of 32 bits counts.
func TestDecodeOfManySites(t *testing.T) {
	c, _ := member(t, "a", 3, 5, Float32, "x", "y")
	c.Params = model.NewParams(maxInducing, 2)
	c.Horizons, c.Weights = slices.Repeat([]float64{100}, maxHorizons), make([]float64, maxHorizons)
	c.Classes, c.Counts = nil, make([]uint64, model.MaxClasses)
	for k := range c.Counts {
		c.Classes = append(c.Classes, strconv.Itoa(k))
	}
	if _, err := Decode(announce(c)); !errors.Is(err, ErrContribution) || !strings.Contains(err.Error(), "4012000000 are announced") {
		t.Error(err)
	}
}

// announce encodes the header of a contribution and its sites, whatever they are.
func announce(c *Contribution) []byte {
	e := &wire.Encoder{Buf: []byte(magic)}
	c.encodeHeader(e)
	c.encodeBasis(e)
	return sealed(append(append(e.Buf, c.sites...), 0, 0, 0, 0))
}

// sealed replaces the last bytes by the checksum of the others.
func sealed(data []byte) []byte {
	if len(data) < wire.ChecksumBytes {
		return data
	}
	return wire.AppendChecksum(slices.Clone(data[:len(data)-wire.ChecksumBytes]), 0)
}

func FuzzDecode(f *testing.F) {
	for _, p := range []Precision{Bfloat16, Float32} {
		c, _ := member(f, "a", 3, 4, p, "x", "y")
		f.Add(c.plain())
		f.Add(encode(f, c))
	}
	f.Add(blended(f, "a", ownExperts, 1).plain())
	f.Fuzz(func(t *testing.T, data []byte) {
		data = sealed(data)
		c, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(encode(t, c))
		if err != nil || !again.Basis.equal(&c.Basis, Raw) || !bytes.Equal(again.sites, c.sites) || again.Member != c.Member {
			t.Errorf("another contribution after encoding: %v", err)
		}
		s := NewSet(0)
		s.Put(c)
		r := Receiver{Features: c.Features, Inputs: c.Params.D, Horizons: c.Horizons[:1], Trust: DefaultTrust}
		m, err := r.Merge(s)
		if err != nil {
			return
		}
		for _, v := range slices.Concat(m.A, m.B) {
			if v-v != 0 {
				t.Fatal("a sum is not finite")
			}
		}
	})
}
