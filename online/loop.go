package online

import (
	"context"
	"log/slog"
	"time"

	"edge/model"
)

// Checkpointer makes a learner's state durable; seq is that of the last record in it.
type Checkpointer interface {
	Checkpoint(model string, seq uint64, state []byte) error
}

// Notice is something about a model that a person may want to know.
type Notice struct {
	Model  string
	Kind   string // class_added, model_built, step_refused, label_refused, checkpoint_failed
	Detail string
	Seq    uint64 // of the record that caused it
}

// LoopOptions say how a Loop does its work.
type LoopOptions struct {
	Model        string        // name, for the Checkpointer and the log
	Seq          uint64        // of the last record in the learner's state
	Queue        int           // records that may wait; a full queue makes Learn block
	Checkpointer Checkpointer  // nil: none
	Every        time.Duration // between checkpoints; 0: never by time
	Samples      uint64        // between checkpoints; 0: never by count
	Log          *slog.Logger
	Notify       func(Notice) // called from the loop's goroutine; nil: none
}

// Status is a Loop's state at one moment.
type Status struct {
	Model   string
	Seq     uint64 // last record learnt
	Learned uint64 // samples in the model, warm-up included
	Scores  Scores
	// Counters since the model began
	Steps, StepsRefused, LabelsRefused, CholeskyRetries uint64
	Built                                               bool // the GP answers; before, class frequencies do
	WarmedUp                                            bool // the raw warm-up buffer has been dropped
	StateBytes                                          int  // size of the last checkpoint
}

// Loop owns a Learner: only the goroutine inside Run touches it.
type Loop struct{}

// NewLoop returns a loop that will own l.
func NewLoop(l *Learner, opts LoopOptions) *Loop { panic("being written") }

// Posterior returns the newest snapshot. Any goroutine may call it; it never waits.
func (lp *Loop) Posterior() *model.Posterior { panic("being written") }

// Status returns the newest status. Any goroutine may call it; it never waits.
func (lp *Loop) Status() *Status { panic("being written") }

// Learn hands committed records over, in order. It blocks while the queue is
// full (that is the back-pressure) and returns ctx.Err() if ctx ends first.
func (lp *Loop) Learn(ctx context.Context, records []Record) error { panic("being written") }

// Idle blocks until everything handed over so far has been learnt.
func (lp *Loop) Idle(ctx context.Context) error { panic("being written") }

// Run learns until ctx ends, then drains its queue, writes a last checkpoint and returns.
func (lp *Loop) Run(ctx context.Context) error { panic("being written") }
