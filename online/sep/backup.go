package sep

import "slices"

// backup is a copy of the state before a step, for Undo.
type backup struct {
	state             // without the absorbed sites' precisions
	A     [][]float64 // of each horizon, C×M(M+1)/2: these, if kept
	kept  bool        // they were copied since the last save
}

// newBackup makes room for a copy of s.
func newBackup(s *state) backup {
	b := backup{state: state{
		params: s.params, opt: s.opt, scale: s.scale, sites: slices.Clone(s.sites),
		winX: make([]float64, 0, cap(s.winX)), winY: make([]int, 0, cap(s.winY)), winW: make([]float64, 0, cap(s.winW)),
	}}
	b.params.Theta = slices.Clone(s.params.Theta)
	b.opt.M, b.opt.V = slices.Clone(s.opt.M), slices.Clone(s.opt.V)
	b.scale.Mu, b.scale.Sd = slices.Clone(s.scale.Mu), slices.Clone(s.scale.Sd)
	for h := range b.sites {
		to, from := &b.sites[h], &s.sites[h]
		to.diagonal, to.b = nil, slices.Clone(from.b)
		for i, sites := range from.window() {
			*to.window()[i] = slices.Clone(*sites)
		}
		b.A = append(b.A, make([]float64, len(from.b)/s.params.M*packed(s.params.M)))
	}
	return b
}

// save copies the bank's state to the backup, which has its shape, but for the
// precisions of the absorbed sites.
func (b *Bank) save() {
	copyState(&b.backup.state, &b.state)
	b.backup.kept = false
}

// keepAbsorbed copies these, unless that was done since the last save. It comes before
// each change of them: samples that are filtered change none. The first sweep of a step
// does it for each posterior as it begins with that.
func (b *Bank) keepAbsorbed() {
	if b.backup.kept {
		return
	}
	b.backup.kept = true
	for h := range b.backup.A {
		for k := range b.view.Latent {
			b.keep(h, k)
		}
	}
}

// keep copies those of latent function k under horizon h.
func (b *Bank) keep(h, k int) {
	b.precision(h, k).pack(b.backup.A[h][k*packed(b.cfg.Inducing):])
}

// restore copies the backup to the bank's state.
func (b *Bank) restore() {
	copyState(&b.state, &b.backup.state)
	if !b.backup.kept {
		return
	}
	for h, from := range b.backup.A {
		for k := range b.view.Latent {
			from = b.precision(h, k).unpack(from)
		}
	}
}

// copyState copies all but the precisions of the absorbed sites between two states of
// one shape.
func copyState(to, from *state) {
	to.params.M, to.params.D = from.params.M, from.params.D
	copy(to.params.Theta, from.params.Theta)
	to.opt.copyFrom(&from.opt)
	copy(to.scale.Mu, from.scale.Mu)
	copy(to.scale.Sd, from.scale.Sd)
	to.winX, to.winY, to.winW = append(to.winX[:0], from.winX...), append(to.winY[:0], from.winY...), append(to.winW[:0], from.winW...)
	to.filtered, to.waiting = from.filtered, from.waiting
	for h := range to.sites {
		t, f := &to.sites[h], &from.sites[h]
		copy(t.b, f.b)
		for i, sites := range f.window() {
			copy(*t.window()[i], *sites)
		}
	}
}
