package studentt

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
)

// family is a kind of approximate posterior with its objective.
type family interface {
	// evaluate returns the objective and its derivatives, from the marginals of q, its norms
	// and log|K| of the inducing points.
	evaluate(m *marginals, n lab.Norms, logK float64) *slopes
	// predict returns the probabilities of the classes, after evaluate.
	predict(m *marginals) *mat.Dense
	// own are parameters of the family that are learnt with q; set takes them, in a range.
	own() []float64
	set([]float64)
}

// slopes is the value of an objective and its derivatives.
type slopes struct {
	value float64
	*expected
	norms lab.Norms
	logK  float64
	own   []float64
}

// tied is q(s) = IG(a, b), q(e_k | s) = N(m_k, s R_k R_kᵀ), whose latents are Student-t with
// 2a degrees of freedom. Fixed at the prior it is the published family of posteriors; the
// bound is of the model with s as a variable, which needs no divergence between Student-t.
//
//	F = Σ E log p − ½ [ |R|² + (a/b) |m|² − CM − 2 Σ log R_jj ] − KL(IG(a, b) ‖ IG(ν/2, ν/2))
type tied struct {
	nu, a, b float64
	free     bool
}

func (f *tied) evaluate(m *marginals, n lab.Norms, _ float64) *slopes {
	a, b := f.a, f.b
	c := b / a
	s := &slopes{expected: m.expect(&rules{dof: 2 * a, growth: m.link.growth()}, 1, 1, c)}
	kl, ka, kb := inverseGammaKL(f.nu, a, b)
	s.value = s.sum - 0.5*(n.Trace+n.Mean/c-float64(n.Size)) + n.LogDet - kl
	s.norms = lab.Norms{Mean: -0.5 / c, Trace: -0.5, LogDet: 1}
	if f.free {
		da := 2*s.dof - s.scale*b/(a*a) - 0.5*n.Mean/b - ka
		db := s.scale/a + 0.5*n.Mean*a/(b*b) - kb
		s.own = []float64{a * da, b * db}
	}
	return s
}

// Range of log a and log b: 2a stays above 2.2, where all expectations are finite.
const (
	leastLogA = 0.0954 // log 1.1
	leastLogB = -2
	mostLog   = 8
)

func (f *tied) own() []float64 {
	if !f.free {
		return nil
	}
	return []float64{math.Log(f.a), math.Log(f.b)}
}

func (f *tied) set(x []float64) {
	if f.free {
		f.a, f.b = math.Exp(min(max(x[0], leastLogA), mostLog)), math.Exp(min(max(x[1], leastLogB), mostLog))
	}
}

func (f *tied) predict(m *marginals) *mat.Dense {
	if m.link == Logistic {
		return logisticMean(m, &rules{dof: 2 * f.a, growth: m.link.growth()}, 1, f.b/f.a)
	}
	var out mat.Dense
	for _, s := range equalMass(f.a, f.b) {
		blend(&out, 1.0/massNodes, gaussian(m, 1, s))
	}
	return &out
}

// nonCentred is e_k = √s e'_k with independent q(e'_k) = N(m_k, R_k R_kᵀ) and q(s) on nodes,
// which is optimal in closed form:
//
//	A_g = Σ E log p(y_i | √s_g (w_i·m + √B_i x)),  F = log Σ π_g exp A_g − KL
//
// With the one node s = 1 it is the variational Gaussian process.
type nonCentred struct {
	*Scale
	share []float64 // q(s_g)
}

func (f *nonCentred) evaluate(m *marginals, n lab.Norms, _ float64) *slopes {
	normal := &rules{dof: math.Inf(1), growth: m.link.growth()}
	nodes, sums := make([]*expected, len(f.Log)), make([]float64, len(f.Log))
	for g, l := range f.Log {
		nodes[g] = m.expect(normal, 1, math.Exp(0.5*l), math.Exp(l))
		sums[g] = nodes[g].sum
	}
	s := &slopes{expected: newExpected(m), norms: lab.FromPrior()}
	s.sum, f.share = f.mix(sums)
	for g, e := range nodes {
		s.add(f.share[g], e)
	}
	s.value = s.sum - n.KL()
	return s
}

func (f *nonCentred) own() []float64 { return nil }
func (f *nonCentred) set([]float64)  {}

func (f *nonCentred) predict(m *marginals) *mat.Dense {
	var out mat.Dense
	for g, l := range f.Log {
		blend(&out, f.share[g], gaussian(m, math.Exp(0.5*l), math.Exp(l)))
	}
	return &out
}

// blend adds weight times the probabilities p.
func blend(sum *mat.Dense, weight float64, p *mat.Dense) {
	p.Scale(weight, p)
	if sum.IsEmpty() {
		sum.CloneFrom(p)
		return
	}
	sum.Add(sum, p)
}

// gaussian are the probabilities for normal latents at location·mean, of variance
// scale·spread.
func gaussian(m *marginals, location, scale float64) *mat.Dense {
	if m.link == Logistic {
		return logisticMean(m, &rules{dof: math.Inf(1), growth: m.link.growth()}, location, scale)
	}
	n := len(m.mean) / m.c
	mean, variance := mat.NewDense(n, m.c, nil), mat.NewDense(n, m.c, nil)
	for i := range n {
		for k := range m.c {
			mean.Set(i, k, location*m.mean[i*m.c+k])
			variance.Set(i, k, scale*m.spread[i*m.c+k]+m.noise[k])
		}
	}
	return lab.Probabilities(mean, variance)
}

// logisticMean are the means of both classes' probabilities, n×2.
func logisticMean(m *marginals, r *rules, location, scale float64) *mat.Dense {
	out := mat.NewDense(len(m.mean), 2, nil)
	for i, mean := range m.mean {
		sd := math.Sqrt(scale * m.spread[i])
		rule := r.at(sd)
		var p, sum float64
		for j, x := range rule.x {
			p += rule.w[j] / (1 + math.Exp(-(location*mean + sd*x)))
			sum += rule.w[j]
		}
		out.SetRow(i, []float64{1 - p/sum, p / sum})
	}
	return out
}
