package sep

import (
	"fmt"

	"edge/model/dense"
)

// Refresh recomputes the window's features in the current basis and every
// posterior. The result is a function of the state alone, so that a restored bank
// holds the same numbers, to the last bit: filtered samples are included one by
// one here as well.
func (b *Bank) Refresh() error {
	b.updateFeatures()
	return b.refreshAll()
}

func (b *Bank) updateFeatures() {
	b.ready()
	swept := len(b.winY) - b.filtered
	for g := range b.bases {
		b.featuresOf(g, 0, swept)
		for at := swept; at < len(b.winY); at++ {
			b.featuresOf(g, at, 1)
		}
	}
	b.work.features.current = true
}

// featuresOf computes the features in basis g of the n window points from at on.
func (b *Bank) featuresOf(g, at, n int) {
	f, m, d := &b.work.features, b.cfg.Inducing, b.cfg.Features
	b.bases[g].FeaturesTo(f.kx[g][at*m:], f.w[g][at*m:], f.q[g][at:], n, b.winX[at*d:(at+n)*d], f.xs, f.xx)
}

func (b *Bank) refreshAll() error {
	swept := len(b.winY) - b.filtered
	for h := range b.sites {
		if err := b.refresh(h, 0, swept); err != nil {
			return err
		}
		for at := swept; at < len(b.winY); at++ {
			b.project(h, at)
			if err := b.include(h, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// refresh recomputes horizon h's posterior from its absorbed sites and those
// of the window points, whose features are rows from to to.
func (b *Bank) refresh(h, from, to int) error {
	w, m, keep := &b.work, b.cfg.Inducing, to-from
	z, g := &b.sites[h], &b.view.Bank[h]
	for k := range len(b.view.Latent) {
		wk := w.features.w[b.basis(k)][from*m : to*m]
		u := g.U[k*m*m : (k+1)*m*m]
		copy(u, z.A[k*m*m:(k+1)*m*m])
		dense.WeightedGram(keep, m, z.s1[k*b.capacity:], 1, wk, m, u, m)
		copy(w.bt, z.b[k*m:(k+1)*m])
		dense.Gemv(true, keep, m, 1, wk, m, z.s2[k*b.capacity:k*b.capacity+keep], 1, w.bt)
		if err := g.Factor(k, w.bt, w.y); err != nil {
			return fmt.Errorf("online: horizon %g: %w", z.length, err)
		}
	}
	return nil
}
