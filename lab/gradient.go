package lab

import (
	"gonum.org/v1/gonum/mat"

	"edge/model/dense"
	"edge/online/sep"
)

// Features are the derivatives of an objective in the whitened features and in the
// residual variance of every observation and class.
type Features struct {
	W []*mat.Dense // C of N×M, ∂F/∂w_ik with q held fixed
	Q *mat.Dense   // N×C, ∂F/∂q_ik
}

// AlongPosterior is ∂F/∂w_ik = a_ik m_k + c_ik V_k w_i, from the derivatives that hold m
// and V fixed.
//
//	a, c  N×C
func (s *Sparse) AlongPosterior(a, c *mat.Dense) []*mat.Dense {
	out := make([]*mat.Dense, s.C)
	for k := range out {
		out[k] = mat.NewDense(s.N(), s.Params.M, nil)
		for i := range s.N() {
			row := out[k].RawRowView(i)
			dense.Axpy(a.At(i, k), s.M.RawRowView(k), row)
			dense.Axpy(c.At(i, k), s.VW[k].RawRowView(i), row)
		}
	}
	return out
}

// ThroughPosterior is reverse mode through Solve with the sites s1, s2 held fixed: it
// turns the derivatives of F in mean_ik and v_ik, and 1 in Σ logN_k, into those in w_ik.
//
//	mb = Σ A_i w_i,  Vb = Σ B_i w_i w_iᵀ,  bb = V mb + m
//	Pb = −V (Vb + (mb bᵀ + b mbᵀ)/2) V − (V + m mᵀ)/2
//	∂F/∂w_i = A_i m + 2 B_i V w_i + 2 s1_i Pb w_i + s2_i bb
func (s *Sparse) ThroughPosterior(s1, s2, dMean, dVar *mat.Dense) []*mat.Dense {
	var twice mat.Dense
	twice.Scale(2, dVar)
	out := s.AlongPosterior(dMean, &twice)
	for k := range out {
		w, v := s.W(k), s.V[k]
		vb, mb := s.Natural(k, dVar, dMean)
		for i := range s.Params.M {
			for j := range i {
				vb.Set(j, i, vb.At(i, j))
			}
		}
		b, m := s.B.RowView(k), s.M.RowView(k)
		var bb mat.VecDense
		bb.MulVec(v, mb)
		bb.AddVec(&bb, m)
		vb.RankOne(vb, 0.5, mb, b)
		vb.RankOne(vb, 0.5, b, mb)
		var pb mat.Dense
		pb.Product(v, vb, v)
		pb.Apply(func(i, j int, x float64) float64 {
			return -x - 0.5*(v.At(i, j)+m.AtVec(i)*m.AtVec(j))
		}, &pb)
		var wp mat.Dense
		wp.Mul(w, &pb)
		for i := range s.N() {
			dense.Axpy(2*s1.At(i, k), wp.RawRowView(i), out[k].RawRowView(i))
			dense.Axpy(s2.At(i, k), bb.RawVector().Data, out[k].RawRowView(i))
		}
	}
	return out
}

// Gradient is ∂F/∂Theta in the order of model.Params, the derivatives of classes with the
// same kernel added up.
func (s *Sparse) Gradient(f Features) []float64 {
	grad := make([]float64, 0, len(s.Params.Theta))
	for g := range s.bases {
		var e sep.Evidence
		e.Resize(s.N(), s.Params.M, s.D)
		for k := range s.C {
			if s.group(k) != g {
				continue
			}
			dense.Axpy(1, f.W[k].RawMatrix().Data, e.W)
			for i := range e.Q {
				e.Q[i] += f.Q.At(i, k)
			}
		}
		group := s.Params.Group(g)
		e.Backprop(s.bases[g], &group, s.N(), s.X, s.kx[g].RawMatrix().Data, s.w[g].RawMatrix().Data)
		grad = append(grad, e.Grad...)
	}
	return grad
}
