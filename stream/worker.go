package stream

import (
	"context"
	"errors"
	"slices"
	"time"

	"edge/model"
	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

// worker decodes and answers messages, one after the other.
type worker struct {
	node         string
	ring         *mqtt.Queue[*mqtt.Message]
	deferred     *mqtt.Queue[*mqtt.Message] // messages that will come again
	router       *topic.Router[*source]
	unrouted     *source // source of messages without a source
	out          *commitQueue
	report       *reporter
	outbox       *mqtt.Outbox
	qos          byte
	onPrediction func(*Prediction)
	counts       *counters

	ready []*item
	batch batch
	stageClock

	started time.Time
	ws      *model.Workspace
	items   mqtt.Pool[item]
	routes  []*source

	prediction Prediction // reused for each prediction

	held []*item // answered messages that wait for the committer, in order; they take up room in the ring
}

// run answers messages until stop is closed and the ring is empty, or ctx ends. It closes
// the committer's queue.
//
// The committer is behind only while the disk or the learner is. Answers do not wait for
// it: answered messages are held here, and take up room in the ring. When they take half
// of it, new messages wait in the other half, so that a sender that waits for answers is
// no faster than the learner; then the broker holds the messages.
func (w *worker) run(ctx context.Context, stop <-chan struct{}) {
	defer close(w.out.items)
	defer w.counts.held.Store(0) // the rest will come again, but for messages of QoS 0
	for ctx.Err() == nil {
		var (
			next *item
			size int // of the item, which belongs to the committer after the send
			out  chan<- *item
			room <-chan struct{}
			in   = w.ring.Ready()
		)
		if len(w.held) > 0 {
			next = w.held[0]
			size, out, room = next.bytes, w.out.open(next), w.out.room
			if w.ring.Crowded(2) {
				in = nil
			}
		}
		if stop == nil && w.ring.Len() == 0 && len(w.held) == 0 {
			return
		}
		var tick <-chan time.Time
		if in != nil && len(w.stages) > 0 && w.ring.Len() == 0 {
			tick = w.next()
		}
		select {
		case <-room:
		case out <- next:
			w.out.sent(size)
			w.held[0] = nil
			w.held = w.held[1:]
			w.ring.Release(size)
			w.counts.held.Store(int64(len(w.held)))
		case <-in:
			w.withReader(func() { w.handleReady(ctx) })
		case <-tick:
			w.withReader(w.tick)
		case <-w.deferred.Ready():
			w.withReader(func() { w.answerDeferred(ctx) })
		case <-stop:
			stop = nil
		case <-ctx.Done():
		}
	}
}

// withReader calls a function that reads snapshots.
func (w *worker) withReader(do func()) {
	w.batch.readers.Enter()
	do()
	w.batch.readers.Leave()
}

func (w *worker) handle(it *item) {
	msg := it.msg
	w.counts.received.Add(1)
	w.look(msg.Arrived)
	if order, ok := msg.Attached.(*mutation); ok { // prepared by an earlier request
		it.mutation = order
		w.forward(it)
		return
	}
	w.routes = w.router.Find(w.routes[:0], msg.Topic)
	if len(w.routes) == 0 {
		w.report.refuse(w.unrouted, nil, msg, refuseUnrouted(msg.Topic))
	}
	var entry *source // of the configured labels, which has read the message
	for _, src := range w.routes {
		if entry != nil && src.name == labelsName && src.ownTopic == msg.Topic && slices.Contains(entry.models, src.models[0]) {
			continue
		}
		w.noteArrival(src, msg)
		src.received.Add(1)
		read := w.read
		if src.handle != nil {
			read = src.handle
		}
		if err := refusePanic(read, it, src); err != nil {
			w.refuse(it, src, err)
		} else if src.isEntry() {
			entry = src
		}
	}
	w.forward(it)
}

// noteArrival notes the time of a message of a source.
func (w *worker) noteArrival(src *source, msg *mqtt.Message) {
	src.last.set(msg.Arrived)
	if src.handle == nil {
		w.counts.lastMessage.set(msg.Arrived)
	}
}

// refuse reports why a message is not used.
func (w *worker) refuse(it *item, src *source, err error) {
	if r, ok := errors.AsType[*codec.Refusal](err); ok {
		w.report.refuse(src, src.models, it.msg, r)
	}
}

// refuseUnrouted returns the refusal of a message without a source.
func refuseUnrouted(name string) *codec.Refusal {
	if err := topic.Check(name); err != nil {
		return codec.Refuse(codec.BadTopic, "the topic %w: the broker should have refused it", err)
	}
	return codec.Refuse(codec.Unrouted, "no stream has this topic; if it is an old subscription of the session, a new mqtt.client_id ends it")
}

// refusePanic reads a message and refuses it after a panic: the broker would send it again
// after every restart.
func refusePanic(read func(*item, *source) error, it *item, src *source) (err error) {
	defer func() {
		if p, ok := err.(*online.Panic); ok {
			err = codec.Refuse(codec.Fault, "%w", p)
		}
	}()
	defer online.Recover(&err)
	return read(it, src)
}

// dropOwnLabel drops the label of a reading that this node itself has sent.
func (w *worker) dropOwnLabel(src *source, msg *mqtt.Message, r *codec.Reading) {
	if r.Label != "" && r.Source == w.node {
		w.report.refuse(src, src.models, msg, codec.Refuse(codec.BadLabel, "its source is this node: a model must not learn its own labels"))
		r.Label = ""
	}
}

// forward hands a message to the committer. If the committer is behind, the message is held. Where
// held messages take more than a quarter of the ring, one of QoS 0 is answered, but not learnt: a burst
// of them makes no other message wait. Of samples that teach nothing the newest is held, for a label
// with the id last.
func (w *worker) forward(it *item) {
	keeps := it.msg.QoS > 0 || it.mutation != nil || it.detached()
	teaches := slices.ContainsFunc(it.examples, func(e example) bool { return e.label != "" || e.wait != 0 })
	it.bytes = it.size()
	if len(w.held) == 0 && w.out.offer(it) {
		return
	}
	it.idle = !keeps && !teaches
	switch {
	case it.idle && len(it.examples) == 0:
		return
	case keeps || it.idle && w.succeeds(it) || w.hasRoom():
		w.held = append(w.held, it)
		w.ring.Reserve(it.bytes)
		w.counts.held.Store(int64(len(w.held)))
		return
	case teaches:
		w.counts.examplesDropped.Add(1)
		it.asked(false)
	}
	w.held[len(w.held)-1].stale = true // some are held: there is no room
}

// succeeds removes the sample that another one replaces as the newest of its stream, and reports
// whether there was one after the last message that must not be dropped. One that alone knows of
// newer samples that were dropped stays.
func (w *worker) succeeds(it *item) bool {
	for i := len(w.held) - 1; i >= 0 && w.held[i].idle; i-- {
		old := w.held[i]
		if old.examples[0].from == it.examples[0].from && len(old.examples) == len(it.examples) {
			switch {
			case !old.stale:
			case i == 0:
				return false
			default:
				w.held[i-1].stale = true
			}
			w.held = slices.Delete(w.held, i, i+1)
			w.ring.Release(old.bytes)
			old.free()
			return true
		}
	}
	return false
}

// hasRoom reports whether a message of QoS 0 is held where the committer is behind.
func (w *worker) hasRoom() bool { return !w.ring.Crowded(4) }

// read adds the examples of a message to it, and publishes predictions.
func (w *worker) read(it *item, src *source) error {
	msg := it.msg
	if msg.Retained && !src.allowRetained {
		why := "allow_retained does not accept it"
		if len(src.feeds) == 0 { // it has labels
			why = "a label counts when it is sent: send it without the flag to retain it"
		}
		return codec.Refuse(codec.Retained, "the broker kept this message, and %s", why)
	}
	if src.stage != nil {
		return w.take(it, src)
	}
	readings, row, err := w.decode(it, src)
	if err != nil {
		return src.joiner.refusal(msg.Topic, err)
	}
	if src.joiner != nil {
		by := src.joiner
		if it.answerOnly {
			by = src.early
		}
		if complete, err := w.join(by, src, msg, &readings[0]); !complete || err != nil {
			return err
		}
	}
	for i := range readings {
		r := &readings[i]
		match := src.match(msg.Topic, r.Device)
		w.dropOwnLabel(src, msg, r)
		switch {
		case r.Selection != nil && r.Label != "":
			if err := locateSelection(it, src, r, match.levels); err != nil {
				return err
			}
		case r.X != nil:
			at := row
			if row >= 0 {
				at += i
			}
			w.predictReading(it, r, example{from: src, label: r.Label, weight: r.Weight, device: match.device, entry: i, mayRepeat: msg.Retained}, match.levels, at)
		case r.Label != "":
			if err := locateLabel(it, src, r, match.levels, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode returns the readings of a message, and the row of the first one in the batch, or −1.
func (w *worker) decode(it *item, src *source) (readings []codec.Reading, row int, err error) {
	readings, row = it.predecoded.readings, it.predecoded.row
	if it.predecoded.src != src {
		if readings, err = src.decoder.DecodeTo(it.spareScratch(), it.msg.Payload); err != nil {
			return nil, -1, err
		}
		row = -1
		if len(readings) > 1 && len(w.ready) < 2 && src.joiner == nil && len(src.feeds) > 0 {
			w.batch.reset()
			row = w.batch.add(src, readings)
			w.batch.load()
		}
	}
	if it.answerOnly {
		readings = unlabelled(readings)
	}
	if len(readings) == 0 {
		src.leftOut.Add(1)
	}
	return readings, row, nil
}

// join replaces the value of a reading by the sample that it completes; it reports false if the
// sample is still incomplete.
func (w *worker) join(by *joiner, src *source, msg *mqtt.Message, r *codec.Reading) (complete bool, err error) {
	if by.recent.repeats(msg, 0) {
		w.counts.redelivered.Add(1)
		return false, nil
	}
	x, err := by.add(msg.Topic, src.match(msg.Topic, "").device, r.X[0], msg.Arrived)
	if x != nil {
		r.X = x
	}
	return x != nil, err
}

// locateLabel finds the samples of a label without features.
func locateLabel(it *item, src *source, r *codec.Reading, captured []string, entry int) error {
	msg := it.msg
	e := example{
		from: src, label: r.Label, weight: r.Weight, chosen: chosen{id: r.ID},
		key: it.entryKey(entry), mayRepeat: msg.Retained,
	}
	for _, m := range src.models {
		late := labelTarget{to: m}
		streams := m.streams
		if len(src.feeds) > 0 { // on a stream's topic: a sample of that stream and device
			streams = []*source{src}
		}
		if why := late.locate(src, msg.Topic, captured, streams, r.ID); why != nil {
			return why
		}
		e.targets = append(e.targets, late)
	}
	it.examples = append(it.examples, e)
	return nil
}
