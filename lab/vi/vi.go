// Package vi is scalable variational inference: q(e_k) = N(m_k, R_k R_kᵀ) maximises a lower
// bound of the log evidence of the robust likelihood, which is 1−ε+ε/C for the label whose
// latent is the largest and ε/C for the others,
//
//	ELBO = (N/n) Σ E_i − Σ KL_k,  E_i = log(ε/C) + Λ p_i,  Λ = log(1−ε+ε/C) − log(ε/C)
//
// with p_i the probability that y_i is the largest under q. Residual variance and noise are
// inside the expectation, so that the bound pays for them. It rewards certainty: the mean of
// the log is seen, not the log of the mean. That its predictions are too certain where
// classes overlap is a property of the objective. It can have several optima.
//
// Batch maximises the bound by L-BFGS over q and the parameters together, Stochastic by Adam
// on minibatches, Natural by natural gradients on q with steps of the parameters between.
//
// Source: Hensman, Matthews & Ghahramani (AISTATS 2015); Villacampa-Calvo &
// Hernández-Lobato (ICML 2017), Section 4.
package vi

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// VI is the approximation on all rows, or on a minibatch of them.
type VI struct {
	*lab.Sparse              // V = R Rᵀ and m are those of q
	R           []*mat.Dense // C of M×M, lower triangular with a positive diagonal
	Weight      float64      // N/n
	Eps         float64

	expected []float64  // E_i
	g, t     *mat.Dense // its derivatives in mean and variance of the latents
	win      *model.Win
}

// New returns q = N(0, I) on data that stands for weight times as many rows.
func New(data *lab.Data, p model.Params, jitter, weight, eps float64, nodes int) (*VI, error) {
	s, err := lab.NewSparse(data, p, jitter)
	if err != nil {
		return nil, err
	}
	v := &VI{
		Sparse: s, Weight: weight, Eps: eps,
		expected: make([]float64, data.N()), g: lab.NewTable(data), t: lab.NewTable(data), win: model.NewWin(nodes),
	}
	for range data.C {
		r := mat.NewDense(p.M, p.M, nil)
		for j := range p.M {
			r.Set(j, j, 1)
		}
		v.R = append(v.R, r)
	}
	return v, nil
}

// SetQ stores m_k and computes V_k and the marginals from it and R_k.
func (v *VI) SetQ(k int, mean []float64) {
	v.V[k].Mul(v.R[k], v.R[k].T())
	v.SetMoments(k, append([]float64(nil), mean...))
}

// expect computes E, G and T of all rows under q.
func (v *VI) expect() {
	least, span := levels(v.Eps, v.C)
	t := make([]float64, v.C)
	for i, y := range v.Y {
		for k := range t {
			t[k] = v.Q.At(i, k) + v.Var.At(i, k)
		}
		g, dt := v.g.RawRowView(i), v.t.RawRowView(i)
		p := span * math.Exp(v.win.LogProb(v.Mean.RawRowView(i), t, y, g, dt))
		v.expected[i] = least + p
		for k := range t {
			g[k], dt[k] = p*g[k], p*dt[k]
		}
	}
}

// levels are log(ε/C) and Λ.
func levels(eps float64, c int) (least, span float64) {
	e := eps / float64(c)
	return math.Log(e), math.Log(1-eps+e) - math.Log(e)
}

// KL is Σ_k ½(|R_k|² + |m_k|² − M) − Σ_j log R_jj, of q from the prior.
func (v *VI) KL() float64 {
	var sum float64
	for k, r := range v.R {
		norm := mat.Norm(r, 2)
		m := v.M.RowView(k)
		sum += 0.5 * (norm*norm + mat.Dot(m, m) - float64(v.Params.M))
		for j := range v.Params.M {
			sum -= math.Log(r.At(j, j))
		}
	}
	return sum
}

// Derivatives of the bound.
type Derivatives struct {
	M     *mat.Dense   // C×M
	R     []*mat.Dense // C of M×M, lower triangles, of the elements as they are
	Theta []float64    // as model.Params
}

// Bound returns the ELBO and its derivatives:
//
//	∂/∂m_k = (N/n) Σ G w − m
//	∂/∂R_k = lower triangle of (N/n) Σ 2T w (Rᵀw)ᵀ − R + diag(1/R_jj)
//	∂/∂w_ik = (N/n)(G m + 2T S w),  ∂/∂q_ik = (N/n) T
func (v *VI) Bound() (elbo float64, d Derivatives) {
	v.expect()
	for _, e := range v.expected {
		elbo += v.Weight * e
	}
	elbo -= v.KL()
	var g, t, twice mat.Dense
	g.Scale(v.Weight, v.g)
	t.Scale(v.Weight, v.t)
	twice.Scale(2, &t)
	d.M = mat.NewDense(v.C, v.Params.M, nil)
	for k, r := range v.R {
		gram, b := v.Natural(k, &twice, &g)
		b.SubVec(b, v.M.RowView(k))
		d.M.SetRow(k, b.RawVector().Data)
		dr := mat.NewDense(v.Params.M, v.Params.M, nil)
		dr.Mul(symmetric(gram), r)
		dr.Apply(func(i, j int, x float64) float64 {
			switch {
			case i < j:
				return 0
			case i == j:
				return x - r.At(i, j) + 1/r.At(i, j)
			default:
				return x - r.At(i, j)
			}
		}, dr)
		d.R = append(d.R, dr)
	}
	d.Theta = v.Gradient(lab.Features{W: v.AlongPosterior(&g, &twice), Q: &t})
	return elbo, d
}

// symmetric is the matrix of a lower triangle.
func symmetric(lower *mat.Dense) mat.Symmetric {
	n := lower.RawMatrix().Rows
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, lower.At(i, j))
		}
	}
	return s
}

// Predict returns the probabilities of the labels as they are reported, n×C.
func (v *VI) Predict(x []float64) (*mat.Dense, error) {
	mean, variance := v.Latent(x)
	return lab.Robust(lab.Probabilities(mean, variance), v.Eps), nil
}
