package fleet

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"edge/model"
	"edge/test/golden"
)

// Receiver and member have the same kernel, and the basis of the sums Unseen has the inducing
// inputs of both: under that kernel the posterior of a class that the member alone knows is there
// that of the member by itself: with labels of one class the receiver does not tell where it is not. On
// the receiver's basis it is not.
func TestUnseen(t *testing.T) {
	r := receiver(t, 6)
	r.Mix = true
	r.Own.Counts[1] = 0
	c, _ := member(t, "a", 3, 6, Float32, "x", "z")
	if m := mergeOf(t, r, c); m.Unseen == nil || m.Unseen.Params.M != 12 || len(m.Unseen.Horizons) != 1 || !slices.Equal(m.Unseen.Classes, []string{"x", "z"}) {
		t.Fatalf("the sums for unseen classes are %+v", m.Unseen)
	}
	m := mergeOf(t, r, c)
	want, wantVariance := posteriorAt(t, &c.Basis, func(a, b []float64) {
		r := make([]float64, 36)
		c.Factor(0, 1, r, b)
		for i := range 6 {
			for j := range 6 {
				for k := range min(i, j) + 1 {
					a[i*6+j] += r[i*6+k] * r[j*6+k]
				}
			}
		}
	}, c.Params.Z())
	same := r.unseenOn(r.pool([]*Contribution{c}, 12), []*Contribution{c})
	got, gotVariance := posteriorAt(t, &same.Basis, func(a, b []float64) { same.Sum(0, 1, a, b) }, c.Params.Z())
	golden.Close(t, "means", got, want, 1e-3)
	golden.Close(t, "variances", gotVariance, wantVariance, 1e-3)
	if own, _ := posteriorAt(t, &m.Basis, func(a, b []float64) { m.Sum(0, slices.Index(m.Classes, "z"), a, b) }, c.Params.Z()); math.Abs(own[0]-want[0]) < 1e-2 {
		t.Error("the receiver's basis is as good")
	}

	data := bits(m)
	again, err := DecodeMerge(data)
	if err != nil || !bytes.Equal(bits(again), data) || again.Unseen == nil {
		t.Fatalf("another merge after decoding (%v)", err)
	}
	refusesDamage(t, data, DecodeMerge, ErrMerge)
	for name, inner := range map[string]*Merge{
		"of two horizons": {Basis: m.Basis, Horizons: []float64{500, 100}, Weights: []float64{1, 0}},
		"with members":    {Basis: m.Basis, Horizons: []float64{500}, Weights: []float64{1}, Members: m.Members},
		"with sums":       {Basis: m.Basis, Horizons: []float64{500}, Weights: []float64{1}, Unseen: m.Unseen},
		"of no basis":     {Horizons: []float64{500}, Weights: []float64{1}},
	} {
		outer := *m
		outer.Unseen = inner
		if _, err := DecodeMerge(bits(&outer)); !errors.Is(err, ErrMerge) {
			t.Errorf("sums %s: %v", name, err)
		}
	}

	// Nobody asks for them, or nothing is unseen.
	r.Mix = false
	if mergeOf(t, r, c).Unseen != nil {
		t.Error("sums although the receiver does not mix")
	}
	r.Mix, r.Own.Counts[1] = true, 20
	known, _ := member(t, "a", 3, 6, Float32, "x", "y")
	if mergeOf(t, r, known).Unseen != nil {
		t.Error("sums although the receiver knows all classes")
	}
}

// posteriorAt returns the means and variances of a latent function at inputs x in the units of a
// basis, of the precision and linear part that sum adds in its whitened coordinates.
func posteriorAt(t *testing.T, b *Basis, sum func(a, b []float64), x []float64) (mean, variance []float64) {
	t.Helper()
	m, d := b.Params.M, b.Params.D
	n := len(x) / d
	basis := model.NewBasis(m, d)
	if _, err := basis.Set(&b.Params); err != nil {
		t.Fatal(err)
	}
	w, q := make([]float64, n*m), make([]float64, n)
	basis.FeaturesTo(make([]float64, n*m), w, q, n, x, make([]float64, n*d), make([]float64, n))
	a, linear := make([]float64, m*m), make([]float64, m)
	sum(a, linear)
	post := posterior(t, a, linear)
	mean, variance = make([]float64, n), make([]float64, n)
	latentTo(mean, variance, &post, 0, w, q, make([]float64, n*m))
	return mean, variance
}

// A receiver without a basis takes that of the member with the most labels, if this one knows all
// classes, and otherwise one of all members.
func TestBasisOfAllClasses(t *testing.T) {
	a, _ := member(t, "a", 9, 5, Float32, "x", "y")
	b, _ := member(t, "b", 3, 5, Float32, "x")
	r := &Receiver{Member: "own", Features: 7, Inputs: 2, Horizons: a.Horizons, Trust: DefaultTrust}
	if m := mergeOf(t, r, a, b); !m.Basis.equal(&a.Basis, Raw) {
		t.Error("another basis than that of the member with the most labels")
	}
	other, _ := member(t, "b", 3, 5, Float32, "x", "z")
	if m := mergeOf(t, r, a, other); m.Basis.equal(&a.Basis, Raw) || m.Params.M != 5 {
		t.Error("the basis of a member that does not know all classes")
	}
}

// The amplitude of the kernel of Unseen is unseenAmplitude times that of the mean.
func TestUnseenAmplitude(t *testing.T) {
	r := receiver(t, 6)
	r.Mix = true
	c, _ := member(t, "a", 3, 6, Float32, "x", "z")
	m := mergeOf(t, r, c)
	if m.Unseen == nil {
		t.Fatal("no sums for an unseen class")
	}
	mean := r.pool([]*Contribution{c}, 12)
	golden.Close(t, "amplitude", []float64{math.Exp(*m.Unseen.Params.LogAmp())}, []float64{unseenAmplitude * math.Exp(*mean.Params.LogAmp())}, 1e-12)
}
