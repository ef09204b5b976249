package stream

import (
	"edge/online/conformal"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"slices"
)

// lesson is what one reading may teach: a sample to one model, or a label to
// the models that have its sample.
type lesson struct {
	from   *source
	to     *modelState // nil for a label
	x      []float64
	probs  []float64
	said   conformal.PredictionMeta // beside probs
	label  string
	weight float64 // of the label
	device string
	entry  int    // of the message
	key    uint64 // identity of the sample; of the message where there is no id
	repeat bool   // the key may be that of something taught before
	wait   uint64 // identity under which the sample waits for a label; 0: it has no id
	query  *Query // about the sample; nil: none

	ahead, last int    // as in online.Pending
	epoch       uint64 // of the classes of probs
	version     uint64 // labels that the model had learnt
	seq         uint64 // of the prediction

	id     string // of the sample that a label is for
	labels []lateLabel
}

// lateLabel says where a label finds its sample in one model.
type lateLabel struct {
	to     *modelState
	keys   []uint64 // where device and stream are known
	byID   bool     // the device is not known: the id must be enough
	device string
}

// item is a message on its way through the committer.
type item struct {
	msg     *mqtt.Message
	lessons []lesson
	order   *instruction  // of a request
	scratch codec.Scratch // has the features of lessons
	early   early
	home    itemPool

	answerOnly bool // the message comes again, and teaches then
}

// itemPool keeps items whose memory is free again. Other than sync.Pool it keeps
// as many after a collection of garbage, and never more.
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

// free lets another item have the memory of one whose message has been
// acknowledged, and of its message.
func (it *item) free() {
	if it.order != nil || cap(it.lessons) > manyLessons {
		return
	}
	it.msg.Free()
	it.msg, it.lessons, it.early = nil, it.lessons[:0], early{}
	select {
	case it.home <- it:
	default:
	}
}

// spare returns memory for the probabilities of the next lesson.
func (it *item) spare() []float64 {
	if n := len(it.lessons); n < cap(it.lessons) {
		return it.lessons[:n+1][n].probs
	}
	return nil
}

const manyLessons = 16 // of an item that is not worth keeping

// named reports whether the ids of all that the message labels tell its
// repetition. That of a late label may be a label that takes a correction back.
func (it *item) named() bool {
	return it.order == nil && !slices.ContainsFunc(it.lessons, func(l lesson) bool {
		return l.to == nil || l.label != "" && l.wait == 0
	})
}
