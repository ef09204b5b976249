package sep

import "edge/model"

// memory is one piece of memory for several slices.
type memory []float64

// take returns the next n elements. It is not inlined: it has some twenty callers.
//
//go:noinline
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

	before []model.Gaussian // those of a fleet in a snapshot, of which view.Bank has no copy yet
}

// Reuse lets b use the memory of an earlier snapshot again once unread reports that no
// reader has it. nil: b leaves it alone.
func (b *Bank) Reuse(unread func(*model.Memory) bool) { b.unread, b.spare = unread, nil }

// ownPosteriors copies those of view.Bank, but for those of a fleet, to one piece of memory:
// the allocator rounds each large piece up to pages.
func (b *Bank) ownPosteriors() {
	n := 0
	for h := range b.view.Bank {
		n += len(b.view.Bank[h].U) + len(b.view.Bank[h].Mean)
	}
	to := b.spare
	if to == nil || len(to.Floats) != n || !b.unread(to) {
		to = &model.Memory{Floats: make([]float64, n)}
	}
	b.spare = nil
	if b.unread != nil {
		b.spare = b.view.Memory
	}
	b.view.Memory = to
	rest := memory(to.Floats)
	b.before = append(b.before[:0], b.view.Bank[len(b.sites):]...)
	for h := range b.view.Bank {
		g := &b.view.Bank[h]
		u, mean := rest.take(len(g.U)), rest.take(len(g.Mean))
		if h < len(b.sites) {
			copy(u, g.U)
			copy(mean, g.Mean)
		}
		g.U, g.Mean = u, mean
	}
}

// copyJoined copies the posteriors of a fleet that ownPosteriors has left out.
func (b *Bank) copyJoined() {
	for f := range b.before {
		g := &b.view.Bank[len(b.sites)+f]
		copy(g.U, b.before[f].U)
		copy(g.Mean, b.before[f].Mean)
	}
	b.forgetJoined()
}

// forgetJoined drops the posteriors that ownPosteriors has left out, once nothing needs them.
func (b *Bank) forgetJoined() {
	clear(b.before)
	b.before = b.before[:0]
}

// takeSpare returns empty posteriors in the memory of an earlier snapshot for a model that
// replaces the present one, nil without such memory. The next copy may take that of the
// present snapshot.
func (b *Bank) takeSpare() []model.Gaussian {
	n, to := 0, b.spare
	for h := range b.view.Bank {
		n += len(b.view.Bank[h].U) + len(b.view.Bank[h].Mean)
	}
	if to == nil || len(to.Floats) != n || !b.unread(to) {
		return nil
	}
	b.spare, b.view.Memory = b.view.Memory, to
	rest := memory(to.Floats)
	var empty []model.Gaussian
	for _, g := range b.view.Bank {
		empty = append(empty, model.Gaussian{U: rest.take(len(g.U)), Mean: rest.take(len(g.Mean))})
	}
	return empty
}
