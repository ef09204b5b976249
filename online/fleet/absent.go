package fleet

import (
	"slices"

	"edge/model"
	"edge/model/dense"
)

// seen returns the sums of contributions, of the classes of which one of them has a label. One without a
// label of such a class tells by its labels where the class is not: see absent. A contribution that does
// not factor has no part. Nil: there are too many classes.
func (r *Receiver) seen(all []*Contribution, p *projector) map[string]*sum {
	var names []string
	for _, c := range all {
		for k, name := range c.Classes {
			if c.Counts[k] > 0 && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > model.MaxClasses {
		return nil
	}
	sums := map[string]*sum{}
	for _, c := range all {
		if r.shared(c) < 0 {
			continue
		}
		sites := r.sites(c, p)
		if sites == nil {
			continue
		}
		without, derived := r.absent(c, p, sites)
		for _, name := range names {
			if k := slices.Index(c.Classes, name); k >= 0 && (c.Counts[k] > 0 || !derived) {
				include(sums, name, sites[k])
			} else if derived {
				include(sums, name, without)
			}
		}
	}
	return sums
}

// absent returns the sites of a contribution for a class of which it has no label, under the receiver's
// horizons, on the basis of p. They come from the sites of the K classes of which it has labels: they are
// as precise as these in the mean, and at each inducing input z of the contribution their mean is that of
// the classes which are not the likeliest one there.
//
//	A = 1/K Σ_k A_k,  b = A·L⁻¹g,  g(z) = (Σ_k f_k(z) − max_k f_k(z)) / (K − 1),  f_k(Z) = L(I + A_k)⁻¹b_k
//
// It reports false with labels of fewer than two classes, and where the sites do not factor.
func (r *Receiver) absent(c *Contribution, p *projector, sites []sum) (s sum, ok bool) {
	s = sum{make([]float64, len(sites[0].a)), make([]float64, len(sites[0].b))}
	var known []int
	for k, n := range c.Counts {
		if n > 0 {
			known = append(known, k)
		}
	}
	if len(known) < 2 {
		return s, false
	}
	for h, length := range r.Horizons {
		if at := slices.Index(c.Horizons, length); at >= 0 && !p.absentLinear(c, at, known, s.b[h*p.m:(h+1)*p.m]) {
			return s, false
		}
	}
	for _, k := range known {
		dense.Axpy(1/float64(len(known)), sites[k].a, s.a)
	}
	return s, true
}

// absentLinear stores b of these sites under horizon h of a contribution, M, whose basis p was prepared for. It
// reports false if the sites do not factor.
func (p *projector) absentLinear(c *Contribution, h int, known []int, b []float64) bool {
	m, l := c.Params.M, p.basis.L
	if !p.same {
		l = p.sender.L
	}
	w, g, v, n := make([]float64, m*m), make([]float64, m), make([]float64, m), float64(len(known))
	for i := range m {
		copy(w[i*m:], l[i*m:i*m+i+1])
	}
	mean, _, ok := c.latents(h, w, v)
	if !ok {
		return false
	}
	for i := range m {
		top := mean[known[0]*m+i]
		for _, k := range known {
			f := mean[k*m+i]
			top = max(top, f)
			g[i] += f
		}
		g[i] = (g[i] - top) / (n - 1)
	}
	dense.SolveTriTrans(1, m, l, m, g, m)
	sum := make([]float64, m)
	for _, k := range known { // R·Rᵀu
		c.Factor(h, k, w, p.b)
		clear(v)
		for i := range m {
			dense.Axpy(g[i]/n, w[i*m:i*m+i+1], v[:i+1])
		}
		for i := range m {
			sum[i] += dense.Dot(w[i*m:i*m+i+1], v[:i+1])
		}
	}
	copy(p.b, sum)
	p.linear(b)
	return true
}
