package sep

import "edge/model"

// memory is one piece of memory for several slices.
type memory []float64

// take returns the next n elements.
func (m *memory) take(n int) []float64 {
	s := (*m)[:n:n]
	*m = (*m)[n:]
	return s
}

// posteriors are the parts of a bank that its snapshots share.
type posteriors struct {
	bases  []*model.Basis // one that all latent functions share, or one each
	shared bool           // a snapshot has bases and view.Bank too

	spare  *model.Memory            // in which view.Bank was before it was copied last; nil: none
	unread func(*model.Memory) bool // reports whether no reader has it any more; nil: that is not known

	before []model.Gaussian // those of a snapshot, or as many; above their diagonals is room for a backup
	behind bool             // view.Bank has no copy yet of those of a fleet in before
}

// Reuse lets b use the memory of an earlier snapshot again once unread reports that no
// reader has it. nil: b leaves it alone.
func (b *Bank) Reuse(unread func(*model.Memory) bool) { b.unread, b.spare = unread, nil }

// floats is the number of floats of view.Bank with c latent functions.
func (b *Bank) floats(c int) int { return len(b.view.Bank) * c * (b.cfg.Inducing + 1) * b.cfg.Inducing }

// laid returns as many posteriors as view.Bank has, with c latent functions each, in one piece
// of memory: the allocator rounds each large piece up to pages. nil: in new memory.
func (b *Bank) laid(in *model.Memory, c int) (bank []model.Gaussian, to *model.Memory) {
	if in == nil {
		in = &model.Memory{Floats: make([]float64, b.floats(c))}
	}
	m, rest := b.cfg.Inducing, memory(in.Floats)
	for range b.view.Bank {
		bank = append(bank, model.Gaussian{M: m, U: rest.take(c * m * m), Mean: rest.take(c * m)})
	}
	return bank, in
}

// takeSpare returns the memory of an earlier snapshot for a copy of view.Bank, nil if there is
// none or a reader has it. The next copy may take that of the present snapshot.
func (b *Bank) takeSpare() (free *model.Memory) {
	if s := b.spare; s != nil && len(s.Floats) >= b.floats(len(b.view.Latent)) && b.unread(s) {
		free = s
	}
	if b.spare = nil; b.unread != nil {
		b.spare = b.view.Memory
	}
	return free
}

// ownPosteriors copies those of view.Bank, but for those of a fleet.
func (b *Bank) ownPosteriors() {
	b.before = b.view.Bank
	b.view.Bank, b.view.Memory = b.laid(b.takeSpare(), len(b.view.Latent))
	b.behind = len(b.before) > len(b.sites)
	for h := range b.sites {
		copyPosterior(&b.view.Bank[h], &b.before[h])
	}
}

func copyPosterior(to, from *model.Gaussian) {
	copy(to.U, from.U)
	copy(to.Mean, from.Mean)
}

// enlarge gives view.Bank room for c latent functions.
func (b *Bank) enlarge(c int) {
	larger, to := b.laid(nil, c)
	for h := range larger {
		g := &b.view.Bank[h]
		copyPosterior(&larger[h], g)
		g.U, g.Mean = larger[h].U[:len(g.U)], larger[h].Mean[:len(g.Mean)]
	}
	b.view.Memory = to
}

// makeBefore makes room for a backup above the diagonals of posteriors, unless there is. Those of
// a snapshot have it even while others read them.
func (b *Bank) makeBefore() {
	c := len(b.view.Latent)
	if len(b.before) > 0 && b.before[0].Classes() >= c {
		return
	}
	in := b.spare
	if in != nil && len(in.Floats) < b.floats(c) {
		in = nil
	}
	if b.before, in = b.laid(in, c); b.unread != nil {
		b.spare = in
	}
}

// copyJoined copies the posteriors of a fleet that ownPosteriors has left out.
func (b *Bank) copyJoined() {
	for f := len(b.sites); b.behind && f < len(b.before); f++ {
		copyPosterior(&b.view.Bank[f], &b.before[f])
	}
	b.behind = false
}
