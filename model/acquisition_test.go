package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestEntropyAndMargin(t *testing.T) {
	for _, c := range []struct {
		probs           []float64
		entropy, margin float64
	}{
		{nil, 0, 0},
		{[]float64{1}, 0, 1},
		{[]float64{0, 1, 0}, 0, 1},
		{[]float64{0.5, 0.5}, math.Ln2, 0},
		{[]float64{0.25, 0.25, 0.25, 0.25}, 2 * math.Ln2, 0},
		{[]float64{0.2, 0.7, 0.1}, 0.8018185525433373, 0.5}, // −Σ p·log p by decimal arithmetic with 50 digits
		{[]float64{0.7, 0.1, 0.2}, 0.8018185525433373, 0.5},
	} {
		if got := Entropy(c.probs); math.Abs(got-c.entropy) > 1e-14 {
			t.Errorf("Entropy(%v) = %v, want %v", c.probs, got, c.entropy)
		}
		if got := Margin(c.probs); math.Abs(got-c.margin) > 1e-14 {
			t.Errorf("Margin(%v) = %v, want %v", c.probs, got, c.margin)
		}
	}
}

// infoByMonteCarlo is I(y; a) by its definition: a is drawn, and the label's
// distribution given a is estimated by drawing the latent values about it.
// The entropy of counts is biased by (C−1)/(2·inner), which is added.
func infoByMonteCarlo(mean, spread, noise []float64, eps float64, rng *rand.Rand) float64 {
	const outer, inner = 2000, 600
	c := len(mean)
	total, expected := make([]float64, c), 0.0
	for range outer {
		a, p := make([]float64, c), make([]float64, c)
		for k := range a {
			a[k] = mean[k] + math.Sqrt(spread[k])*rng.NormFloat64()
		}
		for range inner {
			best, top := 0, math.Inf(-1)
			for k := range a {
				if f := a[k] + math.Sqrt(noise[k])*rng.NormFloat64(); f > top {
					best, top = k, f
				}
			}
			p[best] += 1.0 / inner
		}
		seen := -1.0
		for k := range p {
			if p[k] > 0 {
				seen++
			}
			p[k] = (1-eps)*p[k] + eps/float64(c)
			total[k] += p[k] / outer
		}
		expected += (Entropy(p) + seen/(2*inner)) / outer
	}
	return Entropy(total) - expected
}

func TestBALDAgainstMonteCarlo(t *testing.T) {
	for i, c := range []struct {
		mean, spread, noise []float64
		eps, within         float64
	}{
		{[]float64{0.3, 0}, []float64{0.5, 0.2}, []float64{0.1, 0.1}, 0, 0.01},
		{[]float64{0.3, 0}, []float64{5, 2}, []float64{0.01, 0.01}, 0.05, 0.02},
		{[]float64{2, 0}, []float64{0.2, 0.3}, []float64{1, 1}, 0.01, 0.01},
		{[]float64{0.3, 0, -0.2}, []float64{0.5, 0.2, 1}, []float64{0.3, 0.3, 0.3}, 0.01, 0.02},
		{[]float64{1, 0, -0.2, 0.4}, []float64{0.1, 0.9, 1, 0.5}, []float64{0.5, 0.1, 0.1, 0.8}, 0.1, 0.02},
		{[]float64{0, 0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1, 1}, []float64{0.2, 0.2, 0.2, 0.2, 0.2, 0.2}, 0, 0.06},
	} {
		n := len(c.mean)
		b := contest{n: n}
		copy(b.mean[:], c.mean)
		copy(b.spread[:], c.spread)
		copy(b.noise[:], c.noise)
		got := b.info(&Grid{}, c.eps, float64(n))
		want := infoByMonteCarlo(c.mean, c.spread, c.noise, c.eps, rand.New(rand.NewPCG(1, uint64(i))))
		if math.Abs(got-want) > c.within {
			t.Errorf("case %d: I = %.4f nats, want %.4f (error %.4f)", i, got, want, got-want)
		}
		if n == 2 { // the rule for many classes holds for two as well
			if many := b.many(&Grid{}, c.eps, 2); math.Abs(many-got) > 0.02 {
				t.Errorf("case %d: I = %.4f by the rule for many classes, %.4f by that for two", i, many, got)
			}
		}
	}
}

// Two classes by a fine rule over ±12 standard deviations, in another form.
func TestBALDOfTwoClassesIsExact(t *testing.T) {
	binary := func(p float64) float64 { return Entropy([]float64{p, 1 - p}) }
	for _, mean := range []float64{0, 0.5, -3, 9} {
		for _, spread := range []float64{1e-4, 0.3, 20} {
			for _, noise := range []float64{1e-3, 0.2, 4} {
				for _, eps := range []float64{0, 0.07} {
					b := contest{n: 2}
					b.mean[0], b.spread[0], b.noise[0], b.noise[1] = mean, spread, noise/2, noise/2
					right := func(d, v float64) float64 {
						return (1-eps)*0.5*math.Erfc(-d/math.Sqrt(2*v)) + eps/2
					}
					const nodes = 40000
					want, step := binary(right(mean, spread+noise)), 24.0/nodes
					for i := range nodes {
						z := -12 + (float64(i)+0.5)*step
						want -= binary(right(mean+math.Sqrt(spread)*z, noise)) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * step
					}
					if got := b.info(&Grid{}, eps, 2); math.Abs(got-want) > 1e-6 {
						t.Errorf("mean %g, spread %g, noise %g, eps %g: I = %.9f, want %.9f (error %.1e)", mean, spread, noise, eps, got, want, got-want)
					}
				}
			}
		}
	}
}

// uncertain is a small posterior with two horizons and c classes.
func uncertain(t testing.TB, c int, eps float64) *Posterior {
	t.Helper()
	const m, d = 5, 2
	rng := rand.New(rand.NewPCG(3, 4))
	params := NewParams(m, d)
	for i := range params.Theta {
		params.Theta[i] = rng.NormFloat64()
	}
	*params.LogAmp(), *params.LogNoise(), *params.LogitEps() = 0, math.Log(0.1), Logit(eps)
	basis := NewBasis(m, d)
	if _, err := basis.Set(&params); err != nil {
		t.Fatal(err)
	}
	p := &Posterior{
		Bases: []*Basis{basis}, Scale: Scale{Mu: make([]float64, d), Sd: []float64{1, 1}},
		Bank: make([]Gaussian, 2), Weights: []float64{0.7, 0.3}, Counts: make([]uint64, c),
	}
	for k := range c {
		p.Names, p.Latent = append(p.Names, fmt.Sprint(k)), append(p.Latent, k)
	}
	for h := range p.Bank {
		g := &p.Bank[h]
		g.M = m
		for k := range c {
			g.Grow()
			for i := range m {
				g.Mean[k*m+i] = rng.NormFloat64()
				for j := range i + 1 {
					g.U[(k*m+i)*m+j] *= 0.3 + rng.Float64()
				}
			}
		}
	}
	return p
}

// BALD of a posterior is the sum of the disagreement of the horizons and the
// information of each horizon, the latter here by Monte Carlo over the latent values.
func TestBALDOfPosterior(t *testing.T) {
	const eps = 0.02
	for _, c := range []int{2, 3, 5} {
		p, ws := uncertain(t, c, eps), NewWorkspace()
		x := []float64{0.3, -0.4}
		if _, _, err := p.PredictTo(nil, x, ws); err != nil {
			t.Fatal(err)
		}
		want := Entropy(ws.latent)
		for h, weight := range p.Weights {
			want -= weight * Entropy(ws.perHorizon[h*c:(h+1)*c])
		}
		if got := ws.disagreement(p); math.Abs(got-want) > 1e-14 || got <= 0 {
			t.Errorf("%d classes: disagreement %v, want %v", c, got, want)
		}
		rng := rand.New(rand.NewPCG(8, uint64(c)))
		for h, weight := range p.Weights {
			spread, noise := make([]float64, c), make([]float64, c)
			for k := range c {
				noise[k] = ws.q[0]
				spread[k] = ws.variance[h*c+k] - ws.q[0]
			}
			want += weight * infoByMonteCarlo(ws.mean[h*c:(h+1)*c], spread, noise, eps, rng)
		}
		if got := ws.BALD(p); math.Abs(got-want) > 0.02 {
			t.Errorf("%d classes: BALD %.4f, want %.4f", c, got, want)
		}
	}
}

// Where the latent values are certain and the label is not, BALD is zero; where
// the latent values alone are uncertain, it is the label's entropy.
func TestBALDLimits(t *testing.T) {
	for _, n := range []int{2, 3} {
		b := contest{n: n}
		for k := range n {
			b.mean[k], b.noise[k] = 0.1*float64(k), 1
		}
		if got := b.info(&Grid{}, 0.01, float64(n)); math.Abs(got) > 1e-12 {
			t.Errorf("%d classes without spread: %v, want 0", n, got)
		}
	}
	b := contest{n: 2}
	b.mean[0], b.spread[0], b.noise[0] = 0.4, 1, 1e-8
	p := 0.5 * math.Erfc(-0.4/math.Sqrt2)
	if got, want := b.info(&Grid{}, 0, 2), Entropy([]float64{p, 1 - p}); math.Abs(got-want) > 1e-3 {
		t.Errorf("without noise: %v, want the label's entropy %v", got, want)
	}
	var ws Workspace
	if p := (&Posterior{}); ws.BALD(p) != 0 || ws.disagreement(p) != 0 {
		t.Error("a model that is not built has something to disagree about")
	}
}

// Of many classes the six most probable count, in any order.
func TestBALDOfManyClasses(t *testing.T) {
	p, ws := uncertain(t, 30, 0.01), NewWorkspace()
	for i := range 50 {
		x := []float64{math.Sin(float64(i)), math.Cos(1.7 * float64(i))}
		if _, _, err := p.PredictTo(nil, x, ws); err != nil {
			t.Fatal(err)
		}
		info := ws.BALD(p)
		if h := Entropy(ws.latent); !(info >= 0 && info <= h) {
			t.Errorf("BALD %v, entropy of the label %v", info, h)
		}
		b := &ws.contest
		for j := 1; j < b.n; j++ {
			if probs := ws.perHorizon[30:]; probs[b.class[j-1]] < probs[b.class[j]] {
				t.Errorf("classes %v have probabilities out of order: %v", b.class, probs)
			}
		}
	}
}

func TestBALDAllocatesNothing(t *testing.T) {
	for _, c := range []int{2, 5} {
		p, ws := uncertain(t, c, 0.01), NewWorkspace()
		dst, x := make([]float64, c), []float64{0.3, -0.4}
		run := func() {
			p.PredictTo(dst, x, ws)
			ws.BALD(p)
			ws.disagreement(p)
		}
		run()
		if n := testing.AllocsPerRun(20, run); n != 0 {
			t.Errorf("%d classes: %v allocations", c, n)
		}
	}
}

func BenchmarkBALD(b *testing.B) {
	for _, c := range []int{2, 3, 6, 10} {
		b.Run(fmt.Sprintf("C=%d", c), func(b *testing.B) {
			p, ws := uncertain(b, c, 0.01), NewWorkspace()
			if _, _, err := p.PredictTo(nil, []float64{0.3, -0.4}, ws); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				ws.BALD(p)
			}
		})
	}
}
