package lab

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/model"
	"edge/model/dense"
)

// Gaussians are variational posteriors q(e_k) = N(m_k, R_k R_kᵀ), which optimisers move
// freely. V and the marginals of Sparse are those of q; its sites are not used.
type Gaussians struct {
	*Sparse
	R []*mat.Dense // C of M×M, lower triangular with a positive diagonal
}

// NewGaussians returns q = N(0, I).
func NewGaussians(data *Data, p model.Params) (*Gaussians, error) {
	s, err := NewSparse(data, p, Jitter)
	if err != nil {
		return nil, err
	}
	q := &Gaussians{Sparse: s}
	for range data.C {
		r := mat.NewDense(p.M, p.M, nil)
		for j := range p.M {
			r.Set(j, j, 1)
		}
		q.R = append(q.R, r)
	}
	return q, nil
}

// SetQ stores m_k and computes V_k and the marginals from it and R_k.
func (q *Gaussians) SetQ(k int, mean []float64) {
	m, r := q.Params.M, q.R[k].RawMatrix().Data
	dense.Gemm(false, true, m, m, m, 1, r, m, r, m, 0, q.V[k].RawMatrix().Data, m)
	q.SetMoments(k, append([]float64(nil), mean...))
}

// Norms determine the divergences from the prior; they are sums over the classes.
type Norms struct {
	Mean   float64 // Σ |m_k|²
	Trace  float64 // Σ |R_k|²
	LogDet float64 // Σ log R_k,jj
	Size   int     // C M
}

// Norms are those of q.
func (q *Gaussians) Norms() Norms {
	n := Norms{Size: q.C * q.Params.M}
	for k, r := range q.R {
		norm, m := mat.Norm(r, 2), q.M.RowView(k)
		n.Mean += mat.Dot(m, m)
		n.Trace += norm * norm
		for j := range q.Params.M {
			n.LogDet += math.Log(r.At(j, j))
		}
	}
	return n
}

// KL is ½(|m|² + |R|² − CM) − Σ log R_jj, the divergence of q from the prior N(0, I).
func (n *Norms) KL() float64 { return 0.5*(n.Mean+n.Trace-float64(n.Size)) - n.LogDet }

// FromPrior are the derivatives of −KL.
func FromPrior() Norms { return Norms{Mean: -0.5, Trace: -0.5, LogDet: 1} }

// Derivatives of an objective in q and the parameters.
type Derivatives struct {
	M     *mat.Dense   // C×M
	R     []*mat.Dense // C of M×M, lower triangles, of the elements as they are
	Theta []float64    // as model.Params
}

// Largest is the largest absolute derivative in q.
func (d *Derivatives) Largest() float64 {
	most := math.Max(mat.Max(d.M), -mat.Min(d.M))
	for _, r := range d.R {
		most = max(most, mat.Max(r), -mat.Min(r))
	}
	return most
}

// Derivatives turns those in the means g and variances t of the marginals, N×C, and in the
// norms into those in q and the parameters:
//
//	∂/∂m_k = Σ g w + 2 ∂/∂|m|² m_k
//	∂/∂R_k = lower triangle of Σ 2t w (R_kᵀw)ᵀ + 2 ∂/∂|R|² R_k + ∂/∂log|R| diag(1/R_jj)
//	∂/∂w_ik = g m_k + 2t V_k w_i,  ∂/∂q_ik = t
func (q *Gaussians) Derivatives(g, t *mat.Dense, n Norms) (d Derivatives) {
	var twice mat.Dense
	twice.Scale(2, t)
	d.M = mat.NewDense(q.C, q.Params.M, nil)
	for k, r := range q.R {
		gram, b := q.Natural(k, &twice, g)
		b.AddScaledVec(b, 2*n.Mean, q.M.RowView(k))
		d.M.SetRow(k, b.RawVector().Data)
		dr := mat.NewDense(q.Params.M, q.Params.M, nil)
		dr.Mul(symmetric(gram), r)
		dr.Apply(func(i, j int, x float64) float64 {
			switch {
			case i < j:
				return 0
			case i == j:
				return x + 2*n.Trace*r.At(i, j) + n.LogDet/r.At(i, j)
			default:
				return x + 2*n.Trace*r.At(i, j)
			}
		}, dr)
		d.R = append(d.R, dr)
	}
	d.Theta = q.Gradient(Features{W: q.AlongPosterior(g, &twice), Q: t})
	return d
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

// The log of the diagonal of R stays in this range, or an optimiser's step may leave the
// positive definite matrices.
const minLog, maxLog = -12, 3

// Vector is q and the parameters as the optimisers see them: m, the lower triangles of R
// with the log of the diagonal, and theta.
func (q *Gaussians) Vector() []float64 {
	out := append([]float64(nil), q.M.RawMatrix().Data...)
	for _, r := range q.R {
		out = appendTriangle(out, r, math.Log)
	}
	return append(out, q.Params.Theta...)
}

// SetVector moves q and the parameters. The function that it returns puts derivatives into
// the same coordinates, 0 where a range holds the vector back.
func (q *Gaussians) SetVector(x []float64) (flat func(Derivatives) []float64, err error) {
	c, m := q.C, q.Params.M
	means, at := x[:c*m], c*m
	var held []int
	for _, r := range q.R {
		for i := range m {
			for j := range i {
				r.Set(i, j, x[at])
				at++
			}
			l := min(max(x[at], minLog), maxLog)
			if l != x[at] {
				held = append(held, at)
			}
			r.Set(i, i, math.Exp(l))
			at++
		}
	}
	p, free := clamped(q.Params, x[at:])
	if err := q.SetParams(p); err != nil {
		return nil, err
	}
	for k := range c {
		q.SetQ(k, means[k*m:(k+1)*m])
	}
	return func(d Derivatives) []float64 {
		grad := append([]float64(nil), d.M.RawMatrix().Data...)
		for k, r := range d.R {
			for j := range m {
				r.Set(j, j, r.At(j, j)*q.R[k].At(j, j))
			}
			grad = appendTriangle(grad, r, func(x float64) float64 { return x })
		}
		for _, i := range held {
			grad[i] = 0
		}
		return append(grad, free(d.Theta)...)
	}, nil
}

// appendTriangle appends the lower triangle by rows, the diagonal through f.
func appendTriangle(out []float64, r *mat.Dense, f func(float64) float64) []float64 {
	for i := range r.RawMatrix().Rows {
		out = append(out, r.RawRowView(i)[:i]...)
		out = append(out, f(r.At(i, i)))
	}
	return out
}
