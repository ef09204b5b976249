package model

import "math"

// Entropy returns −Σ p·log p of class probabilities, in nats: 0 when sure, log C
// at most.
func Entropy(probs []float64) (h float64) {
	for _, p := range probs {
		if p > 0 {
			h -= p * math.Log(p)
		}
	}
	return h
}

// Margin returns the largest of C class probabilities minus the second largest: 1 when
// sure, 0 when two are equal. One class is certain.
func Margin(probs []float64) float64 {
	first, second := 0.0, 0.0
	for _, p := range probs {
		if p > first {
			first, second = p, first
		} else if p > second {
			second = p
		}
	}
	return first - second
}

// disagreement returns the disagreement of the horizons about the last sample that
// was predicted, in nats: the mutual information between its label and the horizon
// that is right,
//
//	I(y; h) = H[Σ_h π_h·p_h] − Σ_h π_h·H[p_h]
//
// with π_h the horizons' weights; the Jensen-Shannon divergence. 0 before the
// model is built. No allocation, O(H·C).
func (ws *Workspace) disagreement(p *Posterior) float64 {
	if !p.Built() {
		return 0
	}
	c := len(p.Latent)
	d := Entropy(ws.latent)
	for h, weight := range p.Weights {
		d -= weight * Entropy(ws.perHorizon[h*c:(h+1)*c])
	}
	return max(d, 0)
}

const (
	negligible   = 1e-3 // probability below which BALD leaves a class out
	maxContested = 6    // classes that BALD considers
	draws        = 64   // of BALD's quasi-random rule
	lineNodes    = 32   // of its quadrature for two classes
)

// BALD returns the information about the model in the label of the last sample that
// was predicted, in nats: the mutual information between the label and the latent
// functions (Bayesian active learning by disagreement),
//
//	I(y; e, h) = H[E p(y|e,h)] − E H[p(y|e,h)],   e_k ~ N(m_k, V_k) under horizon h
//
// The likelihood itself, the class whose noisy latent value is largest, is
// certain up to ε once that value is known, so that the entropy of the label and
// the uncertainty about f coincide there. Labels inform about the whitened inducing
// values e, but not about the noise v0 and the variance that the inducing points do
// not explain, which every sample has of its own. So the latent variance
// t_k = v_k + q_k is split,
//
//	a_k ~ N(w·m_k, v_k)      v_k = w·V_k·w, can be learnt
//	p(y|a) = (1−ε)·P(y = argmax_k N(a_k, q_k)) + ε/C      q_k = s − |w|² + v0, cannot
//
// and the expectation is over a, and over the horizons by their weights.
//
// Two classes: by the midpoint rule over a_1 − a_2, to 1e-6. More: by 64 points
// of an additive recurrence (Roberts' R sequence) over the latent values of the
// six most probable classes, to a few hundredths of a nat; classes below a
// probability of 1e-3 are left out. Never negative. 0 before the model is built.
// No allocation once the workspace has grown.
//
// Source: Houlsby, Huszár, Ghahramani & Lengyel (2011), "Bayesian Active
// Learning for Classification and Preference Learning", eq. 2.
func (ws *Workspace) BALD(p *Posterior) float64 {
	if !p.Built() {
		return 0
	}
	c := len(p.Latent)
	info := ws.disagreement(p)
	for h, weight := range p.Weights {
		if weight*math.Log(float64(c)) < negligible {
			continue
		}
		info += weight * ws.bald(p, h)
	}
	return info
}

// bald is I(y; e) under one horizon.
func (ws *Workspace) bald(p *Posterior, h int) float64 {
	c, eps := len(p.Latent), p.Bases[0].Eps
	b := &ws.contest
	b.n = 0
	probs := ws.perHorizon[h*c : (h+1)*c]
	for k, v := range probs {
		if v-eps/float64(c) < negligible {
			continue
		}
		at := b.n
		if at == maxContested {
			if at--; probs[b.class[at]] >= v {
				continue
			}
			b.n--
		}
		for ; at > 0 && probs[b.class[at-1]] < v; at-- {
			b.class[at] = b.class[at-1]
		}
		b.class[at] = k
		b.n++
	}
	if b.n < 2 {
		return 0
	}
	mean, variance := ws.moments(h, p)
	for i, k := range b.class[:b.n] {
		q := ws.q[min(k, len(p.Bases)-1)*len(ws.clips)+ws.answer.row]
		b.mean[i] = mean[k]
		b.spread[i] = max(variance[k]-q, 0)
		b.noise[i] = q
	}
	return b.info(&ws.grid, eps, float64(c))
}

// contest holds the classes that can be the most probable under one horizon.
type contest struct {
	n         int
	class     [maxContested]int           // most probable first
	mean      [maxContested]float64       // of a
	spread    [maxContested]float64       // variance of a, which labels reduce
	noise     [maxContested]float64       // variance of the latent value about a
	a, p, sum [maxContested]float64       // scratch
	quasi     [maxContested + 1][]float64 // draws×n standard normal values for n classes
}

// info is the mutual information between label and a, for the classes in the
// contest; eps is the label noise, over all classes.
func (c *contest) info(grid *Grid, eps, classes float64) float64 {
	if c.n == 2 {
		return c.pair(eps, classes)
	}
	return c.many(grid, eps, classes)
}

// noisyEntropy is that of a label whose class is right with 1−ε, for the probabilities
// of the classes in the contest; the others have ε/C each.
func noisyEntropy(p []float64, eps, classes float64) (h float64) {
	floor := eps / classes
	for _, v := range p {
		if v = (1-eps)*v + floor; v > 0 {
			h -= v * math.Log(v)
		}
	}
	return h
}

// pair is the mutual information with two classes: only d = a_1 − a_2 counts.
func (c *contest) pair(eps, classes float64) float64 {
	mean, sd := c.mean[0]-c.mean[1], math.Sqrt(c.spread[0]+c.spread[1])
	width := math.Sqrt(c.noise[0] + c.noise[1])
	if sd < 1e-6*width {
		return 0
	}
	at := func(d, scale float64) float64 {
		z := d / scale / math.Sqrt2
		p := [2]float64{0.5 * math.Erfc(-z), 0.5 * math.Erfc(z)}
		return noisyEntropy(p[:], eps, classes)
	}
	// Far from 0 the label is certain up to ε: only the excess over that entropy is
	// integrated, where both it and the density of d are not negligible.
	certain := noisyEntropy([]float64{1, 0}, eps, classes)
	lo, hi := max(mean-6*sd, -6*width), min(mean+6*sd, 6*width)
	expected := certain
	if hi > lo {
		step := (hi - lo) / lineNodes
		for i := range lineNodes {
			d := lo + (float64(i)+0.5)*step
			z := (d - mean) / sd
			expected += (at(d, width) - certain) * math.Exp(-0.5*z*z) * step / (sd * math.Sqrt(2*math.Pi))
		}
	}
	return max(at(mean, math.Hypot(sd, width))-expected, 0)
}

// many is the mutual information with several classes, by quasi-random points.
func (c *contest) many(grid *Grid, eps, classes float64) float64 {
	n := c.n
	if c.quasi[n] == nil {
		c.quasi[n] = quasiNormal(draws, n)
	}
	sum, p := c.sum[:n], c.p[:n]
	clear(sum)
	var expected float64
	for s := range draws {
		z := c.quasi[n][s*n : (s+1)*n]
		for i := range n {
			c.a[i] = c.mean[i] + math.Sqrt(c.spread[i])*z[i]
		}
		grid.Probs(p, c.a[:n], c.noise[:n], Coarse)
		for i, v := range p {
			sum[i] += v / draws
		}
		expected += noisyEntropy(p, eps, classes) / draws
	}
	return max(noisyEntropy(sum, eps, classes)-expected, 0)
}

// quasiNormal returns n points of dim independent standard normal values, by the
// additive recurrence with the generalised golden ratio: u = frac(½ + i·α_j),
// α_j = φ^−j with φ^(dim+1) = φ + 1.
func quasiNormal(n, dim int) []float64 {
	phi := 2.0
	for range 50 {
		phi = math.Pow(1+phi, 1/float64(dim+1))
	}
	z := make([]float64, 0, n*dim)
	for i := range n {
		for j := range dim {
			_, u := math.Modf(0.5 + float64(i+1)*math.Pow(phi, -float64(j+1)))
			z = append(z, math.Sqrt2*math.Erfinv(2*u-1))
		}
	}
	return z
}
