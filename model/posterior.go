package model

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"edge/model/dense"
)

// Gaussian is the posterior of the C whitened latent functions under one
// forgetting horizon: e_k ~ N(Mean_k, U_kᵀU_k).
type Gaussian struct {
	M    int
	U    []float64 // C×M×M  inverse of the lower Cholesky factor of I + Σ s1·w·wᵀ; strict upper triangles are the learner's
	Mean []float64 // C×M
}

// Classes is C: one latent function for each class.
func (g *Gaussian) Classes() int { return len(g.Mean) / g.M }

// Reserve makes room for exactly that many latent functions.
func (g *Gaussian) Reserve(classes int) {
	m := g.M
	if cap(g.U) < classes*m*m {
		g.U = append(make([]float64, 0, classes*m*m), g.U...)
		g.Mean = append(make([]float64, 0, classes*m), g.Mean...)
	}
}

// Grow appends one latent function at its prior, N(0, I).
func (g *Gaussian) Grow() {
	m, c := g.M, g.Classes()
	g.Reserve(c + 1)
	g.U, g.Mean = g.U[:(c+1)*m*m], g.Mean[:(c+1)*m]
	clear(g.U[c*m*m:])
	clear(g.Mean[c*m:])
	for i := range m {
		g.U[c*m*m+i*m+i] = 1
	}
}

// Factor turns class k's precision into its posterior, in place, in O(M³/3).
//
//	on entry  the lower triangle of U_k holds the sites' precision A = Σ s1·w·wᵀ, without the prior's I
//	b         M, the sites' linear term Σ s2·w
//	y         scratch, M
//
// A is positive semi-definite, so that I + A always factors unless it is not
// finite: ErrFactor then.
func (g *Gaussian) Factor(k int, b, y []float64) error {
	m := g.M
	u, mean := g.U[k*m*m:(k+1)*m*m], g.Mean[k*m:(k+1)*m]
	for i := range m {
		u[i*m+i]++
	}
	if !dense.Cholesky(m, u, m) {
		return fmt.Errorf("model: factor the precision of class %d: %w", k, ErrFactor)
	}
	dense.InvertTri(m, u, m)
	dense.MulTriTrans(1, m, b, m, u, m, y, m)
	dense.MulTri(1, m, y, m, u, m, mean, m)
	for _, v := range mean {
		if v-v != 0 {
			return fmt.Errorf("model: mean of class %d: %w", k, ErrNotFinite)
		}
	}
	return nil
}

// Include includes one site exp(−½·s1·f² + s2·f) in f = w·e_k, s1 ≥ 0, in class
// k's posterior, in O(M²): with a = U·w, v = |a|², t_i = 1 + s1·Σ_{j≤i} a_j²,
//
//	Mean ← Mean + Uᵀa·(s2 − s1·w·Mean)/(1 + s1·v)
//	U_i  ← √(t_{i−1}/t_i)·(U_i − s1·a_i/t_{i−1} · Σ_{j<i} a_j·U_j)
//
//	w     M, features
//	a     M, U_k·w
//	y     scratch, M
//
// The rows are those of C⁻¹U, where C is the Cholesky factor of I + s1·a·aᵀ.
// Nothing cancels: every t is at least 1. ErrNotFinite if the mean overflows.
//
// Source: Gill, Golub, Murray & Saunders (1974), "Methods for modifying matrix
// factorizations", method C1.
func (g *Gaussian) Include(k int, s1, s2 float64, w, a, y []float64) error {
	m := g.M
	u, mean := g.U[k*m*m:(k+1)*m*m], g.Mean[k*m:(k+1)*m]
	dense.MulTri(1, m, a, m, u, m, y, m)
	dense.Axpy((s2-s1*dense.Dot(w, mean))/(1+s1*dense.Dot(a, a)), y, mean)
	for _, v := range mean {
		if v-v != 0 {
			return fmt.Errorf("model: mean of class %d: %w", k, ErrNotFinite)
		}
	}
	sum, t := y, 1.0
	clear(sum)
	for i, ai := range a {
		next := t + s1*ai*ai
		c, d := math.Sqrt(t/next), s1*ai/t
		row := u[i*m : i*m+i+1]
		for j, v := range row {
			row[j] = c * (v - d*sum[j])
			sum[j] += ai * v
		}
		t = next
	}
	return nil
}

// Posterior is one frozen state of the classifier: safe for any number of readers
// once its learner has stopped changing it. Its fields are for that learner; readers
// use the methods.
type Posterior struct {
	Names       []string          // classes, in the order of the probabilities; within an epoch it only grows at its end
	Aliases     map[string]string // former names of classes, which still refer to them, and their present names
	Epoch       uint64            // of Names: the number of classes that were removed
	Counts      []uint64          // samples learnt of each class
	N           uint64            // samples learnt
	Latent      []int             // class of each latent function
	Bases       []*Basis          // one that all latent functions share, or one each; empty before the model is built: class frequencies answer then
	Scale       Scale             // of the features
	Calibration *Calibration      // of the features, before Scale; nil: none
	Bank        []Gaussian        // one a horizon
	Weights     []float64         // of the horizons, sum 1
	Pool        Pool              // the correction of the mixture of the horizons
	Fleet       *Fleet            // the part of other devices; nil: there is no fleet
	Memory      *Memory           // in which the bank is; nil: in its own
	Record      uint64            // number of the journal's record of the latest label that it knows; 0: not known
}

// Classes are the names of the classes, in the order of the probabilities. It
// only grows at its end, unless a class is removed by request. Read only.
func (p *Posterior) Classes() []string { return p.Names }

// Dim is D, the number of features.
func (p *Posterior) Dim() int { return len(p.Scale.Mu) }

// Version counts the samples that the posterior has learnt.
func (p *Posterior) Version() uint64 { return p.N }

// frequency returns the relative frequency of class k, with one more sample of each
// class. learnt is Σ Counts.
func (p *Posterior) frequency(k int, learnt uint64) float64 {
	return (float64(p.Counts[k]) + 1) / (float64(learnt) + float64(len(p.Names)))
}

// FrequenciesTo stores π, the relative frequencies of the classes with one more sample
// of each, in dst and returns it: C, grown if needed.
func (p *Posterior) FrequenciesTo(dst []float64) []float64 {
	dst = grow(dst, len(p.Names))
	n := p.learnt()
	for k := range dst {
		dst[k] = p.frequency(k, n)
	}
	return dst
}

// learnt is the number of samples of the present classes; those of a removed class
// count in N alone.
func (p *Posterior) learnt() (n uint64) {
	for _, v := range p.Counts {
		n += v
	}
	return n
}

// Built reports whether the Gaussian process answers; class frequencies do before.
func (p *Posterior) Built() bool { return len(p.Bases) > 0 }

// basis returns latent function k's basis.
func (p *Posterior) basis(k int) *Basis { return p.Bases[min(k, len(p.Bases)-1)] }

// Eps is the learnt probability that a label is wrong; 0 before the model is built.
func (p *Posterior) Eps() float64 {
	if !p.Built() {
		return 0
	}
	return p.Bases[0].Eps
}

// Snapshot returns a copy that shares the bases, the means and factors of the bank, by
// far the largest part, and the ranks of the scale: the learner that builds p replaces
// them from then on, and changes none in place. All else is copied.
func (p *Posterior) Snapshot() *Posterior {
	c := *p
	c.Names = slices.Clone(p.Names)
	c.Aliases = maps.Clone(p.Aliases)
	c.Counts = slices.Clone(p.Counts)
	c.Latent = slices.Clone(p.Latent)
	c.Scale = Scale{Mu: slices.Clone(p.Scale.Mu), Sd: slices.Clone(p.Scale.Sd), Clip: p.Scale.Clip, Ranks: p.Scale.Ranks}
	c.Weights = slices.Clone(p.Weights)
	c.Pool = Pool{slices.Clone(p.Pool.Weights), p.Pool.Order.clone(), p.Pool.Stack.clone(), p.Pool.Noise, p.Pool.Prior}
	c.Bases, c.Bank = slices.Clone(p.Bases), slices.Clone(p.Bank)
	c.Fleet = p.Fleet.clone()
	return &c
}

// SameInputs reports whether inputs that were loaded for p can be answered by q.
func (p *Posterior) SameInputs(q *Posterior) bool {
	return p == q || p.Calibration == q.Calibration && len(p.Bank) > 0 && len(q.Bank) > 0 && &p.Bank[0] == &q.Bank[0]
}

// Relevance returns 1/ℓ² for each feature, with ℓ in units of its standard
// deviation, averaged over the kernels: latent functions vary fast along a relevant
// feature. Nil before the model is built.
func (p *Posterior) Relevance() []float64 {
	if !p.Built() {
		return nil
	}
	r := make([]float64, p.Dim())
	for _, b := range p.Bases {
		for j, v := range b.InvEll {
			r[j] += v * v / float64(len(p.Bases))
		}
	}
	return r
}

// CheckInput returns an error that names the feature if x cannot be predicted.
// A feature may be NaN, which means that it is missing; not all of them.
func (p *Posterior) CheckInput(x []float64) error {
	if len(x) != p.Dim() {
		return fmt.Errorf("model: input has %d features, want %d: %w", len(x), p.Dim(), ErrDimension)
	}
	known := false
	for j, v := range x {
		if math.IsInf(v, 0) {
			return fmt.Errorf("model: feature %d is %g: %w", j, v, ErrNotFinite)
		}
		known = known || v == v
	}
	if !known {
		return fmt.Errorf("model: no feature is known: %w", ErrNotFinite)
	}
	return nil
}
