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
func (s *lastSample) set(p pendingSample, device string, at time.Time) {
	x, probs := append(s.sample.X[:0], p.sample.X...), append(s.sample.Probs[:0], p.sample.Probs...)
	parts := append(s.sample.Parts[:0], p.sample.Parts...)
	s.pendingSample, s.device, s.at, s.none = p, device, at, false
	s.sample.X, s.sample.Probs, s.sample.Parts = x, probs, parts
}

// copyFrom stores a copy of other.
func (s *lastSample) copyFrom(other *lastSample) {
	s.set(other.pendingSample, other.device, other.at)
	s.none = other.none
}

// pending returns a copy of the sample.
func (s *lastSample) pending() *pendingSample {
	p := s.pendingSample
	p.sample.X, p.sample.Probs, p.sample.Parts = slices.Clone(p.sample.X), slices.Clone(p.sample.Probs), slices.Clone(p.sample.Parts)
	return &p
}
