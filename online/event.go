package online

import "time"

// Kind says what an Event tells the learner.
type Kind uint8

const (
	// Observe is one labelled sample.
	Observe Kind = 1
	// Boundary closes the current minibatch although it is not full. A timer
	// decided it once; the journal remembers, so that a replay decides the same.
	Boundary Kind = 2
	// ClassAdd declares the class Label.
	ClassAdd Kind = 3
	// ClassRemove forgets the class Label.
	ClassRemove Kind = 4
	// ClassRename calls the class Label by another Name from now on.
	ClassRename Kind = 5
	// Correct says that the sample X, which was taught as Name, is a Label.
	Correct Kind = 6
	// Reset forgets all that was learnt.
	Reset Kind = 7
	// Replace puts State in the place of what was learnt.
	Replace Kind = 8
)

// MaxWeight bounds the weight of a sample.
const MaxWeight = 100

// Event is one thing that a stream teaches, in the form in which it is
// journalled. A learner that is fed the same events in the same order from the
// same state ends in the same state, byte for byte.
type Event struct {
	Kind Kind
	// Key identifies the message that taught it, for the dedupe ring; 0 means
	// that it has no identity.
	Key uint64
	// X holds D raw features, finite, or NaN where one is missing.
	X []float64
	// Label is what arrived as the label, never empty for Observe and Correct;
	// the class that ClassAdd, ClassRemove and ClassRename are about.
	Label string
	// Probs is the prediction that was published when X arrived, if the label
	// came later than X: it is what the prequential scores judge. Indexed by
	// the classes known then (see Epoch). Nil where label and features came
	// together: the learner then judges its own prediction.
	Probs []float64
	// Weight is how many samples this one counts for, above 0 and at most
	// MaxWeight; 0 means 1.
	Weight float64
	// Ahead and Last are what Probs made of the order of the labels: the sample
	// was predicted to be Ahead labels after one of class Last. Ahead 0: nothing.
	Ahead, Last int
	// Said is what was published beside Probs.
	Said Said
	// Epoch is the version of the list of classes that Probs and Last are indexed
	// by: within one, the list only grows at its end.
	Epoch uint64
	// Name is the new name for ClassRename, the label that was wrong for Correct.
	Name string
	// State is an encoded learner, for Replace.
	State []byte
}

// Size is about how many bytes the event takes in a journal.
func (e *Event) Size() int {
	return 64 + 8*(len(e.X)+len(e.Probs)) + len(e.Label) + len(e.Name) + len(e.State)
}

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

	Ahead, Last int    // as in Event
	Said        Said   // as in Event
	Epoch       uint64 // as in Event

	Clock time.Duration // when it came, on the clock of the node's running time
	Label string        // that it was taught last; "" while it waits for one
	By    uint64        // identity of the message that brought the first one
	// Identity of the sample with its features: a sample with the same Key and
	// another Identity is another sample. 0: not known.
	Identity uint64
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
	Taken   *Taken    // replaces that of before; nil: it stays
}

// Taken are the messages of the broker's session that a node has taken and whose
// acknowledgement may not have reached the broker, which then sends them again.
type Taken struct {
	Sequence uint64 // of the newest commit that took messages: 1, 2, 3, …
	Messages []TakenMessage
}

// TakenMessage is one of them.
type TakenMessage struct {
	ID  uint16 // packet identifier
	Key uint64 // identity of topic and payload
	// Named: all that it labels has an id, which tells a repetition as well.
	Named bool
	// Sequence of the commit after which it was acknowledged over the connection
	// of that commit; 0 if it was acknowledged over an earlier one, 1<<62 if it is
	// known that the broker had not read that acknowledgement when the next began.
	Sequence uint64
}
