package sep

import "slices"

// Find returns the number of the latest window point with the D standardised
// features x and the latent function k; −1 if no point has them.
func (b *Bank) Find(x []float64, k int) int {
	d := b.cfg.Features
	for i := len(b.winY) - 1; i >= 0; i-- {
		if b.winY[i] == k && slices.Equal(b.winX[i*d:(i+1)*d], x) {
			return i
		}
	}
	return -1
}

// DropPoint removes point i from the window, and its sites from the product:
// exactly, because those of the window are kept one by one. Refresh follows it.
func (b *Bank) DropPoint(i int) {
	n, d := len(b.winY), b.cfg.Features
	for h := range b.sites {
		for _, sites := range b.sites[h].window() {
			for at := i; at < len(*sites); at += b.capacity {
				row := (*sites)[at : at+n-i]
				copy(row, row[1:])
				row[len(row)-1] = 0
			}
		}
	}
	if i >= n-b.filtered {
		b.filtered--
	}
	if i >= n-b.waiting {
		b.waiting--
	}
	b.winX, b.winY, b.winW = cut(b.winX, i, d), slices.Delete(b.winY, i, i+1), cut(b.winW, i, 1)
}

// cut removes row at of a matrix with n columns. It is not inlined, which would make DropLatent 2 KB
// larger, and other callers 200 bytes for each call.
//
//go:noinline
func cut(s []float64, at, n int) []float64 { return slices.Delete(s, at*n, (at+1)*n) }

// DropLatent removes latent function at, the window points of its class, and its
// pair from the site of every other point's label. The
// numbers of the latent functions after it decrease by one. Refresh follows it.
func (b *Bank) DropLatent(at int) {
	for i := len(b.winY) - 1; i >= 0; i-- {
		if b.winY[i] == at {
			b.DropPoint(i)
		}
	}
	for i, y := range b.winY {
		if y > at {
			b.winY[i]--
		}
	}
	m := b.cfg.Inducing
	b.Own()
	for h := range b.sites {
		z, g := &b.sites[h], &b.view.Bank[h]
		z.diagonal, z.b = cut(z.diagonal, at, m), cut(z.b, at, m)
		for _, sites := range z.window() {
			*sites = cut(*sites, at, b.capacity)
		}
		for i, y := range b.winY {
			var s1, s2 float64
			for pair := i; pair < len(z.p1); pair += b.capacity {
				s1, s2 = s1+z.p1[pair], s2+z.p2[pair]
			}
			z.s1[y*b.capacity+i], z.s2[y*b.capacity+i] = s1, s2
		}
		g.U, g.Mean = cut(g.U, at, m*m), cut(g.Mean, at, m)
	}
	b.dropJoined(at)
	b.view.Latent = slices.Delete(b.view.Latent, at, at+1)
	if len(b.bases) > 1 {
		one := len(b.params.Theta) / len(b.bases)
		b.params.Theta, b.opt.M, b.opt.V = cut(b.params.Theta, at, one), cut(b.opt.M, at, one), cut(b.opt.V, at, one)
		b.bases = slices.Delete(b.bases, at, at+1)
		b.view.Bases = b.bases
	}
	b.Rest()
}

// DropLatest removes the n latest points from the window, or all where they are fewer. The error is
// that of Refresh.
func (b *Bank) DropLatest(n int) error {
	for range min(n, len(b.winY)) {
		b.DropPoint(len(b.winY) - 1)
	}
	return b.Refresh()
}
