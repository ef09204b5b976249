package stream

import (
	"slices"
	"sync"
	"time"
)

// newest is the latest sample of a model.
type lastSample struct {
	pendingSample // whose slices are its own
	device        string
	at            time.Time
	none          bool // the sample was taught before, or there is none
}

// keep takes a copy of a sample.
func (n *lastSample) set(p pendingSample, device string, at time.Time) {
	x, probs := append(n.sample.X[:0], p.sample.X...), append(n.sample.Probs[:0], p.sample.Probs...)
	n.pendingSample, n.device, n.at, n.none = p, device, at, false
	n.sample.X, n.sample.Probs = x, probs
}

// copy makes n what another one is.
func (n *lastSample) copyFrom(other *lastSample) {
	n.set(other.pendingSample, other.device, other.at)
	n.none = other.none
}

// waiting returns a copy of the sample.
func (n *lastSample) pending() *pendingSample {
	p := n.pendingSample
	p.sample.X, p.sample.Probs = slices.Clone(p.sample.X), slices.Clone(p.sample.Probs)
	return &p
}

// newestPrediction is one that any goroutine may set and take.
type latestPrediction struct {
	mu    sync.Mutex
	p     Prediction
	there bool
}

func (n *latestPrediction) set(p *Prediction) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.CopyTo(&n.p)
	n.there = true
}

// take returns what was set since the last call, as JSON; nil if nothing was.
func (n *latestPrediction) take() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.there {
		return nil
	}
	n.there = false
	return n.p.AppendJSON(nil)
}
