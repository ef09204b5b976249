package sep

import (
	"edge/model"
	"edge/model/dense"
)

// Params returns a copy of the parameters.
func (b *Bank) Params() model.Params { return b.params.Clone() }

// Total stores the sites of latent function k under horizon h, absorbed and of the
// window: Σ s1·w·wᵀ, of which the lower triangle counts, and Σ s2·w.
//
//	a, total  M×M, M
func (b *Bank) Total(h, k int, a, total []float64) {
	if !b.work.features.current {
		b.updateFeatures()
	}
	z, m, n := &b.sites[h], b.cfg.Inducing, len(b.winY)
	w := b.work.features.w[b.basis(k)][:n*m]
	b.Absorbed(h, k, a, total)
	dense.WeightedGram(n, m, z.s1[k*b.capacity:], 1, w, m, a, m)
	dense.Gemv(true, n, m, 1, w, m, z.s2[k*b.capacity:k*b.capacity+n], 1, total)
}

// Absorbed stores the absorbed sites of latent function k under horizon h, without
// those of the window. Arguments as of Total.
func (b *Bank) Absorbed(h, k int, a, total []float64) {
	m := b.cfg.Inducing
	b.precision(h, k).load(a)
	copy(total, b.sites[h].b[k*m:(k+1)*m])
}

// SetAbsorbed replaces the absorbed sites of latent function k under horizon h. Arguments
// as of Total; Refresh follows.
func (b *Bank) SetAbsorbed(h, k int, a, total []float64) {
	b.Own()
	b.precision(h, k).store(a)
	copy(b.sites[h].b[k*b.cfg.Inducing:], total)
}

// WindowPoints returns the features of the window's points in the basis of the first
// latent function, n×M and n, and the latent functions of their labels. They are valid
// until the next step.
func (b *Bank) WindowPoints() (w, q []float64, y []int) {
	if !b.work.features.current {
		b.updateFeatures()
	}
	n := len(b.winY)
	return b.work.features.w[0][:n*b.cfg.Inducing], b.work.features.q[0][:n], b.winY
}
