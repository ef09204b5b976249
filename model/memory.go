package model

import "sync/atomic"

// Memory is the memory of the posteriors of a bank. Snapshots share it, and the learner
// that made them uses it again once no reader has it.
type Memory struct {
	Floats []float64
	kept   atomic.Bool
}

// Keep returns p, whose learner leaves its memory alone from now on.
func (p *Posterior) Keep() *Posterior {
	if p.Memory != nil {
		p.Memory.kept.Store(true)
	}
	return p
}

// Kept reports whether Keep was called for a snapshot with this memory.
func (m *Memory) Kept() bool { return m.kept.Load() }
