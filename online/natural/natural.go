// Package natural holds Gaussian factors in natural parameters, so that products of them
// are sums: the evidence of several learners about the same exponents.
package natural

import (
	"math"
	"slices"

	"edge/model/dense"
	"edge/online/wire"
)

// Factor is an unnormalised Gaussian of n parameters x,
//
//	exp(−½ xᵀΛx + ηᵀx)
type Factor struct {
	Precision []float64 // n×n  lower triangle of Λ
	Shift     []float64 // n  η
}

// New returns the factor 1 of n parameters.
func New(n int) *Factor { return &Factor{make([]float64, n*n), make([]float64, n)} }

// Learn multiplies f by a term whose logarithm has a gradient g at x and the curvature −H:
//
//	Λ ← Λ + weight·H,     η ← η + weight·(H·x + g)
//
//	h  n×n  lower triangle of H
//	g, x  n
func (f *Factor) Learn(weight float64, h, g, x []float64) {
	n := len(x)
	dense.Axpy(weight, h, f.Precision)
	for i := range n {
		f.Shift[i] += float64(weight * (g[i] + row(h, x, i)))
	}
}

// row is element i of H·x, where h is the lower triangle of H.
func row(h, x []float64, i int) (sum float64) {
	n := len(x)
	for j, v := range x {
		sum += float64(h[max(i, j)*n+min(i, j)] * v)
	}
	return sum
}

// Fade raises f to a power from 0 to 1.
func (f *Factor) Fade(power float64) {
	for _, s := range [][]float64{f.Precision, f.Shift} {
		for i := range s {
			s[i] *= power
		}
	}
}

// Mean stores in x the mean of the product of f and a Gaussian of a mean and a precision. It
// reports false, and leaves x, if the product has no mean.
//
//	precision  n×n  lower triangle; that of the product afterwards
//	mean       n
func (f *Factor) Mean(x, precision, mean []float64) bool {
	n := len(mean)
	shift := slices.Clone(f.Shift)
	for i := range n {
		shift[i] += row(precision, mean, i)
	}
	dense.Axpy(1, f.Precision, precision)
	factor := slices.Clone(precision)
	if !dense.Cholesky(n, factor, n) {
		return false
	}
	dense.SolveTriTrans(1, n, factor, n, shift, n)
	dense.SolveTri(1, n, factor, n, shift, n)
	for _, v := range shift {
		if v-v != 0 {
			return false
		}
	}
	copy(x, shift)
	return true
}

// Experts are those of a learner's blends, whose exponents factors are of.
type Experts struct {
	Own, Fleet int  // horizons
	Forest     bool // is among them
}

// Exponents are the factors of the exponents of a learner's blends: for each blend in its
// order that of a slow and that of a fast learner.
type Exponents struct {
	Experts
	Factors []*Factor
}

// Bounds of a factor that is exchanged.
const (
	MaxFactors = 4
	maxSize    = 64  // experts of a blend
	maxNumber  = 1e7 // magnitude of a number
	ridge      = 1   // precision with which a factor is to have a mean
)

// Add returns the product of the factors of x and of those of o; x where they are of other
// experts, or where the product is not sound.
func (x *Exponents) Add(o *Exponents) *Exponents {
	if !x.like(o) {
		return x
	}
	sum := x.Clone()
	for i, f := range o.Factors {
		dense.Axpy(1, f.Precision, sum.Factors[i].Precision)
		dense.Axpy(1, f.Shift, sum.Factors[i].Shift)
	}
	if !sum.Sound() {
		return x
	}
	return sum
}

// like reports whether two are of the same experts.
func (x *Exponents) like(o *Exponents) bool {
	return x.Experts == o.Experts && slices.EqualFunc(x.Factors, o.Factors, func(a, b *Factor) bool { return len(a.Shift) == len(b.Shift) })
}

// Clone returns a copy.
func (x *Exponents) Clone() *Exponents {
	c := &Exponents{Experts: x.Experts}
	for _, f := range x.Factors {
		c.Factors = append(c.Factors, &Factor{slices.Clone(f.Precision), slices.Clone(f.Shift)})
	}
	return c
}

// Encode appends the factors with 32 bits for each number.
func (x *Exponents) Encode(e *wire.Encoder) {
	e.Int(x.Own)
	e.Int(x.Fleet)
	e.Bool(x.Forest)
	e.Int(len(x.Factors))
	for _, f := range x.Factors {
		n := len(f.Shift)
		e.Int(n)
		for i := range n {
			for _, v := range f.Precision[i*n : i*n+i+1] {
				e.Float32(v)
			}
			e.Float32(f.Shift[i])
		}
	}
}

// Decode reads the values that Encode wrote; nil after an error.
func Decode(d *wire.Decoder) *Exponents {
	x := &Exponents{Experts: Experts{Own: d.Int(maxSize, "horizons"), Fleet: d.Int(maxSize, "horizons"), Forest: d.Bool()}}
	for range d.Int(MaxFactors, "blends") {
		n := d.Int(maxSize, "experts")
		if size := 4 * (n*(n+1)/2 + n); d.Err() == nil && d.Len() < size {
			d.Fail("%d bytes of exponents, %d are announced", d.Len(), size)
		}
		if d.Err() != nil {
			return nil
		}
		f := New(n)
		for i := range n {
			for j := range i + 1 {
				f.Precision[i*n+j] = d.Float32("exponents")
			}
			f.Shift[i] = d.Float32("exponents")
		}
		x.Factors = append(x.Factors, f)
	}
	if d.Err() != nil {
		return nil
	}
	return x
}

// Sound reports whether labels can have taught the factors.
func (x *Exponents) Sound() bool {
	return !slices.ContainsFunc(x.Factors, func(f *Factor) bool { return !f.sound() })
}

// sound reports whether f has a mean with a prior of the precision ridge, and moderate
// numbers.
func (f *Factor) sound() bool {
	for _, s := range [][]float64{f.Precision, f.Shift} {
		if slices.ContainsFunc(s, func(v float64) bool { return !(math.Abs(v) <= maxNumber) }) {
			return false
		}
	}
	n := len(f.Shift)
	prior, x := make([]float64, n*n), make([]float64, n)
	for i := range n {
		prior[i*n+i] = ridge
	}
	return f.Mean(x, prior, x)
}
