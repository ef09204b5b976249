package sep

// precision is the precision A = Σ s1·w·wᵀ of the absorbed sites of one latent function,
// M×M and symmetric. It has little memory of its own: its rows below the diagonal are
// stored above the diagonal of the posterior's factor, where model.Gaussian leaves
// M(M−1)/2 places unused. Row i of A, i long, ends row M−1−i of U.
type precision struct {
	m        int
	diagonal []float64 // M
	u        []float64 // M×M  U of the posterior
}

// precision returns that of latent function k under horizon h. Own comes before a change
// of it.
func (b *Bank) precision(h, k int) precision {
	m := b.cfg.Inducing
	return precision{m, b.sites[h].diagonal[k*m : (k+1)*m], b.view.Bank[h].U[k*m*m : (k+1)*m*m]}
}

// row returns row i of A left of the diagonal.
func (p precision) row(i int) []float64 {
	end := (p.m - i) * p.m
	return p.u[end-i : end]
}

// load stores the lower triangle of A in dst, M×M, which may be U.
func (p precision) load(dst []float64) {
	for i, v := range p.diagonal {
		copy(dst[i*p.m:], p.row(i))
		dst[i*p.m+i] = v
	}
}

// store replaces A by the matrix whose lower triangle is src, M×M.
func (p precision) store(src []float64) {
	for i := range p.diagonal {
		copy(p.row(i), src[i*p.m:])
		p.diagonal[i] = src[i*p.m+i]
	}
}

// fade multiplies A by gamma.
func (p precision) fade(gamma float64) {
	for i := range p.m {
		Scale(gamma, p.row(i))
	}
	Scale(gamma, p.diagonal)
}

// clear makes A zero.
func (p precision) clear() {
	for i := range p.m {
		clear(p.row(i))
	}
	clear(p.diagonal)
}

// pack stores the lower triangle of A row by row at the beginning of dst, and returns
// the rest of dst.
func (p precision) pack(dst []float64) []float64 {
	for i, v := range p.diagonal {
		dst = dst[copy(dst, p.row(i)):]
		dst[0], dst = v, dst[1:]
	}
	return dst
}

// unpack replaces A by the triangle that pack stored, and returns the rest of src.
func (p precision) unpack(src []float64) []float64 {
	for i := range p.diagonal {
		src = src[copy(p.row(i), src):]
		p.diagonal[i], src = src[0], src[1:]
	}
	return src
}

// packed is the number of elements of a lower triangle of M rows.
func packed(m int) int { return m * (m + 1) / 2 }
