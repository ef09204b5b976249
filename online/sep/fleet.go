package sep

import (
	"slices"
	"sync/atomic"

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
	A, b []float64 // (C+X)×M(M+1)/2, (C+X)×M: lower triangles of E, and e, of the C latent functions, and of X classes that have none here

	savedA, savedB []float64 // copies of them for Undo
}

// sumsOf returns the sums of latent function k: the lower triangle of E, row by row, and e.
func (j *joined) sumsOf(k, m int) (a, sum []float64) {
	n := packed(m)
	return j.A[k*n : (k+1)*n : (k+1)*n], j.b[k*m : (k+1)*m : (k+1)*m]
}

// Join adds a posterior of the fleet for each of the own horizons, with sums of 0, and
// foreign latent functions for classes that have none here. It replaces those there
// were; without horizons the fleet ends. It needs one kernel for all latent functions.
func (b *Bank) Join(own []int, foreign int) {
	m, c := b.cfg.Inducing, len(b.view.Latent)
	b.Rest()
	b.forgetJoined()
	b.joined, b.foreign, b.OwnWeights = nil, nil, nil
	b.view.Bank = slices.Clone(b.view.Bank[:len(b.sites)])
	for _, h := range own {
		b.joined = append(b.joined, joined{own: h, A: make([]float64, (c+foreign)*packed(m)), b: make([]float64, (c+foreign)*m)})
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
// of E, M(M+1)/2 numbers row by row, and e, M. Foreign latent functions follow the own ones. The caller may
// change them; Refresh follows.
func (b *Bank) Joined(f, k int) (a, sum []float64) { return b.joined[f].sumsOf(k, b.cfg.Inducing) }

// AddJoined adds to the sums of latent function k of joined horizon f: a is M×M, of which
// the lower triangle counts. Refresh follows.
func (b *Bank) AddJoined(f, k int, a, sum []float64) {
	m := b.cfg.Inducing
	to, e := b.Joined(f, k)
	for i := range m {
		for j, v := range a[i*m : i*m+i+1] {
			to[j] += v
		}
		to = to[i+1:]
	}
	for i, v := range sum {
		e[i] += v
	}
}

// Adopt gives own latent function k, which has neither sites nor sums yet, the sums and the
// posterior of foreign latent function x, which ends: a sample that is filtered only adds to it.
func (b *Bank) Adopt(x, k int) {
	m, at := b.cfg.Inducing, len(b.view.Latent)+x
	n := packed(m)
	b.Own()
	for f := range b.joined {
		z, g := &b.joined[f], &b.foreign[f]
		copy(z.A[k*n:(k+1)*n], z.A[at*n:])
		copy(z.b[k*m:(k+1)*m], z.b[at*m:])
		own := &b.view.Bank[len(b.sites)+f]
		copy(own.U[k*m*m:(k+1)*m*m], g.U[x*m*m:])
		copy(own.Mean[k*m:(k+1)*m], g.Mean[x*m:])
		z.A, z.b = cut(z.A, at, n), cut(z.b, at, m)
		g.U, g.Mean = cut(g.U, x, m*m), cut(g.Mean, x, m)
	}
	b.ShareForeign()
	b.Rest()
}

// growJoined makes room for the newest latent function, without sums.
func (b *Bank) growJoined() {
	m, k := b.cfg.Inducing, len(b.view.Latent)-1
	n := packed(m)
	for f := range b.joined {
		z := &b.joined[f]
		z.A, z.b = slices.Insert(z.A, k*n, make([]float64, n)...), slices.Insert(z.b, k*m, make([]float64, m)...)
		b.view.Bank[len(b.sites)+f].Grow()
	}
}

// dropJoined removes latent function k.
func (b *Bank) dropJoined(k int) {
	m := b.cfg.Inducing
	n := packed(m)
	for f := range b.joined {
		z, g := &b.joined[f], &b.view.Bank[len(b.sites)+f]
		z.A, z.b = cut(z.A, k, n), cut(z.b, k, m)
		g.U, g.Mean = cut(g.U, k, m*m), cut(g.Mean, k, m)
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
	for f := range b.joined {
		z := &b.joined[f]
		z.savedA, z.savedB = append(z.savedA[:0], z.A...), append(z.savedB[:0], z.b...)
	}
}

// undoJoined restores the sums of the last saveJoined.
func (b *Bank) undoJoined() {
	for f := range b.joined {
		z := &b.joined[f]
		copy(z.A, z.savedA)
		copy(z.b, z.savedB)
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

// projectJoined moves the sums of latent function k under horizon h to the new basis of
// work.project, in a worker's square.
func (b *Bank) projectJoined(worker, h, k int) {
	m, square := b.cfg.Inducing, b.work.project.workers[worker].square
	for f := range b.joined {
		z := &b.joined[f]
		if z.own != h {
			continue
		}
		a, sum := z.sumsOf(k, m)
		rest := a
		for i := range m {
			rest = rest[copy(square[i*m:i*m+i+1], rest):]
		}
		b.work.project.Site(worker, square, sum)
		for i := range m {
			a = a[copy(a, square[i*m:i*m+i+1]):]
		}
	}
}

// projectForeign moves the sums of the foreign latent functions to the new basis.
func (b *Bank) projectForeign() {
	for f := range b.foreign {
		for x := range b.foreign[f].Classes() {
			b.projectJoined(0, b.joined[f].own, len(b.view.Latent)+x)
		}
	}
}

// addJoined adds the sums to the sites u and bt of latent function k under horizon h, for
// the posteriors that join it. refreshJoined follows.
func (b *Bank) addJoined(h, k int, u, bt []float64) {
	m := b.cfg.Inducing
	for f := range b.joined {
		if b.joined[f].own != h {
			continue
		}
		a, sum := b.joined[f].sumsOf(k, m)
		g := &b.view.Bank[len(b.sites)+f]
		for i := range m {
			own := u[i*m : i*m+i+1]
			for j, v := range a[:len(own)] {
				g.U[(k*m+i)*m+j] = own[j] + v
			}
			a = a[len(own):]
		}
		for i, v := range sum {
			g.Mean[k*m+i] = bt[i] + v
		}
	}
}

// refreshJoined computes the posteriors of latent function k that join horizon h, after
// addJoined. Sums that do not factor, or whose mean is not finite, are dropped: a fleet
// never stops learning.
func (b *Bank) refreshJoined(h, k int, y []float64) {
	m := b.cfg.Inducing
	for f := range b.joined {
		if b.joined[f].own != h {
			continue
		}
		g := &b.view.Bank[len(b.sites)+f]
		if g.Factor(k, g.Mean[k*m:(k+1)*m], y) != nil {
			b.dropSum(f, k)
		}
	}
}

// refreshForeign computes the posteriors of the foreign latent functions, the last ones of a
// fleet.
func (b *Bank) refreshForeign() {
	b.forgetJoined()
	m, c := b.cfg.Inducing, len(b.view.Latent)
	for f := range b.foreign {
		g := &b.foreign[f]
		for x := range g.Classes() {
			a, sum := b.joined[f].sumsOf(c+x, m)
			for i := range m {
				a = a[copy(g.U[(x*m+i)*m:(x*m+i)*m+i+1], a):]
			}
			if g.Factor(x, sum, b.work.y[:m]) != nil {
				b.dropSum(f, c+x)
			}
		}
	}
}

// dropSum drops the sums of class k of joined horizon f: its posterior is the own one, or
// the prior. The tasks of a refresh may drop those of several classes at once.
func (b *Bank) dropSum(f, k int) {
	m, c, z := b.cfg.Inducing, len(b.view.Latent), &b.joined[f]
	a, sum := z.sumsOf(k, m)
	clear(a)
	clear(sum)
	atomic.AddUint32(&b.Counts.JoinedDropped, 1)
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
