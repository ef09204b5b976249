package lab

import (
	"math"
	"math/rand/v2"
	"slices"

	"edge/model"
)

// Data are N labelled rows of D standardised features.
type Data struct {
	D, C int
	X    []float64 // N×D
	Y    []int     // N, from 0 to C-1
}

// N is the number of rows.
func (d *Data) N() int { return len(d.Y) }

// Row is the features of observation i.
func (d *Data) Row(i int) []float64 { return d.X[i*d.D : (i+1)*d.D] }

// Rows returns those rows, copied.
func (d *Data) Rows(rows []int) *Data {
	out := &Data{D: d.D, C: d.C}
	for _, i := range rows {
		out.X, out.Y = append(out.X, d.Row(i)...), append(out.Y, d.Y[i])
	}
	return out
}

// First values of the kernel; the lengthscale is the median distance of the rows.
const (
	startAmp   = 1.0
	startNoise = 0.05
	startShift = 1e-3 // standard deviation of the noise on the first inducing points
	startRows  = 300  // rows of which the distances are taken
)

// Start returns the first parameters of every method: M random rows as inducing points,
// the same for all kernels, and the median distance as lengthscale. The slot of the label
// noise is not used by the laboratory; its derivative is 0.
func Start(d *Data, m, kernels int, r *rand.Rand) model.Params {
	order := r.Perm(d.N())
	some := order[:min(startRows, d.N())]
	var distances []float64
	for a, i := range some {
		for _, j := range some[:a] {
			var s float64
			for k, v := range d.Row(i) {
				s += (v - d.Row(j)[k]) * (v - d.Row(j)[k])
			}
			distances = append(distances, s)
		}
	}
	slices.Sort(distances)
	ell := 1.0
	if len(distances) > 0 {
		ell = max(math.Sqrt(distances[len(distances)/2]), 0.1)
	}
	one := model.NewParams(m, d.D)
	points := r.Perm(d.N())
	for j := range m {
		copy(one.Z()[j*d.D:(j+1)*d.D], d.Row(points[j%d.N()]))
	}
	for i := range one.Z() {
		one.Z()[i] += startShift * r.NormFloat64()
	}
	for i := range one.LogEll() {
		one.LogEll()[i] = math.Log(ell)
	}
	*one.LogAmp(), *one.LogNoise() = math.Log(startAmp), math.Log(startNoise)
	one.Theta = slices.Repeat(one.Theta, kernels)
	return one
}

// AtRows returns p with the rows as inducing points of every kernel.
func AtRows(d *Data, p model.Params) model.Params {
	out := model.Params{M: d.N(), D: d.D}
	for g := range p.Groups() {
		from, to := p.Group(g), model.NewParams(d.N(), d.D)
		copy(to.Z(), d.X)
		copy(to.Theta[d.N()*d.D:], from.Theta[p.M*p.D:])
		out.Theta = append(out.Theta, to.Theta...)
	}
	return out
}
