package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkMerge is a merge of 16 members with 6 classes, 50 inducing points and
// three horizons, with the test by 100 labels.
func BenchmarkMerge(b *testing.B) {
	const m, n = 50, 100
	classes := []string{"1", "2", "3", "4", "5", "6"}
	own, _ := member(b, "own", 50, m, Float32, classes...)
	s, rng := NewSet(0), rand.New(rand.NewPCG(1, 1))
	for i := range 16 {
		c, _ := member(b, fmt.Sprint("m", i), uint64(i), m, Bfloat16, classes...)
		c.Scale.Mu[0] += 0.1 * float64(i) // otherwise the units are not compared
		s.Put(c)
	}
	w := &Window{Classes: classes, Known: []bool{true, true, true, true, true, true}, A: make([]float64, 6*m*m), B: make([]float64, 6*m), Eps: 0.01}
	for range n {
		w.Y, w.Q = append(w.Y, rng.IntN(6)), append(w.Q, 1)
		for range m {
			w.W = append(w.W, 0.1*rng.NormFloat64())
		}
	}
	r := Receiver{Member: "own", Features: 7, Inputs: 2, Basis: own.Basis, Horizons: own.Horizons, Own: own, Window: w, Trust: -1e9}
	b.ReportAllocs()
	for b.Loop() {
		if m, err := r.Merge(s); err != nil || m.Taken() != 16 {
			b.Fatal(err, m)
		}
	}
}

// BenchmarkCompare compares 16 members with 6 classes and 50 inducing points with each
// other, as a newcomer does.
func BenchmarkCompare(b *testing.B) {
	s := NewSet(0)
	for i := range 16 {
		c, _ := member(b, fmt.Sprint("m", i), uint64(i), 50, Bfloat16, "1", "2", "3", "4", "5", "6")
		s.Put(c)
	}
	r := Receiver{Member: "own", Features: 7, Inputs: 2, Horizons: s.members[0].Horizons}
	open := make([]int, 16)
	for i := range open {
		open[i] = i
	}
	m := &Merge{Members: make([]Member, 16)}
	b.ReportAllocs()
	for b.Loop() {
		r.crossCheck(m, s, open)
	}
}

// BenchmarkContribution encodes and decodes a contribution of 6 classes, 50 inducing points and
// three horizons; plain without packing it.
func BenchmarkContribution(b *testing.B) {
	c, _ := member(b, "a", 1, 50, Bfloat16, "1", "2", "3", "4", "5", "6")
	c.N = 1000
	data, plain := encode(b, c), c.plain()
	for name, run := range map[string]func() error{
		"encode":       func() error { _, err := c.AppendBinary(nil); return err },
		"decode":       func() error { _, err := Decode(data); return err },
		"encode plain": func() error { _, err := decode(c.plain()); return err },
		"decode plain": func() error { _, err := Decode(plain); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(data)), "bytes")
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
