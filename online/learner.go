package online

import "edge/model"

// Learner holds a model's whole state and learns. It is single-threaded.
type Learner struct{}

// NewLearner returns a learner that knows nothing yet. It validates and copies cfg.
func NewLearner(cfg Config) (*Learner, error) { panic("being written") }

// Restore returns the learner whose AppendBinary gave state, under cfg. A cfg
// of another shape is refused (ErrShape).
func Restore(cfg Config, state []byte) (*Learner, error) { panic("being written") }

// Validate reports every field that is out of range.
func (c Config) Validate() error { panic("being written") }

// Shape describes, in words, the part of the configuration that shapes the
// state; two configurations with the same Shape can carry on from each other's
// states.
func (c Config) Shape() string { panic("being written") }

// Outcome says what an event did.
type Outcome struct {
	Stepped    bool   // a minibatch was closed and learnt: Posterior is new
	Built      bool   // the model was (re)built from the warm-up buffer
	ClassAdded string // a class seen for the first time
	Refused    error  // the step, or the event, was refused; the state is as before
}

// Add learns from one event. A labelled sample is judged first.
func (l *Learner) Add(ev *Event) Outcome { panic("being written") }

// Posterior returns a new immutable snapshot of the posterior.
func (l *Learner) Posterior() *model.Posterior { panic("being written") }

// Scores returns the prequential scores so far.
func (l *Learner) Scores() Scores { panic("being written") }

// AppendBinary appends the whole state, from which Restore carries on exactly.
func (l *Learner) AppendBinary(dst []byte) ([]byte, error) { panic("being written") }

// Digest is the SHA-256 of AppendBinary's bytes, in hexadecimal.
func (l *Learner) Digest() string { panic("being written") }
