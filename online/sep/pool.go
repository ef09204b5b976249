package sep

import (
	"slices"
	"sync"
	"time"
)

// Pool lends the memory that only a step needs to banks: a bounded number of them can
// learn at a time. A workspace goes back to the bank that had it last, or else to one
// of the same shape, or is made anew. Any goroutine may use a Pool.
type Pool struct {
	size int // workspaces, at most

	mu   sync.Mutex
	lent int
	idle []*workspace  // the latest last
	free chan struct{} // receives an element when a workspace returns; capacity size
}

// NewPool returns a pool of that many workspaces, at least one.
func NewPool(size int) *Pool {
	size = max(size, 1)
	return &Pool{size: size, free: make(chan struct{}, size)}
}

// workspace is the memory of a step.
type workspace struct {
	shape shape
	owner *Bank // that had it last
	stepMemory
}

// shape determines the sizes of a workspace.
type shape struct {
	inducing, features, batch, capacity, recent, latents, bases, horizons, workers int
}

// waitBeat is the interval of the signs of life of a bank that waits for a workspace.
const waitBeat = 100 * time.Millisecond

// take returns a workspace, nil if the caller has to make one. It waits while all are
// lent, and calls alive meanwhile.
func (p *Pool) take(b *Bank, of shape, alive func()) *workspace {
	for {
		if w, ok := p.tryTake(b, of); ok {
			return w
		}
		select {
		case <-p.free:
		case <-time.After(waitBeat):
			if alive != nil {
				alive()
			}
		}
	}
}

func (p *Pool) tryTake(b *Bank, of shape) (w *workspace, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent == p.size {
		return nil, false
	}
	p.lent++
	at := slices.IndexFunc(p.idle, func(w *workspace) bool { return w.owner == b })
	if at < 0 {
		at = slices.IndexFunc(p.idle, func(w *workspace) bool { return w.shape == of })
	}
	if at < 0 && p.lent+len(p.idle) > p.size {
		at = 0 // its place is needed
	}
	if at >= 0 {
		w = p.idle[at]
		p.idle = slices.Delete(p.idle, at, at+1)
	}
	return w, true
}

// giveBack returns a workspace; nil: its memory was dropped.
func (p *Pool) giveBack(w *workspace) {
	p.mu.Lock()
	p.lent--
	if w != nil {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	select {
	case p.free <- struct{}{}:
	default:
	}
}

// Rest releases the memory of the workspaces that are not lent.
func (p *Pool) Rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = nil
}

// UsePool makes b take its workspaces from p from now on; alive is called while it
// waits for one, and may be nil. Without a pool b has a workspace of its own.
func (b *Bank) UsePool(p *Pool, alive func()) {
	b.GiveBack()
	b.Rest()
	b.pool, b.alive = p, alive
}

// borrow takes a workspace from the pool. It reports false if the caller has to make
// the memory of a step.
func (b *Bank) borrow() bool {
	if b.pool == nil || b.lent {
		return false
	}
	of := b.shape()
	w := b.pool.take(b, of, b.alive)
	b.lent = true
	if w == nil || w.shape != of {
		return false
	}
	trace := b.work.grad.trace
	b.stepMemory = w.stepMemory
	b.work.grad.trace = trace
	if w.owner != b {
		b.bind()
	}
	if w.owner != b || b.rested {
		b.work.features.current = false
	}
	b.rested = false
	return true
}

// GiveBack returns the workspace to the pool, if the bank has one of it. The owner of
// the bank calls it after each event.
func (b *Bank) GiveBack() {
	if !b.lent {
		return
	}
	b.lent = false
	if b.spares == nil {
		b.pool.giveBack(nil)
		return
	}
	w := &workspace{shape: b.shape(), owner: b, stepMemory: b.stepMemory}
	b.stepMemory = stepMemory{work: work{grad: gradient{trace: b.work.grad.trace}}}
	b.rested = false
	b.pool.giveBack(w)
}

func (b *Bank) shape() shape {
	return shape{b.cfg.Inducing, b.cfg.Features, b.most, b.capacity, b.gradientRoom(), len(b.view.Latent), len(b.bases), len(b.sites), b.team.size}
}
