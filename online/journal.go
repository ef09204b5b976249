package online

import (
	"errors"
	"time"

	"edge/online/conformal"
)

// ErrLimit reports that a journal has reached the limit of its size: checkpoints and fewer
// pending samples make room.
var ErrLimit = errors.New("limit")

// Record is an Event of one model with its place in that model's journal.
type Record struct {
	Model string
	Seq   uint64 // 1, 2, 3, … without gaps; given by the journal
	Event
}

// Pending is a sample that waits for its label, or for a correction of it.
type Pending struct {
	Model string
	Key   uint64    // identity of the sample
	X     []float64 // D raw features, NaN where one is missing
	Probs []float64 // the prediction that was published for it

	Parts []float32                // as in Event
	Meta  conformal.PredictionMeta // as in Event
	Epoch uint64                   // as in Event

	Clock time.Duration // when it came, on the clock of the node's running time
	Label string        // its latest label; "" while it waits for one
	By    uint64        // identity of the message that brought the first one
	// Device, From and To locate the sample: the device and the begin and end of its
	// window, in ns since 1970. To 0: not known.
	Device   string
	From, To int64
	// Identity identifies the sample with its features: a sample with the same Key
	// and another Identity is another sample. 0: not known.
	Identity uint64
}

// Mark holds the node's own flags of a model.
type Mark struct {
	Model string
	Bits  uint64
}

// Commit holds the changes that one transaction of the journal makes durable.
type Commit struct {
	Records []Record  // to be learnt, in this order; Seq is filled in by the journal
	Wait    []Pending // samples that now wait for their label
	Forget  []Pending // samples that no longer wait (labelled or expired); only Model and Key count
	Marks   []Mark    // replace the earlier ones
	Taken   *Taken    // replaces the earlier one; nil: it stays
	Windows []Windows // replace the earlier ones of their streams

	// Later: nothing waits for these changes, which may become durable together with the
	// next commit or checkpoint, and never after a part of one.
	Later bool
}

// Windows are the windows in progress of one stream, stored by an orderly stop. They
// are removed before a row that came later is acknowledged, so that a crash never
// revives them beside newer rows.
type Windows struct {
	Stream string
	State  []byte // empty: none
}

// Taken lists the messages of the broker's session that a node has taken and whose
// acknowledgement may not have reached the broker, which then sends them again.
type Taken struct {
	Sequence uint64 // of the newest commit that took messages: 1, 2, 3, …
	Messages []TakenMessage
}

// TakenMessage is one message of Taken.
type TakenMessage struct {
	ID  uint16 // packet identifier
	Key uint64 // identity of topic and payload
	// Named: every sample that it labels has an id, by which a repetition is
	// recognised as well.
	Named bool
	// Sequence is the number of the commit after which it was acknowledged over the
	// connection of that commit; 0 if it was acknowledged over an earlier one, 1<<62
	// if the broker had not read that acknowledgement when the next began.
	Sequence uint64
}
