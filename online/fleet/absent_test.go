package fleet

import (
	"slices"
	"testing"

	"edge/model/dense"
	"edge/test/golden"
)

// The sites for a class without a label are as precise as those of the others in the mean. Where
// they are far more precise than the prior, the mean that they give at the inducing inputs is that of the
// posterior means of the other classes, without the largest one.
func TestAbsent(t *testing.T) {
	c, sites := member(t, "a", 3, 6, Float32, "x", "y", "z")
	p, err := newProjector(&c.Basis, Raw)
	if err != nil {
		t.Fatal(err)
	}
	z := c.Params.Z()
	means := map[string][]float64{}
	precision := make([]float64, 36)
	for name, s := range sites {
		means[name], _ = posteriorAt(t, &c.Basis, func(a, b []float64) { copy(a, s.a); copy(b, s.b) }, z)
		dense.Axpy(1./3, s.a, precision)
	}
	want := make([]float64, len(means["x"]))
	for i := range want {
		f := []float64{means["x"][i], means["y"][i], means["z"][i]}
		slices.Sort(f)
		want[i] = (f[0] + f[1]) / 2
	}
	own := &Receiver{Horizons: c.Horizons}
	got, ok := own.absent(c, p, own.sites(c, p))
	if !ok {
		t.Fatal("the sites do not factor")
	}
	got.a, got.b = got.a[:36], got.b[:6]
	for i := range 6 {
		precision[i*6+i] += ridge
		clear(precision[i*6+i+1 : (i+1)*6])
	}
	golden.Close(t, "precision", got.a, precision, 1e-5)
	const much = 1e9
	mean, _ := posteriorAt(t, &c.Basis, func(a, b []float64) {
		dense.Axpy(much, got.a, a)
		dense.Axpy(much, got.b, b)
	}, z)
	golden.Close(t, "means", mean, want, 1e-4)

	// On another basis they are those of a class with these sites.
	own = receiver(t, 5)
	h := c.Header
	h.Classes, h.Counts = append(slices.Clone(h.Classes), "absent"), append(slices.Clone(h.Counts), 0)
	with := New(h, c.Basis, Float32)
	for at := range h.Horizons {
		if err := with.Put(at, 3, slices.Clone(got.a), slices.Clone(got.b)); err != nil {
			t.Fatal(err)
		}
	}
	if p, err = newProjector(&own.Basis, Raw); err != nil {
		t.Fatal(err)
	}
	there, _ := own.absent(c, p, own.sites(c, p))
	class := own.sites(with, p)[3]
	golden.Close(t, "precision on another basis", there.a[:25], class.a[:25], 1e-3)
	golden.Close(t, "linear part on another basis", there.b[:5], class.b[:5], 1e-3)

	// With labels of one class there are none, and those of comparisons with a class that is named count.
	c.Counts = []uint64{20, 0, 0}
	if _, ok := own.absent(c, p, own.sites(c, p)); ok {
		t.Error("labels of one class give sites for others")
	}
	named := map[string]*sum{}
	include(named, "y", own.sites(c, p)[1])
	include(named, "y", own.sites(own.Own, p)[1])
	golden.Close(t, "linear part of a class that is named", own.seen([]*Contribution{c, own.Own}, p)["y"].b, named["y"].b, 0)
}

// Each contribution adds its sites of a class of which it has labels, and those for an absent class to
// all others of which somebody has labels.
func TestSeen(t *testing.T) {
	r := receiver(t, 6)
	c, _ := member(t, "a", 3, 6, Float32, "x", "z", "nobody's")
	c.Counts[2] = 0
	p, err := newProjector(&r.Basis, Raw)
	if err != nil {
		t.Fatal(err)
	}
	sums := r.seen([]*Contribution{r.Own, c}, p)
	want := map[string]*sum{}
	for _, of := range []struct {
		c       *Contribution
		labels  []string
		without string
	}{{r.Own, []string{"x", "y"}, "z"}, {c, []string{"x", "z"}, "y"}} {
		sites := r.sites(of.c, p)
		for k, name := range of.labels {
			include(want, name, sites[k])
		}
		absent, _ := r.absent(of.c, p, sites)
		include(want, of.without, absent)
	}
	if len(sums) != 3 {
		t.Fatalf("sums of %d classes, want 3", len(sums))
	}
	for name, s := range want {
		golden.Close(t, "precision of "+name, sums[name].a, s.a, 0)
		golden.Close(t, "linear part of "+name, sums[name].b, s.b, 0)
	}

	// A newcomer has these sums of the others.
	own := r.Own
	own.Member = "b"
	newcomer := &Receiver{Member: "new", Features: 7, Inputs: 2, Horizons: r.Horizons, Trust: DefaultTrust}
	m := mergeOf(t, newcomer, c, own)
	if p, err = newProjector(&m.Basis, Raw); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Classes, []string{"x", "y", "z"}) {
		t.Fatalf("a newcomer knows the classes %q", m.Classes)
	}
	sums = newcomer.seen([]*Contribution{c, own}, p)
	a, b := make([]float64, m.Params.M*m.Params.M), make([]float64, m.Params.M)
	m.Sum(1, 1, a, b)
	golden.Close(t, "linear part of a newcomer", b, sums["y"].b[len(b):2*len(b)], 1e-6)
}
