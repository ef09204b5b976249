package stream

import (
	"slices"
	"time"

	"edge/online/conformal"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// example is a labelled or unlabelled sample on its way to one model, or a label on its
// way to the models that have its sample.
type example struct {
	from      *source
	to        *modelState // nil for a label
	x         []float64
	probs     []float64
	meta      conformal.PredictionMeta // metadata of probs
	label     string
	weight    float64 // of the label
	device    string
	entry     int    // index in the message
	key       uint64 // identity of the sample; of the message if it has no id
	mayRepeat bool   // the key may be that of an earlier example
	wait      uint64 // key of the pending sample; 0: the sample has no id
	query     *Query // query for the label; nil: none

	parts []float32 // as in online.Pending; empty if the label came with the sample
	epoch uint64    // of the classes of probs
	seq   uint64    // of the prediction

	window
	chosen
}

// chosen names the samples of a label.
type chosen struct {
	id      string
	by      *codec.Selection // nil: the id
	targets []labelTarget
	done    int // targets of a selection that are answered
}

// labelTarget identifies the sample of a label in one model.
type labelTarget struct {
	to   *modelState
	keys []uint64 // if device and stream are known
	byID bool     // the device is unknown: the id must be unique
	of   devices
	zone *time.Location // of times without one in a stream with signals; nil: no such stream
	span span           // of a selection

	chosen bool             // found and result are set
	found  []*pendingSample // of a selection, that have yet to be learnt
	result selectionResult
}

// item is a message on its way through the committer.
type item struct {
	msg        *mqtt.Message
	examples   []example
	mutation   *mutation     // of a request; nil for other messages
	scratch    codec.Scratch // memory of the features of examples
	predecoded predecoded
	home       mqtt.Pool[item]

	answerOnly bool // the message comes again, and is learnt then
	idle       bool // its samples are learnt only by a label with the id last
	stale      bool // newer samples were dropped: no label with the id last is for those before

	key   uint64 // messageKey; 0: not computed yet
	bytes int    // size, when the worker has answered it

	values   []float64 // features of the samples of stages
	outdated []string  // streams whose stored windows the message makes outdated
}

func newItem(home mqtt.Pool[item], msg *mqtt.Message) *item {
	it := home.Get()
	if it == nil {
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
	it.msg, it.key, it.examples, it.predecoded = nil, 0, it.examples[:0], predecoded{}
	it.idle, it.stale = false, false
	if it.values, it.outdated = it.values[:0], it.outdated[:0]; cap(it.values) > manyValues {
		it.values = nil
	}
	it.home.Put(it)
}

// entryKey identifies an entry of the message by topic and payload. It is never 0.
func (it *item) entryKey(entry int) uint64 {
	if it.key == 0 {
		it.key = messageKey(it.msg.Topic, it.msg.Payload)
	}
	return entryKey(it.key, entry)
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

// spareScratch returns memory for the features of the next examples: the item's own, unless it holds
// those of another stream.
func (it *item) spareScratch() *codec.Scratch {
	if len(it.examples) > 0 {
		return new(codec.Scratch)
	}
	return &it.scratch
}

// exampleSize is about the memory of an example without its numbers, in bytes.
const exampleSize = 320

// size is about the memory of the message and of its examples, in bytes.
func (it *item) size() int {
	n := mqtt.MessageSize(it.msg)
	for i := range it.examples {
		e := &it.examples[i]
		n += exampleSize + 8*(len(e.x)+len(e.probs)) + 4*len(e.parts)
	}
	return n
}

const manyValues = 1 << 13 // features, above which an item drops the memory of the samples of stages

const manyExamples = 16 // examples of an item that does not return to its pool

// labelsByID reports whether the ids in the message identify a repetition of it. A late
// label does not: it may undo a correction.
func (it *item) labelsByID() bool {
	return it.mutation == nil && !slices.ContainsFunc(it.examples, func(e example) bool {
		return e.to == nil || e.label != "" && e.wait == 0 || e.made && !e.own
	})
}

// detached reports whether the item is committed even if its message is dropped.
func (it *item) detached() bool {
	return len(it.outdated) > 0 || slices.ContainsFunc(it.examples, func(e example) bool { return e.window.detached })
}

// detach makes the item independent of its message, which comes again. It keeps the samples of
// stages alone.
func (it *item) detach() {
	it.examples = slices.DeleteFunc(it.examples, func(e example) bool { return !e.window.detached })
	it.mutation = nil
	it.msg.From, it.msg.QoS, it.msg.Ack = nil, 0, func() {}
}
