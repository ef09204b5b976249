package stream

import (
	"context"
	"edge/model"
	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/topic"
	"errors"
	"slices"
	"strings"
	"time"
)

// worker decodes messages and answers them, one after the other.
type worker struct {
	node     string
	ring     *mqtt.Queue[*mqtt.Message]
	observed *mqtt.Queue[*mqtt.Message] // what will come again
	router   *topic.Router[*source]
	lost     *source // takes what no source asks for
	out      chan<- *item
	report   *reporter
	outbox   *mqtt.Outbox
	qos      byte
	hook     func(*Prediction)
	counts   *counters

	turn   []*item
	shared shared

	started time.Time
	ws      *model.Workspace
	items   itemPool
	routes  []*source

	prediction Prediction // the last one

	held []*item // answered, and waiting for the committer, in order; they take up room in the ring
}

// run answers messages until stop is closed and the ring is empty, or ctx ends.
// It closes the committer's queue.
//
// The committer is behind only while the disk or the learner is. No answer waits
// for that: what has been answered is held here, and takes up room in the ring.
// When that is half of it, what comes has to wait in the other half, so that who
// sends no more than is answered goes no faster than it can be learnt; then the
// broker holds it.
func (w *worker) run(ctx context.Context, stop <-chan struct{}) {
	defer close(w.out)
	defer w.counts.held.Store(0) // what is left will come again
	for ctx.Err() == nil {
		var (
			next *item
			size int // of its message, which is the committer's once it is handed over
			out  chan<- *item
			in   = w.ring.Ready()
		)
		if len(w.held) > 0 {
			next, out = w.held[0], w.out
			size = w.ring.Size(next.msg)
			if w.ring.Crowded() {
				in = nil
			}
		}
		if stop == nil && w.ring.Len() == 0 && out == nil {
			return
		}
		select {
		case out <- next:
			w.held[0] = nil
			w.held = w.held[1:]
			w.ring.Release(size)
			w.counts.held.Store(int64(len(w.held)))
		case <-in:
			w.next()
		case <-w.observed.Ready():
			w.observe()
		case <-stop:
			stop = nil
		case <-ctx.Done():
		}
	}
}

func (w *worker) handle(it *item) {
	msg := it.msg
	w.counts.received.Add(1)
	if order, ok := msg.Attached.(*instruction); ok { // what a request has prepared
		it.order = order
		w.hand(it)
		return
	}
	w.counts.lastMessage.set(msg.Arrived)
	w.routes = w.router.Find(w.routes[:0], msg.Topic)
	if len(w.routes) == 0 {
		w.report.refuse(w.lost, nil, msg, unrouted(msg.Topic))
	}
	for _, src := range w.routes {
		src.last.set(msg.Arrived)
		src.received.Add(1)
		read := w.read
		if src.heed != nil {
			read = src.heed
		}
		if err := surviving(read, it, src); err != nil {
			var r *codec.Refusal
			if errors.As(err, &r) {
				w.report.refuse(src, src.models, msg, r)
			}
		}
	}
	w.hand(it)
}

// unrouted is the refusal of a message that has no destination.
func unrouted(name string) *codec.Refusal {
	if err := topic.Check(name); err != nil {
		return codec.Refuse(codec.BadTopic, "the topic %w: the broker should have refused it", err)
	}
	return codec.Refuse(codec.Unrouted, "no stream asks for this topic: an old subscription of the session? It ends with a new mqtt.client_id")
}

// surviving reads a message and refuses it if that panics: the broker would send
// it again after every restart.
func surviving(read func(*item, *source) error, it *item, src *source) error {
	err := guarded(read, it, src)
	if err == nil {
		return nil
	}
	if p := (*online.Panic)(nil); errors.As(err, &p) {
		return codec.Refuse(codec.Fault, "%w", p)
	}
	return err
}

func guarded(read func(*item, *source) error, it *item, src *source) (err error) {
	defer online.Recover(&err)
	return read(it, src)
}

// hand gives the committer what a message teaches. Where it is behind, a message
// of QoS 1 is held; one of QoS 0 is answered but teaches nothing.
func (w *worker) hand(it *item) {
	keeps := it.msg.QoS > 0 || it.order != nil
	if len(w.held) == 0 {
		select {
		case w.out <- it:
			return
		default:
		}
	}
	switch {
	case keeps:
		w.held = append(w.held, it)
		w.ring.Keep(it.msg)
		w.counts.held.Store(int64(len(w.held)))
	case slices.ContainsFunc(it.lessons, func(l lesson) bool { return l.label != "" || l.wait != 0 }):
		w.counts.lessonsDropped.Add(1)
	}
}

// read appends what a message teaches to it, and publishes predictions.
func (w *worker) read(it *item, src *source) error {
	msg := it.msg
	if msg.Retained && !src.allowRetained {
		return codec.Refuse(codec.Retained, "the broker kept this message: allow_retained is off")
	}
	readings, row := it.early.readings, it.early.row
	if it.early.src != src {
		scratch := &it.scratch
		if len(it.lessons) > 0 { // of another stream, with their features in there
			scratch = new(codec.Scratch)
		}
		var err error
		if readings, err = src.decoder.DecodeTo(scratch, msg.Payload); err != nil {
			return err
		}
		row = -1
		if len(readings) > 1 && len(w.turn) < 2 && src.gatherer == nil && len(src.feeds) > 0 {
			w.shared.begin()
			row = w.shared.take(src, readings)
			w.shared.load()
		}
	}
	if it.answerOnly {
		readings = unlabelled(readings)
	}
	from := src.place(msg.Topic)
	if src.gatherer != nil {
		x, err := src.gatherer.add(msg.Topic, from.device, readings[0].X[0], msg.Arrived)
		if err != nil {
			return err
		}
		if x == nil {
			return nil
		}
		readings[0].X = x
	}
	for i := range readings {
		r := &readings[i]
		if r.Label != "" && r.Source == w.node {
			w.report.refuse(src, src.models, msg, codec.Refuse(codec.BadLabel, "its source is this node: a model must not teach itself"))
			r.Label = ""
		}
		switch {
		case r.X != nil:
			at := row
			if row >= 0 {
				at += i
			}
			w.sample(it, src, r, from, i, at)
		case r.Label != "":
			w.label(it, src, r, from.levels, i)
		}
	}
	return nil
}

// label finds the samples that a label without features may be for.
func (w *worker) label(it *item, src *source, r *codec.Reading, captured []string, entry int) {
	msg := it.msg
	l := lesson{
		from: src, label: r.Label, weight: r.Weight, id: r.ID,
		key: messageKey(msg.Topic, msg.Payload, entry), repeat: msg.Retained,
	}
	for _, m := range src.models {
		late := lateLabel{to: m}
		streams := m.streams
		if len(src.feeds) > 0 { // on a stream's topic: of a sample of that stream and device
			streams = []*source{src}
		}
		for _, s := range streams {
			levels, ok := src.levels(msg.Topic, captured, s)
			if !ok {
				late.byID = true
				continue
			}
			late.keys = append(late.keys, waitKey(s.identity, levels, r.ID))
			if len(levels) > 0 {
				late.device = strings.Join(levels, "/")
			}
		}
		l.labels = append(l.labels, late)
	}
	it.lessons = append(it.lessons, l)
}
