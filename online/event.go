package online

// Kind says what an Event tells the learner.
type Kind uint8

const (
	// Observe is one labelled sample.
	Observe Kind = 1
	// Boundary closes the current minibatch although it is not full. A timer
	// decided it once; the journal remembers, so that a replay decides the same.
	Boundary Kind = 2
)

// Event is one thing that a stream teaches, in the form in which it is
// journalled. A learner that is fed the same events in the same order from the
// same state ends in the same state, byte for byte.
type Event struct {
	Kind Kind
	// Key identifies the message that taught it, for the dedupe ring; 0 means
	// that it has no identity.
	Key uint64
	// X holds D raw features. Finite.
	X []float64
	// Label is what arrived as the label, never empty for Observe.
	Label string
	// Probs is the prediction that was published when X arrived, if the label
	// came later than X: it is what the prequential scores judge. Indexed by
	// the classes known then, a prefix of those known now. Nil where label and
	// features came together: the learner then judges its own prediction.
	Probs []float64
}

// Record is an Event of one model with its place in that model's journal.
type Record struct {
	Model string
	Seq   uint64 // 1, 2, 3, … without gaps; given by the journal
	Event
}

// Pending is a sample that waits for its label.
type Pending struct {
	Model string
	Key   uint64    // identity of the sample
	X     []float64 // D raw features
	Probs []float64 // the prediction that was published for it
}

// Mark is what the node remembers about a model beside what the model has
// learnt: bits whose meaning is the node's own.
type Mark struct {
	Model string
	Bits  uint64
}

// Commit is what one transaction of the journal makes durable.
type Commit struct {
	Records []Record  // to be learnt, in this order; Seq is filled in by the journal
	Wait    []Pending // samples that now wait for their label
	Forget  []Pending // samples that no longer wait (labelled or expired); only Model and Key count
	Marks   []Mark    // replace those of before
}
