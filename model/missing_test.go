package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

// randomBasis returns a basis with unlike lengthscales.
func randomBasis(t *testing.T, rng *rand.Rand, m, d int) *Basis {
	t.Helper()
	p := NewParams(m, d)
	for i := range p.Z() {
		p.Z()[i] = rng.NormFloat64()
	}
	for j := range p.LogEll() {
		p.LogEll()[j] = 0.7 * rng.NormFloat64()
	}
	*p.LogAmp(), *p.LogNoise(), *p.LogitEps() = 0.4, -2, -4
	b := NewBasis(m, d)
	if _, err := b.Set(&p); err != nil {
		t.Fatal(err)
	}
	return b
}

func features(b *Basis, x []float64) (kx, w []float64, q float64) {
	kx, w = make([]float64, b.M), make([]float64, b.M)
	one := make([]float64, 1)
	b.FeaturesTo(kx, w, one, 1, x, make([]float64, b.D), make([]float64, 1))
	return kx, w, one[0]
}

// TestMissingFeature compares the covariance with a missing feature with its
// definition, the integral over a standard normal, by the trapezoidal rule,
// which converges geometrically for such integrands.
func TestMissingFeature(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const m, d, step = 6, 4, 0.01
	b := randomBasis(t, rng, m, d)
	for range 20 {
		x := make([]float64, d)
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		j := rng.IntN(d)
		want := make([]float64, m)
		for v := -9.0; v <= 9; v += step {
			x[j] = v
			kx, _, _ := features(b, x)
			for i := range want {
				want[i] += step * math.Exp(-v*v/2) / math.Sqrt(2*math.Pi) * kx[i]
			}
		}
		x[j] = Missing
		got, w, q := features(b, x)
		for i := range want {
			if rel := math.Abs(got[i]/want[i] - 1); rel > 1e-10 {
				t.Errorf("E c(x, z_%d) = %v, want %v (relative error %.1g)", i, got[i], want[i], rel)
			}
		}
		var explained float64
		for _, v := range w {
			explained += v * v
		}
		if want := b.Amp - explained + b.Noise; math.Abs(q-want) > 1e-12 {
			t.Errorf("variance %v, want the remainder of the prior variance, %v", q, want)
		}
	}
}

// TestMissingFeatures: with two features missing, the latent mean is the mean of
// latent means over draws of both, and the variance no less than that of any
// one draw's mean around it.
func TestMissingFeatures(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const m, d, n = 8, 3, 200_000
	b := randomBasis(t, rng, m, d)
	mean := make([]float64, m)
	for i := range mean {
		mean[i] = rng.NormFloat64()
	}
	dot := func(w []float64) (s float64) {
		for i, v := range w {
			s += v * mean[i]
		}
		return s
	}
	x := []float64{0.3, 0, 0}
	var sum, square float64
	for range n {
		x[1], x[2] = rng.NormFloat64(), rng.NormFloat64()
		_, w, _ := features(b, x)
		f := dot(w)
		sum, square = sum+f, square+f*f
	}
	want := sum / n
	spread := square/n - want*want
	x[1], x[2] = Missing, Missing
	_, w, _ := features(b, x)
	if got, se := dot(w), math.Sqrt(spread/n); math.Abs(got-want) > 5*se {
		t.Errorf("latent mean %v, want %v ± %v of %d draws", got, want, se, n)
	}
}

func TestPredictMissing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const m, d = 6, 3
	p := &Posterior{
		Names: []string{"a", "b"}, Counts: []uint64{1, 1}, N: 2, Latent: []int{0, 1}, Bases: []*Basis{randomBasis(t, rng, m, d)},
		Scale: Scale{Mu: []float64{1, 2, 3}, Sd: []float64{1, 2, 3}}, Bank: []Gaussian{{M: m}}, Weights: []float64{1},
	}
	p.Bank[0].Grow()
	p.Bank[0].Grow()
	for i := range p.Bank[0].U {
		p.Bank[0].U[i] *= 0.2 // much is learnt already
	}
	for i := range p.Bank[0].Mean {
		p.Bank[0].Mean[i] = rng.NormFloat64()
	}
	ws := NewWorkspace()
	nan := math.NaN()
	_, before, _ := p.PredictTo(nil, []float64{1, 2, 3}, ws)
	probs, novelty, err := p.PredictTo(nil, []float64{1, nan, 3}, ws)
	if err != nil || math.Abs(probs[0]+probs[1]-1) > 1e-12 {
		t.Fatalf("%v, %v", probs, err)
	}
	if !(novelty > before) {
		t.Errorf("novelty %v where a feature is missing, %v where it is not", novelty, before)
	}
	for _, x := range [][]float64{{nan, nan, nan}, {1, math.Inf(1), 2}} {
		if _, _, err := p.PredictTo(nil, x, ws); err == nil {
			t.Errorf("%v was predicted", x)
		}
	}
	if _, _, err := p.PredictTo(nil, []float64{1e9, -1e9, 3}, ws); err != nil || ws.Clipped() != 2 {
		t.Errorf("%d features clipped, want 2 (%v)", ws.Clipped(), err)
	}
	p.Scale.Clip = 1e12
	if _, _, err := p.PredictTo(nil, []float64{1e9, -1e9, 3}, ws); err != nil || ws.Clipped() != 0 {
		t.Errorf("%d features clipped, want none (%v)", ws.Clipped(), err)
	}
}
