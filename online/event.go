package online

import (
	"edge/online/conformal"
	"edge/online/fleet"
)

// Kind is the kind of an Event.
type Kind uint8

const (
	// Observe is one labelled sample.
	Observe Kind = 1
	// Boundary closes the current minibatch although it is not full. A timer caused
	// it; the journal keeps it, so that a replay closes the same minibatches.
	Boundary Kind = 2
	// ClassAdd declares the class Label.
	ClassAdd Kind = 3
	// ClassRemove removes the class Label.
	ClassRemove Kind = 4
	// ClassRename gives the class Label another Name.
	ClassRename Kind = 5
	// Correct corrects the label of the sample X from Name to Label.
	Correct Kind = 6
	// Reset starts the model again.
	Reset Kind = 7
	// Replace replaces the learnt state by State.
	Replace Kind = 8
	// Merge brings the sums of the contributions of other members of a fleet, an
	// encoded fleet.Merge, as State.
	Merge Kind = 9
)

// OnlyModel as the Name of a Replace event keeps the scores, the threshold of the
// prediction sets and the drift monitor: they belong to the stream.
const OnlyModel = "model"

// MaxWeight bounds the weight of a sample.
const MaxWeight = 100

// Event is one input of a learner, in the form in which it is journalled. The same
// events in the same order from the same state end in the same state, byte for byte.
type Event struct {
	Kind Kind
	// Key identifies the message that carried it, for the dedupe ring; 0: it has no
	// identity.
	Key uint64
	// X holds D raw features, finite, or NaN where one is missing.
	X []float64
	// Label is the label as it arrived, never empty for Observe and Correct; for
	// ClassAdd, ClassRemove and ClassRename the name of the class.
	Label string
	// Probs is the prediction that was published when X arrived, if the label
	// came later than X: the prequential scores judge it. Indexed by the classes
	// known then (see Epoch). Nil where label and features came together: the
	// learner then judges its own prediction.
	Probs []float64
	// Weight is the number of samples that this one counts for, above 0 and at most
	// MaxWeight; 0 means 1.
	Weight float64
	// Parts are those of the prediction Probs (model.Workspace.AppendParts): horizons,
	// members and experts are weighed by them. Nil: the sample does not weigh them.
	Parts []float32
	// Meta was published with Probs.
	Meta conformal.PredictionMeta
	// Epoch is the version of the list of classes that Probs and Parts are indexed
	// by: within one, the list only grows at its end.
	Epoch uint64
	// Known: the label is a state that was known before the sample. The order of the
	// labels neither predicts it nor learns from it.
	Known bool
	// Name is the new name for ClassRename, the label that was wrong for Correct.
	Name string
	// State is an encoded learner for Replace, an encoded fleet.Merge for Merge.
	State []byte

	forests []fleet.Forest // those in State, of a merge computed by this process; nil: State is read
}

// Size is the approximate size of the event in a journal, in bytes.
func (e *Event) Size() int {
	return 64 + 8*(len(e.X)+len(e.Probs)) + 4*len(e.Parts) + len(e.Label) + len(e.Name) + len(e.State)
}
