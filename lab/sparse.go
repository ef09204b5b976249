package lab

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"edge/model"
	"edge/model/dense"
)

// Sparse is the posterior of the whitened values e_k of every class, given sites in the
// scalars w_ik·e_k:
//
//	P_k = I + Σ s1_ik w_i w_iᵀ,  b_k = Σ s2_ik w_i,  V_k = P_k⁻¹,  m_k = V_k b_k
//	mean_ik = w_i·m_k,  v_ik = w_i·V_k w_i,  logN_k = −½ log|P_k| + ½ b_k·m_k
//
// A posterior of N rows and C classes costs C(N M² + M³).
type Sparse struct {
	*Data
	Params model.Params // G kernels, 1 or C
	Jitter float64      // on c(Z, Z), in units of the amplitude: Jitter, or less if that does

	V, VW     []*mat.Dense // C of M×M; C of N×M, V w_i
	B, M      *mat.Dense   // C×M
	LogN      []float64    // C
	Mean, Var *mat.Dense   // N×C, of w·e
	Q         *mat.Dense   // N×C, residual variance and noise

	bases []*model.Basis // G
	kx, w []*mat.Dense   // G of N×M
}

// NewSparse returns the prior of data under the parameters, which it copies.
func NewSparse(data *Data, p model.Params, jitter float64) (*Sparse, error) {
	c := data.C
	s := &Sparse{Jitter: jitter, B: mat.NewDense(c, p.M, nil), M: mat.NewDense(c, p.M, nil), LogN: make([]float64, c)}
	for range c {
		s.V = append(s.V, mat.NewDense(p.M, p.M, nil))
	}
	for range p.Groups() {
		s.bases = append(s.bases, model.NewBasis(p.M, p.D))
	}
	s.Params.M = p.M
	s.SetRows(data)
	if err := s.SetParams(p); err != nil {
		return nil, err
	}
	return s, s.Solve(NewTable(data), NewTable(data))
}

// SetRows replaces the rows, by a minibatch for example. The posterior stays; the features of
// the new rows come with the next SetParams, their marginals with the posterior after it.
func (s *Sparse) SetRows(data *Data) {
	if s.Data == nil || data.N() != s.N() {
		n, m := data.N(), s.Params.M
		s.Mean, s.Var, s.Q = NewTable(data), NewTable(data), NewTable(data)
		s.VW, s.kx, s.w = nil, nil, nil
		for range s.V {
			s.VW = append(s.VW, mat.NewDense(n, m, nil))
		}
		for range s.bases {
			s.kx, s.w = append(s.kx, mat.NewDense(n, m, nil)), append(s.w, mat.NewDense(n, m, nil))
		}
	}
	s.Data = data
}

// NewTable returns a table of zeros.
func NewTable(d *Data) *mat.Dense { return mat.NewDense(d.N(), d.C, nil) }

// SetParams moves the parameters. Sites are numbers in f and stay; the posterior has to be
// solved again.
func (s *Sparse) SetParams(p model.Params) error {
	moved := !slices.Equal(s.Params.Theta, p.Theta)
	s.Params = p.Clone()
	for g, b := range s.bases {
		group := s.Params.Group(g)
		if moved {
			if err := setBasis(b, &group, s.Jitter); err != nil {
				s.Params.Theta = nil // the next ones are moved to from nowhere
				return err
			}
		}
		q := make([]float64, s.N())
		features(b, s.X, s.kx[g], s.w[g], q)
		for k := range s.C {
			if s.group(k) == g {
				s.Q.SetCol(k, q)
			}
		}
	}
	return nil
}

// Parameters are those of the posterior.
func (s *Sparse) Parameters() model.Params { return s.Params }

// setBasis computes a basis with a jitter below model.Jitter where that is enough, else with
// model.Jitter or more.
func setBasis(b *model.Basis, p *model.Params, jitter float64) error {
	if _, err := b.Set(p); err != nil || jitter >= b.Jitter {
		return err
	}
	l := b.Covariance(make([]float64, b.M*b.M))
	for i := range b.M {
		l[i*b.M+i] += jitter * b.Amp
	}
	if dense.Cholesky(b.M, l, b.M) {
		b.L, b.Jitter = l, jitter
	}
	return nil
}

// features computes c(x, Z), w and q of all rows of x.
func features(b *model.Basis, x []float64, kx, w *mat.Dense, q []float64) {
	b.FeaturesTo(kx.RawMatrix().Data, w.RawMatrix().Data, q, len(q), x, make([]float64, len(x)), make([]float64, len(q)))
}

// group is the kernel of class k.
func (s *Sparse) group(k int) int {
	if len(s.bases) == 1 {
		return 0
	}
	return k
}

// Basis is the basis of class k. It is not to be changed.
func (s *Sparse) Basis(k int) *model.Basis { return s.bases[s.group(k)] }

// W is the whitened features of class k, N×M.
func (s *Sparse) W(k int) *mat.Dense { return s.w[s.group(k)] }

// Solve computes the posterior from the totals of the sites, N×C. It returns
// model.ErrFactor if a negative precision makes P_k indefinite.
func (s *Sparse) Solve(s1, s2 *mat.Dense) error {
	for k := range s.C {
		gram, b := s.Natural(k, s1, s2)
		if err := s.SetNatural(k, gram, b); err != nil {
			return err
		}
	}
	return nil
}

// Natural returns Σ s1_ik w_i w_iᵀ, whose upper triangle is not set, and Σ s2_ik w_i.
func (s *Sparse) Natural(k int, s1, s2 *mat.Dense) (*mat.Dense, *mat.VecDense) {
	m := s.Params.M
	gram, b := mat.NewDense(m, m, nil), mat.NewVecDense(m, nil)
	dense.WeightedGram(s.N(), m, s1.RawMatrix().Data[k:], s.C, s.W(k).RawMatrix().Data, m, gram.RawMatrix().Data, m)
	b.MulVec(s.W(k).T(), s2.ColView(k))
	return gram, b
}

// SetNatural computes the posterior of class k from P = I + gram, of which the lower
// triangle is read, and b.
func (s *Sparse) SetNatural(k int, gram *mat.Dense, b *mat.VecDense) error {
	m := s.Params.M
	l := mat.DenseCopyOf(gram)
	for i := range m {
		l.Set(i, i, 1+gram.At(i, i))
		for j := i + 1; j < m; j++ {
			l.Set(i, j, 0)
		}
	}
	if !dense.Cholesky(m, l.RawMatrix().Data, m) {
		return fmt.Errorf("lab: the precision of class %d: %w", k, model.ErrFactor)
	}
	s.LogN[k] = 0
	for i := range m {
		s.LogN[k] -= math.Log(l.At(i, i))
	}
	dense.InvertTri(m, l.RawMatrix().Data, m)
	v := s.V[k]
	dense.SymmetricProduct(true, false, m, m, l.RawMatrix().Data, m, l.RawMatrix().Data, m, v.RawMatrix().Data, m)
	for i := range m {
		for j := range i {
			v.Set(j, i, v.At(i, j))
		}
	}
	var mean mat.VecDense
	mean.MulVec(v, b)
	s.LogN[k] += 0.5 * mat.Dot(b, &mean)
	s.B.SetRow(k, b.RawVector().Data)
	s.SetMoments(k, mean.RawVector().Data)
	return nil
}

// SetMoments stores m_k, and computes the marginals of class k from m_k and V_k.
func (s *Sparse) SetMoments(k int, mean []float64) {
	n, m, w := s.N(), s.Params.M, s.W(k)
	s.M.SetRow(k, mean)
	dense.Gemm(false, false, n, m, m, 1, w.RawMatrix().Data, m, s.V[k].RawMatrix().Data, m, 0, s.VW[k].RawMatrix().Data, m)
	for i := range n {
		row := w.RawRowView(i)
		s.Mean.Set(i, k, dense.Dot(row, mean))
		s.Var.Set(i, k, dense.Dot(row, s.VW[k].RawRowView(i)))
	}
}

// Evidence is Σ logN_k.
func (s *Sparse) Evidence() float64 {
	var sum float64
	for _, v := range s.LogN {
		sum += v
	}
	return sum
}

// Latent returns mean and variance of f~_k, n×C, at n rows of standardised features.
func (s *Sparse) Latent(x []float64) (mean, variance *mat.Dense) {
	n, m := len(x)/s.D, s.Params.M
	mean, variance = mat.NewDense(n, s.C, nil), mat.NewDense(n, s.C, nil)
	kx, w, vw, q := mat.NewDense(n, m, nil), mat.NewDense(n, m, nil), mat.NewDense(n, m, nil), make([]float64, n)
	for k := range s.C {
		if k == 0 || len(s.bases) > 1 {
			features(s.bases[s.group(k)], x, kx, w, q)
		}
		vw.Mul(w, s.V[k])
		for i := range n {
			mean.Set(i, k, dense.Dot(w.RawRowView(i), s.M.RawRowView(k)))
			variance.Set(i, k, q[i]+dense.Dot(w.RawRowView(i), vw.RawRowView(i)))
		}
	}
	return mean, variance
}
