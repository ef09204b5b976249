package sep

import (
	"slices"

	"edge/model"
	"edge/model/dense"
)

// joined are the sums of other members of a fleet that join the sites of one horizon.
// They are a posterior of their own, behind those of the horizons in the view:
//
//	P_k = I + Σ s1·w·wᵀ + E_k,   m_k = P_k⁻¹(Σ s2·w + e_k)
//
// It fades and moves to a new basis with the horizon, but has no part in the sites, nor
// in the gradient: those are the same as without a fleet, to the last bit.
type joined struct {
	own  int       // the horizon
	A, b []float64 // (C+X)×M×M, (C+X)×M: E and e of the C latent functions, and of X classes that have none here

	packed, saved []float64 // copies of them for Undo, of A the lower triangles
}

// Join adds a posterior of the fleet for each of the own horizons, with sums of 0, and
// foreign latent functions for classes that have none here. It replaces those there
// were; without horizons the fleet ends. It needs one kernel for all latent functions.
func (b *Bank) Join(own []int, foreign int) {
	m, c := b.cfg.Inducing, len(b.view.Latent)
	b.Rest()
	b.joined, b.foreign, b.OwnWeights = nil, nil, nil
	b.view.Bank = slices.Clone(b.view.Bank[:len(b.sites)])
	for _, h := range own {
		b.joined = append(b.joined, joined{own: h, A: make([]float64, (c+foreign)*m*m), b: make([]float64, (c+foreign)*m)})
		b.view.Bank = append(b.view.Bank, gaussian(m, c))
		b.foreign = append(b.foreign, gaussian(m, foreign))
	}
	b.ShareForeign()
}

// gaussian returns n latent functions at their prior.
func gaussian(m, n int) model.Gaussian {
	g := model.Gaussian{M: m}
	g.Reserve(n)
	for range n {
		g.Grow()
	}
	return g
}

// ShareForeign stores the posteriors of the foreign latent functions in the view.
func (b *Bank) ShareForeign() {
	if b.view.Fleet != nil {
		b.view.Fleet.Foreign = b.foreign
	}
}

// Joined returns the sums of latent function k of joined horizon f: the lower triangle
// of E, M×M, and e. Foreign latent functions follow the own ones. The caller may change
// them; Refresh follows.
func (b *Bank) Joined(f, k int) (a, sum []float64) {
	m, z := b.cfg.Inducing, &b.joined[f]
	return z.A[k*m*m : (k+1)*m*m], z.b[k*m : (k+1)*m]
}

// Adopt gives own latent function k, which has neither sites nor sums yet, the sums and the
// posterior of foreign latent function x, which ends: a sample that is filtered only adds to it.
func (b *Bank) Adopt(x, k int) {
	m, at := b.cfg.Inducing, len(b.view.Latent)+x
	b.Own()
	for f := range b.joined {
		z, g := &b.joined[f], &b.foreign[f]
		copy(z.A[k*m*m:(k+1)*m*m], z.A[at*m*m:])
		copy(z.b[k*m:(k+1)*m], z.b[at*m:])
		own := &b.view.Bank[len(b.sites)+f]
		copy(own.U[k*m*m:(k+1)*m*m], g.U[x*m*m:])
		copy(own.Mean[k*m:(k+1)*m], g.Mean[x*m:])
		z.A, z.b = slices.Delete(z.A, at*m*m, (at+1)*m*m), slices.Delete(z.b, at*m, (at+1)*m)
		g.U, g.Mean = slices.Delete(g.U, x*m*m, (x+1)*m*m), slices.Delete(g.Mean, x*m, (x+1)*m)
	}
	b.ShareForeign()
	b.Rest()
}

// growJoined makes room for the newest latent function, without sums.
func (b *Bank) growJoined() {
	m, k := b.cfg.Inducing, len(b.view.Latent)-1
	for f := range b.joined {
		z := &b.joined[f]
		z.A, z.b = slices.Insert(z.A, k*m*m, make([]float64, m*m)...), slices.Insert(z.b, k*m, make([]float64, m)...)
		b.view.Bank[len(b.sites)+f].Grow()
	}
}

// dropJoined removes latent function k.
func (b *Bank) dropJoined(k int) {
	m := b.cfg.Inducing
	for f := range b.joined {
		z, g := &b.joined[f], &b.view.Bank[len(b.sites)+f]
		z.A, z.b = slices.Delete(z.A, k*m*m, (k+1)*m*m), slices.Delete(z.b, k*m, (k+1)*m)
		g.U, g.Mean = slices.Delete(g.U, k*m*m, (k+1)*m*m), slices.Delete(g.Mean, k*m, (k+1)*m)
	}
}

// ownJoined copies the posteriors of the foreign latent functions, which a snapshot shares.
func (b *Bank) ownJoined() {
	if len(b.foreign) == 0 {
		return
	}
	b.foreign = slices.Clone(b.foreign)
	for f := range b.foreign {
		g := &b.foreign[f]
		g.U, g.Mean = slices.Clone(g.U), slices.Clone(g.Mean)
	}
	b.ShareForeign()
}

// saveJoined copies the sums, for Undo.
func (b *Bank) saveJoined() {
	m := b.cfg.Inducing
	for f := range b.joined {
		z := &b.joined[f]
		z.saved = append(z.saved[:0], z.b...)
		z.packed = z.packed[:0]
		for a := z.A; len(a) > 0; a = a[m*m:] {
			for i := range m {
				z.packed = append(z.packed, a[i*m:i*m+i+1]...)
			}
		}
	}
}

// undoJoined restores the sums of the last saveJoined.
func (b *Bank) undoJoined() {
	m := b.cfg.Inducing
	for f := range b.joined {
		z := &b.joined[f]
		copy(z.b, z.saved)
		packed := z.packed
		for a := z.A; len(a) > 0; a = a[m*m:] {
			for i := range m {
				packed = packed[copy(a[i*m:i*m+i+1], packed):]
			}
		}
	}
}

// fadeJoined lets the sums of horizon h forget as it does.
func (b *Bank) fadeJoined(h int, gamma float64) {
	for f := range b.joined {
		if z := &b.joined[f]; z.own == h {
			Scale(gamma, z.A)
			Scale(gamma, z.b)
		}
	}
}

// projectJoined moves the sums to the new basis of work.project.
func (b *Bank) projectJoined() {
	m := b.cfg.Inducing
	for f := range b.joined {
		z := &b.joined[f]
		for k := range len(z.b) / m {
			b.work.project.Site(0, z.A[k*m*m:(k+1)*m*m], z.b[k*m:(k+1)*m])
		}
	}
}

// joinTotals takes over the sites u and bt of latent function k under horizon h: the
// posteriors that join it begin with them.
func (b *Bank) joinTotals(h, k int, u, bt []float64) {
	m := b.cfg.Inducing
	for f := range b.joined {
		if b.joined[f].own == h {
			g := &b.view.Bank[len(b.sites)+f]
			copy(g.U[k*m*m:(k+1)*m*m], u)
			copy(g.Mean[k*m:(k+1)*m], bt)
		}
	}
}

// refreshJoined computes the posteriors that join horizon h, after joinTotals. Sums that
// do not factor, or whose mean is not finite, are dropped: a fleet never stops learning.
func (b *Bank) refreshJoined(h int) {
	m, c, w := b.cfg.Inducing, len(b.view.Latent), &b.work
	for f := range b.joined {
		z, g := &b.joined[f], &b.view.Bank[len(b.sites)+f]
		if z.own != h {
			continue
		}
		for k := range len(z.b) / m {
			post, at := g, k
			if k >= c {
				post, at = &b.foreign[f], k-c
				clear(post.U[at*m*m : (at+1)*m*m])
				clear(post.Mean[at*m : (at+1)*m])
			}
			u, mean := post.U[at*m*m:(at+1)*m*m], post.Mean[at*m:(at+1)*m]
			bt := w.bt[:m]
			copy(bt, mean)
			dense.Axpy(1, z.b[k*m:(k+1)*m], bt)
			for i := range m {
				dense.Axpy(1, z.A[(k*m+i)*m:(k*m+i)*m+i+1], u[i*m:i*m+i+1])
			}
			if post.Factor(at, bt, w.y[:m]) == nil {
				continue
			}
			b.dropSum(f, k)
		}
	}
}

// dropSum drops the sums of class k of joined horizon f: its posterior is the own one, or
// the prior.
func (b *Bank) dropSum(f, k int) {
	m, c, z := b.cfg.Inducing, len(b.view.Latent), &b.joined[f]
	clear(z.A[k*m*m : (k+1)*m*m])
	clear(z.b[k*m : (k+1)*m])
	b.Counts.JoinedDropped++
	from, to := gaussian(m, 1), &b.foreign[f]
	at := k - c
	if k < c {
		own := &b.view.Bank[z.own]
		from.U, from.Mean = own.U[k*m*m:(k+1)*m*m], own.Mean[k*m:(k+1)*m]
		to, at = &b.view.Bank[len(b.sites)+f], k
	}
	copy(to.U[at*m*m:(at+1)*m*m], from.U)
	copy(to.Mean[at*m:(at+1)*m], from.Mean)
}

// includeJoined includes the sites of the window point at in the posteriors that join
// horizon h.
func (b *Bank) includeJoined(h, at int) {
	w, m, z := &b.work, b.cfg.Inducing, &b.sites[h]
	for f := range b.joined {
		if b.joined[f].own != h {
			continue
		}
		g := &b.view.Bank[len(b.sites)+f]
		for k := range b.view.Latent {
			x, u := w.features.w[0][at*m:(at+1)*m], w.u[k*m:(k+1)*m]
			dense.MulTriTrans(1, m, x, m, g.U[k*m*m:], m, u, m)
			j := k*b.capacity + at
			if g.Include(k, z.s1[j], z.s2[j], x, u, w.y[:m]) != nil {
				b.dropSum(f, k)
			}
		}
	}
}
