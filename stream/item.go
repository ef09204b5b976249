package stream

import (
	"edge/online/conformal"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"slices"
)

// example is a labelled or unlabelled sample on its way to one model, or a label on its
// way to the models that have its sample.
type example struct {
	from      *source
	to        *modelState // nil for a label
	x         []float64
	probs     []float64
	said      conformal.PredictionMeta // metadata of probs
	label     string
	weight    float64 // of the label
	device    string
	entry     int    // index in the message
	key       uint64 // identity of the sample; of the message if it has no id
	mayRepeat bool   // the key may be that of an earlier example
	wait      uint64 // key of the pending sample; 0: the sample has no id
	query     *Query // query for the label; nil: none

	parts   []float32 // as in online.Pending; empty if the label came with the sample
	epoch   uint64    // of the classes of probs
	version uint64    // number of labels that the model had learnt
	seq     uint64    // of the prediction

	id      string // of the sample of a label
	targets []labelTarget
}

// labelTarget identifies the sample of a label in one model.
type labelTarget struct {
	to     *modelState
	keys   []uint64 // if device and stream are known
	byID   bool     // the device is unknown: the id must be unique
	device string
}

// item is a message on its way through the committer.
type item struct {
	msg        *mqtt.Message
	examples   []example
	mutation   *mutation     // of a request; nil for other messages
	scratch    codec.Scratch // memory of the features of examples
	predecoded predecoded
	home       itemPool

	answerOnly bool // the message comes again, and is learnt then
}

// itemPool keeps unused items. Unlike sync.Pool it keeps them over a garbage
// collection, and never more than its capacity.
type itemPool chan *item

const keptItems = 64

func newItem(home itemPool, msg *mqtt.Message) *item {
	var it *item
	select {
	case it = <-home:
	default:
		it = &item{home: home}
	}
	it.msg = msg
	return it
}

// free returns the memory of an acknowledged message and its item to their pools.
func (it *item) free() {
	if it.mutation != nil || cap(it.examples) > manyExamples {
		return
	}
	it.msg.Free()
	it.msg, it.examples, it.predecoded = nil, it.examples[:0], predecoded{}
	select {
	case it.home <- it:
	default:
	}
}

// spare returns memory for the probabilities of the next example.
func (it *item) spare() []float64 {
	if n := len(it.examples); n < cap(it.examples) {
		return it.examples[:n+1][n].probs
	}
	return nil
}

// spareParts is spare for the parts of the prediction.
func (it *item) spareParts() []float32 {
	if n := len(it.examples); n < cap(it.examples) {
		return it.examples[:n+1][n].parts[:0]
	}
	return nil
}

const manyExamples = 16 // examples of an item that does not return to its pool

// labelsByID reports whether the ids in the message identify a repetition of it. A late
// label does not: it may undo a correction.
func (it *item) labelsByID() bool {
	return it.mutation == nil && !slices.ContainsFunc(it.examples, func(l example) bool {
		return l.to == nil || l.label != "" && l.wait == 0
	})
}
