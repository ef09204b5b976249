package sep

import (
	"fmt"

	"edge/model/dense"
)

// filter learns the n samples of work.batch one by one, each by its site under the
// posterior before it (assumed-density filtering), which a rank-one update
// includes: O(H·C·M²) a sample. The rest of a step, to forget, to sweep over the
// window and to follow the gradient, is left to a later step for these as well.
func (b *Bank) filter(n int) error {
	w, m, d := &b.work, b.cfg.Inducing, b.cfg.Features
	st, f := &w.sites[0], &w.features
	b.copyJoined()
	for i := range n {
		at, y, power := len(b.winY), w.batch.latents[i], w.batch.weights[i]
		b.winX, b.winY, b.winW = append(b.winX, w.batch.x[i*d:(i+1)*d]...), append(b.winY, y), append(b.winW, power)
		b.filtered++
		for g := range b.bases {
			b.featuresOf(g, at, 1)
		}
		for h := range b.sites {
			b.project(h, at)
			z, g := &b.sites[h], &b.view.Bank[h]
			for k := range b.view.Latent {
				x, u := f.w[b.basis(k)][at*m:(at+1)*m], w.u[k*m:(k+1)*m]
				st.A[k], st.V[k] = dense.Dot(g.Mean[k*m:(k+1)*m], x), dense.Dot(u, u)
				st.T[k] = f.q[b.basis(k)][at] + st.V[k]
			}
			for k := range b.view.Latent {
				st.LA[k], st.LV[k], st.LT[k] = st.A[y], st.V[y], st.T[y]
			}
			st.Update(y, true, 0, 1)
			for k := range b.view.Latent {
				j := k*b.capacity + at
				z.s1[j], z.s2[j] = power*st.S1[k], power*st.S2[k]
				z.p1[j], z.p2[j] = power*st.P1[k], power*st.P2[k]
			}
			if err := b.include(h, at); err != nil {
				return err
			}
			b.includeJoined(h, at)
		}
	}
	return nil
}

// project leaves U_k·w of the window point at, under horizon h, in work.u.
func (b *Bank) project(h, at int) {
	w, m, g := &b.work, b.cfg.Inducing, &b.view.Bank[h]
	for k := range b.view.Latent {
		dense.MulTriTrans(1, m, w.features.w[b.basis(k)][at*m:], m, g.U[k*m*m:], m, w.u[k*m:], m)
	}
}

// include includes the sites of the window point at, after project, in horizon
// h's posterior.
func (b *Bank) include(h, at int) error {
	w, m, z := &b.work, b.cfg.Inducing, &b.sites[h]
	for k := range b.view.Latent {
		s1, s2 := z.s1[k*b.capacity+at], z.s2[k*b.capacity+at]
		if err := b.view.Bank[h].Include(k, s1, s2, w.features.w[b.basis(k)][at*m:(at+1)*m], w.u[k*m:(k+1)*m], w.y[:m]); err != nil {
			return fmt.Errorf("online: horizon %g: %w", z.length, err)
		}
	}
	return nil
}
