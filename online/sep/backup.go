package sep

import "slices"

// backup is a copy of the state before a step, for Undo. Of the absorbed sites it
// holds the lower triangles alone, half of the memory.
type backup struct {
	state             // without the sites' A
	A     [][]float64 // of each horizon, C×M(M+1)/2
}

// newBackup returns a copy of s.
func newBackup(s *state) backup {
	b := backup{state: state{
		params: s.params, opt: s.opt, scale: s.scale, sites: slices.Clone(s.sites),
		winX: make([]float64, 0, cap(s.winX)), winY: make([]int, 0, cap(s.winY)), winW: make([]float64, 0, cap(s.winW)),
	}}
	b.params.Theta = slices.Clone(s.params.Theta)
	b.opt.M, b.opt.V = slices.Clone(s.opt.M), slices.Clone(s.opt.V)
	b.scale.Mu, b.scale.Sd = slices.Clone(s.scale.Mu), slices.Clone(s.scale.Sd)
	m := s.params.M
	for h := range b.sites {
		to, from := &b.sites[h], &s.sites[h]
		to.A, to.b = nil, slices.Clone(from.b)
		for i, sites := range from.window() {
			*to.window()[i] = slices.Clone(*sites)
		}
		b.A = append(b.A, make([]float64, len(from.A)/(m*m)*(m*(m+1)/2)))
	}
	b.save(s)
	return b
}

// save makes b a copy of s, which has the shape of the state that b was made for.
func (b *backup) save(s *state) {
	copyState(&b.state, s)
	m := s.params.M
	for h, packed := range b.A {
		for a := s.sites[h].A; len(a) > 0; a = a[m*m:] {
			for i := range m {
				packed = packed[copy(packed, a[i*m:i*m+i+1]):]
			}
		}
	}
}

// restore copies the saved state to s. The absorbed sites keep their values above
// the diagonals, which are never read.
func (b *backup) restore(s *state) {
	copyState(s, &b.state)
	m := s.params.M
	for h, packed := range b.A {
		for a := s.sites[h].A; len(a) > 0; a = a[m*m:] {
			for i := range m {
				packed = packed[copy(a[i*m:i*m+i+1], packed):]
			}
		}
	}
}

// copyState copies all but the absorbed sites' A between two states of one shape.
func copyState(to, from *state) {
	to.params.M, to.params.D = from.params.M, from.params.D
	copy(to.params.Theta, from.params.Theta)
	to.opt.copyFrom(&from.opt)
	copy(to.scale.Mu, from.scale.Mu)
	copy(to.scale.Sd, from.scale.Sd)
	to.winX, to.winY, to.winW = append(to.winX[:0], from.winX...), append(to.winY[:0], from.winY...), append(to.winW[:0], from.winW...)
	to.filtered = from.filtered
	for h := range to.sites {
		t, f := &to.sites[h], &from.sites[h]
		copy(t.b, f.b)
		for i, sites := range f.window() {
			copy(*t.window()[i], *sites)
		}
	}
}
