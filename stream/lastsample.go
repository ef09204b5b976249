package stream

import (
	"slices"
	"time"
)

// lastSample is the newest sample of a model.
type lastSample struct {
	pendingSample // with slices of its own
	device        string
	at            time.Time
	none          bool // the sample was learnt before, or no sample came
}

// set stores a copy of a sample.
func (n *lastSample) set(p pendingSample, device string, at time.Time) {
	x, probs := append(n.sample.X[:0], p.sample.X...), append(n.sample.Probs[:0], p.sample.Probs...)
	parts := append(n.sample.Parts[:0], p.sample.Parts...)
	n.pendingSample, n.device, n.at, n.none = p, device, at, false
	n.sample.X, n.sample.Probs, n.sample.Parts = x, probs, parts
}

// copyFrom stores a copy of other.
func (n *lastSample) copyFrom(other *lastSample) {
	n.set(other.pendingSample, other.device, other.at)
	n.none = other.none
}

// pending returns a copy of the sample.
func (n *lastSample) pending() *pendingSample {
	p := n.pendingSample
	p.sample.X, p.sample.Probs, p.sample.Parts = slices.Clone(p.sample.X), slices.Clone(p.sample.Probs), slices.Clone(p.sample.Parts)
	return &p
}
