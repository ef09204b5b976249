package lab_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

func TestStart(t *testing.T) {
	d, _ := labtest.Twelve()
	p := lab.Start(d, 4, 3, rand.New(rand.NewPCG(1, 2)))
	if again := lab.Start(d, 4, 3, rand.New(rand.NewPCG(1, 2))); !slices.Equal(again.Theta, p.Theta) {
		t.Error("the same seed gives other parameters")
	}
	if p.Groups() != 3 {
		t.Fatalf("%d kernels, want 3", p.Groups())
	}
	var distances []float64
	for i := range d.N() {
		for j := range i {
			distances = append(distances, math.Hypot(d.Row(i)[0]-d.Row(j)[0], d.Row(i)[1]-d.Row(j)[1]))
		}
	}
	slices.Sort(distances)
	first := p.Group(0)
	for g := range 3 {
		group := p.Group(g)
		golden.Close(t, "parameters of a kernel", group.Theta, first.Theta, 0)
	}
	labtest.Near(t, "lengthscale", math.Exp(first.LogEll()[1]), distances[len(distances)/2], 1e-12)
	for j := range 4 { // each inducing point is near a row of its own
		z := first.Z()[2*j : 2*j+2]
		near := 0
		for i := range d.N() {
			if math.Hypot(z[0]-d.Row(i)[0], z[1]-d.Row(i)[1]) < 0.01 {
				near++
			}
		}
		if near != 1 {
			t.Errorf("inducing point %v is near %d rows, want 1", z, near)
		}
	}
}

func TestStartOfEqualRows(t *testing.T) {
	d := &lab.Data{D: 1, C: 2, X: []float64{2, 2, 2}, Y: []int{0, 1, 0}}
	p := lab.Start(d, 5, 1, rand.New(rand.NewPCG(1, 2)))
	for _, v := range p.Theta {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("parameters %v", p.Theta)
		}
	}
}

func TestAtRows(t *testing.T) {
	d, p := labtest.Twelve()
	full := lab.AtRows(d, labtest.PerClass(p, 3))
	for g := range 3 {
		group := full.Group(g)
		golden.Close(t, "inducing points", group.Z(), d.X, 0)
	}
	want := labtest.PerClass(p, 3)
	from, to := want.Group(2), full.Group(2)
	golden.Close(t, "lengthscales", to.LogEll(), from.LogEll(), 0)
	labtest.Near(t, "noise", *to.LogNoise(), *from.LogNoise(), 0)
}
