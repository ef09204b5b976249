package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"edge/model"
	"edge/online"
	"edge/online/active"
	"edge/online/conformal"
)

// Journal makes lessons durable. Only the committer's goroutine calls it.
type Journal interface {
	// Commit makes everything in c durable in one transaction, or nothing. It
	// fills in the sequence numbers of c.Records. A commit of nothing reports
	// whether another one can succeed.
	Commit(c *online.Commit) error
	// Seen reports whether a record of the model with this key was committed, as
	// far back as the journal remembers.
	Seen(model string, key uint64) bool
}

// Model predicts and learns; *online.Loop is one.
type Model interface {
	Posterior() *model.Posterior
	Status() *online.Status
	Uncertainty() *conformal.Uncertainty
	Learn(ctx context.Context, records []online.Record) error
	Idle(ctx context.Context) error
}

const (
	commitQueue = 64                     // messages between the worker and the committer
	MaxGroup    = 1000                   // records of one commit, at which it waits for no more
	maxGroup    = 1024                   // messages of one commit
	lastID      = "last"                 // as a label's id: the model's latest sample
	firstPause  = 100 * time.Millisecond // after a commit that failed; doubled
	longPause   = 5 * time.Second
)

// source is where messages come from: a stream, or topics of labels.
type source struct {
	name          string
	key           string // of its filters in the configuration
	filters       []string
	decoder       *Decoder
	template      *template
	gatherer      *gatherer // of a stream whose messages hold one value each; the worker's
	allowRetained bool
	impute        bool                       // what is missing is filled in
	feeds         []feed                     // of a stream
	models        []*modelState              // of the feeds; or whom the labels are for
	heed          func(*item, *source) error // of messages that are not samples or labels
	places        map[string]place           // of the latest topics; the worker's
	ownTopic      string                     // <base>/<node>/<model>/label, for the source that listens there
	identity      string                     // name that the keys of its samples have in the journal
	*sourceCounts
}

// feed is how a stream reaches a model.
type feed struct {
	to   *modelState
	pick []int // indices of the model's features among the stream's; nil for all
}

// place is what a topic says about where a sample is from.
type place struct {
	levels []string // captured
	device string   // the same, with / between them
}

// place returns that of a topic, which most likely has come before.
func (s *source) place(topic string) place {
	p, ok := s.places[topic]
	if !ok {
		p.levels = s.template.capture(topic)
		p.device = strings.Join(p.levels, "/")
		remember(&s.places, topic, p)
	}
	return p
}

// levels returns what a label's topic says about the levels that a stream
// captures; false if it does not say all of them.
func (s *source) levels(topic string, captured []string, stream *source) ([]string, bool) {
	if len(stream.template.names) == 0 {
		return nil, true
	}
	if s.ownTopic != "" {
		rest, ok := strings.CutPrefix(topic, s.ownTopic+"/")
		levels := strings.Split(rest, "/")
		return levels, ok && len(levels) == len(stream.template.names)
	}
	return stream.template.arrange(s.template, captured)
}

// modelState is what the pipeline keeps about one model.
type modelState struct {
	ModelConfig
	streams []*source
	classes *classes
	rejects limits // of the reject topic, by reason: a flood of one kind hides no other

	predictionTopic, latestTopic, metricsTopic, rejectTopic, labelTopic, queryTopic string

	seq      uint64                       // of the last prediction; the worker's
	unlearnt uint64                       // samples with their labels that the newest posterior has not learnt, as far as is known; the worker's
	version  uint64                       // of that posterior; the worker's
	repeated uint64                       // of redelivered, as unlearnt knows it; the worker's
	frozen   bool                         // labels will teach nothing, as far as is known; the worker's
	latest   newestPrediction             // that latestTopic does not have yet
	cbor     *cborEncoder                 // of predictions; nil: JSON
	asker    *active.Selector             // nil: nothing is asked; the worker's
	aim      conformal.CoverageController // of the published sets

	answers map[string]string // topics of predictions, by device; the worker's

	waiting *waiting // the committer's, as all below
	last    newest   // sample
	settled newest   // sample of those that were settled; last differs by the group that is being gathered
	place   uint64   // labels that were taught, as far as is known
	late    online.Lag
	delays  median
	open    int       // observations in the minibatch that is filling, as far as is known
	since   time.Time // when the oldest of them was committed; zero after a Boundary

	mark uint64          // what the journal remembers
	owed []online.Record // committed, and not handed to the model

	*modelCounts
}

// newest is the latest sample of a model.
type newest struct {
	waiter // whose slices are its own
	device string
	at     time.Time
	none   bool // the sample was taught before, or there is none
}

// keep takes a copy of a sample.
func (n *newest) keep(p waiter, device string, at time.Time) {
	x, probs := append(n.sample.X[:0], p.sample.X...), append(n.sample.Probs[:0], p.sample.Probs...)
	n.waiter, n.device, n.at, n.none = p, device, at, false
	n.sample.X, n.sample.Probs = x, probs
}

// copy makes n what another one is.
func (n *newest) copy(other *newest) {
	n.keep(other.waiter, other.device, other.at)
	n.none = other.none
}

// waiting returns a copy of the sample.
func (n *newest) waiting() *waiter {
	p := n.waiter
	p.sample.X, p.sample.Probs = slices.Clone(p.sample.X), slices.Clone(p.sample.Probs)
	return &p
}

// newestPrediction is one that any goroutine may set and take.
type newestPrediction struct {
	mu    sync.Mutex
	p     Prediction
	there bool
}

func (n *newestPrediction) set(p *Prediction) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.CopyTo(&n.p)
	n.there = true
}

// take returns what was set since the last call, as JSON; nil if nothing was.
func (n *newestPrediction) take() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.there {
		return nil
	}
	n.there = false
	return n.p.AppendJSON(nil)
}

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
	msg     *message
	lessons []lesson
	order   *instruction // of a request
	scratch Scratch      // has the features of lessons
	early   early
	home    pool[item]
}

func newItem(home pool[item], msg *message) *item {
	it := home.get()
	if it == nil {
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
	it.msg.free()
	it.msg, it.lessons, it.early = nil, it.lessons[:0], early{}
	it.home.put(it)
}

// spare returns memory for the probabilities of the next lesson.
func (it *item) spare() []float64 {
	if n := len(it.lessons); n < cap(it.lessons) {
		return it.lessons[:n+1][n].probs
	}
	return nil
}

const manyLessons = 16 // of an item that is not worth keeping

// worker decodes messages and answers them, one after the other.
type worker struct {
	node     string
	ring     *fifo[*message]
	observed *fifo[*message] // what will come again
	router   *router[*source]
	lost     *source // takes what no source asks for
	out      chan<- *item
	report   *reporter
	outbox   *outbox
	qos      byte
	hook     func(*Prediction)
	counts   *counters

	turn   []*item
	shared shared

	started   time.Time
	ws        *model.Workspace
	items     pool[item]
	outgoings pool[outgoing]
	routes    []*source

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
			in   = w.ring.ready
		)
		if len(w.held) > 0 {
			next, out = w.held[0], w.out
			size = w.ring.size(next.msg)
			if w.ring.crowded() {
				in = nil
			}
		}
		if stop == nil && w.ring.len() == 0 && out == nil {
			return
		}
		select {
		case out <- next:
			w.held[0] = nil
			w.held = w.held[1:]
			w.ring.release(size)
			w.counts.held.Store(int64(len(w.held)))
		case <-in:
			w.next()
		case <-w.observed.ready:
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
	if msg.order != nil { // what a request has prepared
		it.order = msg.order
		w.hand(it)
		return
	}
	w.counts.lastMessage.set(msg.arrived)
	w.routes = w.router.find(w.routes[:0], msg.topic)
	if len(w.routes) == 0 {
		w.report.refuse(w.lost, nil, msg, unrouted(msg.topic))
	}
	for _, src := range w.routes {
		src.last.set(msg.arrived)
		src.received.Add(1)
		read := w.read
		if src.heed != nil {
			read = src.heed
		}
		if err := surviving(read, it, src); err != nil {
			var r *Refusal
			if errors.As(err, &r) {
				w.report.refuse(src, src.models, msg, r)
			}
		}
	}
	w.hand(it)
}

// unrouted is the refusal of a message that has no destination.
func unrouted(topic string) *Refusal {
	if err := checkTopic(topic); err != nil {
		return refuse(BadTopic, "the topic %w: the broker should have refused it", err)
	}
	return refuse(Unrouted, "no stream asks for this topic: an old subscription of the session? It ends with a new mqtt.client_id")
}

// surviving reads a message and refuses it if that panics: the broker would send
// it again after every restart.
func surviving(read func(*item, *source) error, it *item, src *source) error {
	err := guarded(read, it, src)
	if err == nil {
		return nil
	}
	if p := (*online.Panic)(nil); errors.As(err, &p) {
		return refuse(Fault, "%w", p)
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
	keeps := it.msg.qos > 0 || it.order != nil
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
		w.ring.keep(it.msg)
		w.counts.held.Store(int64(len(w.held)))
	case slices.ContainsFunc(it.lessons, func(l lesson) bool { return l.label != "" || l.wait != 0 }):
		w.counts.lessonsDropped.Add(1)
	}
}

// read appends what a message teaches to it, and publishes predictions.
func (w *worker) read(it *item, src *source) error {
	msg := it.msg
	if msg.retained && !src.allowRetained {
		return refuse(Retained, "the broker kept this message: allow_retained is off")
	}
	readings, row := it.early.readings, it.early.row
	if it.early.src != src {
		scratch := &it.scratch
		if len(it.lessons) > 0 { // of another stream, with their features in there
			scratch = new(Scratch)
		}
		var err error
		if readings, err = src.decoder.DecodeTo(scratch, msg.payload); err != nil {
			return err
		}
		row = -1
		if len(readings) > 1 && len(w.turn) < 2 && src.gatherer == nil && len(src.feeds) > 0 {
			w.shared.begin()
			row = w.shared.take(src, readings)
			w.shared.load()
		}
	}
	if msg.observed {
		readings = unlabelled(readings)
	}
	from := src.place(msg.topic)
	if src.gatherer != nil {
		x, err := src.gatherer.add(msg.topic, from.device, readings[0].X[0], msg.arrived)
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
			w.report.refuse(src, src.models, msg, refuse(BadLabel, "its source is this node: a model must not teach itself"))
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

// sample predicts for every model of the stream. row is where it is in shared, or −1.
func (w *worker) sample(it *item, src *source, r *Reading, at place, entry, row int) {
	msg := it.msg
	l := lesson{from: src, label: r.Label, weight: r.Weight, device: at.device, entry: entry, repeat: msg.retained}
	var sample uint64
	if r.ID != "" {
		sample, l.repeat = sampleKey(src.identity, at.levels, r.ID), true
		l.wait = waitKey(src.identity, at.levels, r.ID)
	} else if r.Label != "" {
		l.key = messageKey(msg.topic, msg.payload, entry)
	}
	for _, f := range src.feeds {
		m := f.to
		l.to, l.x = m, r.X
		if f.pick != nil {
			l.x = make([]float64, len(f.pick))
			for j, at := range f.pick {
				l.x[j] = r.X[at]
			}
		}
		if r.ID != "" {
			l.key = exampleKey(sample, l.x)
		}
		post := m.Model.Posterior()
		if err := m.complete(&l, post, src.impute); err != nil {
			w.report.refuse(src, []*modelState{m}, msg, err)
			continue
		}
		learned := r.Label != "" && !m.frozen && m.classes.refusal(r.Label) == "" && (msg.qos > 0 || len(w.held) == 0 && len(w.out) < cap(w.out))
		ahead := 0
		switch behind := m.behind(post.Version()); {
		case learned:
			ahead = behind + 1
		case l.wait != 0 && !m.frozen && m.asker == nil: // its label may come as late as the last one that came late; those that are asked for have no order
			ahead = int(m.lag.Load())
		}
		probs, novelty, ws, err := w.predict(it.spare(), l.x, m, post, ahead, row)
		if err != nil {
			w.report.refuse(src, []*modelState{m}, msg, refuse(Unpredictable, "model %s: %w", m.Name, err))
			continue
		}
		m.clipped.Add(uint64(ws.Clipped()))
		if learned {
			m.unlearnt++
		}
		doubt := m.aim.Threshold(*m.Model.Uncertainty())
		l.probs, l.said = probs, doubt.Meta(probs, novelty)
		l.ahead, l.last = ahead, max(post.Pool.Last, 0)
		l.epoch, l.version = post.Epoch, post.Version()
		m.seq++
		l.seq = m.seq
		p := &w.prediction
		set := p.Set[:0]
		*p = Prediction{
			Node: w.node, Model: m.Name, Stream: src.name, Device: l.device, ID: r.ID,
			Seq: m.seq, Version: post.Version(), X: l.x, Classes: post.Classes(), Probs: probs, Novelty: novelty,
			Abstain: l.said.Abstained, Coverage: doubt.Coverage, Drift: doubt.Drift, Label: r.Label, Learned: learned, Set: set,
			rawID: r.rawID, rawTime: r.rawTime, arrived: msg.arrived,
		}
		if doubt.Coverage > 0 {
			p.Set = doubt.AppendSet(set, probs, l.x)
			if k, known := classOf(post, r.Label); learned && known {
				m.aim.JudgeNow(l.said.Holds(probs, l.x, k), len(p.Set))
			}
		}
		p.judge()
		l.query = w.ask(m, post, p, &l, msg, ws)
		w.publish(m, p)
		it.lessons = append(it.lessons, l)
	}
}

// classOf returns the number of the class that a label means, one beyond the
// classes for a new one; false for a former name of a class.
func classOf(post *model.Posterior, label string) (k int, known bool) {
	if k = slices.Index(post.Classes(), label); k >= 0 {
		return k, true
	}
	return len(post.Classes()), !slices.Contains(post.Aliases, label)
}

// complete counts the features that a sample lacks, and fills them in if it is
// told to: with the mean by which the model scales them.
func (m *modelState) complete(l *lesson, post *model.Posterior, impute bool) *Refusal {
	n := missing(l.x)
	if n == 0 {
		return nil
	}
	m.missing.Add(uint64(n))
	switch {
	case n == len(l.x):
		return refuse(MissingFeature, "none of the features of model %s has a value", m.Name)
	case !impute || post.Version() == 0: // before the first sample there is no mean
		return nil
	}
	l.x = slices.Clone(l.x) // other models fill in their own means
	for j, v := range l.x {
		if v != v {
			l.x[j] = post.Scale.Mu[j]
		}
	}
	return nil
}

// missing returns how many features have no value.
func missing(x []float64) (n int) {
	for _, v := range x {
		if v != v {
			n++
		}
	}
	return n
}

// behind returns how many samples with their labels this version of the
// posterior has not learnt yet. Repetitions are handed over and never learnt.
// It is an estimate that errs towards none: labels that come later count as if
// they had come with their samples.
func (m *modelState) behind(version uint64) int {
	repeated := m.redelivered.Load()
	m.unlearnt -= min(version-m.version+repeated-m.repeated, m.unlearnt)
	m.version, m.repeated = version, repeated
	return int(m.unlearnt)
}

func (w *worker) publish(m *modelState, p *Prediction) {
	p.Latency = time.Since(p.arrived)
	out := newOutgoing(w.outgoings)
	if m.cbor == nil {
		out.payload = p.AppendJSON(out.payload)
	} else {
		var err error
		if out.payload, err = m.cbor.encode(p); err != nil {
			w.report.log.Error("cannot encode a prediction", "model", m.Name, "error", err)
		}
	}
	out.topic, out.qos = m.answerTopic(p.Device), w.qos
	w.outbox.push(out)
	m.latest.set(p)
	m.predictions.Add(1)
	w.counts.predictions.Add(1)
	if w.hook != nil {
		w.hook(p)
	}
}

// answerTopic is where predictions for a device go.
func (m *modelState) answerTopic(device string) string {
	if device == "" {
		return m.predictionTopic
	}
	topic, ok := m.answers[device]
	if !ok {
		if topic = m.predictionTopic + "/" + device; checkTopic(topic) != nil {
			topic = m.predictionTopic
		}
		remember(&m.answers, device, topic)
	}
	return topic
}

// label finds the samples that a label without features may be for.
func (w *worker) label(it *item, src *source, r *Reading, captured []string, entry int) {
	msg := it.msg
	l := lesson{
		from: src, label: r.Label, weight: r.Weight, id: r.ID,
		key: messageKey(msg.topic, msg.payload, entry), repeat: msg.retained,
	}
	for _, m := range src.models {
		late := lateLabel{to: m}
		streams := m.streams
		if len(src.feeds) > 0 { // on a stream's topic: of a sample of that stream and device
			streams = []*source{src}
		}
		for _, s := range streams {
			levels, ok := src.levels(msg.topic, captured, s)
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

// committer is the only writer of the journal. It commits in groups,
// acknowledges in the order of receipt and hands the records to the models.
type committer struct {
	in      <-chan *item
	try     chan struct{} // asks for a commit of nothing; room for one
	journal Journal
	models  []*modelState
	window  int           // messages of QoS 1 that wait for no more company
	flush   time.Duration // longest wait for company
	relaxed bool          // messages are acknowledged before the commit
	report  *reporter
	counts  *counters
	log     *slog.Logger

	announced bool                                         // Home Assistant is told about the models
	labelled  func(model string, seq uint64, label string) // may be nil

	unconfirmed unconfirmed
	group       group
}

// group is what the next transaction will hold.
type group struct {
	items   []*item
	unacked int       // of QoS 1
	due     time.Time // zero while nothing needs a commit
	records []online.Record
	keys    map[recordKey]bool
	pending map[recordKey]*online.Pending // nil: forget
	order   []recordKey                   // of pending
	marks   []online.Mark
	done    []func()      // once it is durable
	was     []online.Mark // before
}

type recordKey struct {
	model string
	key   uint64
}

func (g *group) durable() bool { return len(g.records)+len(g.order)+len(g.marks) > 0 }

func (g *group) record(m *modelState, ev online.Event) {
	g.records = append(g.records, online.Record{Model: m.Name, Event: ev})
	if ev.Kind == online.Observe || ev.Kind == online.Correct {
		m.place++
	}
	if ev.Key != 0 {
		g.keys[recordKey{m.Name, ev.Key}] = true
	}
}

// wait and forget keep the last word about a key, so that the order of a
// commit's parts does not matter.
func (g *group) wait(p *online.Pending) { g.pend(recordKey{p.Model, p.Key}, p) }

func (g *group) forget(m *modelState, key uint64) { g.pend(recordKey{m.Name, key}, nil) }

func (g *group) pend(k recordKey, p *online.Pending) {
	if _, ok := g.pending[k]; !ok {
		g.order = append(g.order, k)
	}
	g.pending[k] = p
}

func (g *group) reset() {
	clear(g.items) // whose payloads are done with
	if g.keys == nil {
		g.keys, g.pending = map[recordKey]bool{}, map[recordKey]*online.Pending{}
	}
	clear(g.keys)
	clear(g.pending)
	*g = group{items: g.items[:0], keys: g.keys, pending: g.pending}
}

func (g *group) commit() *online.Commit {
	c := &online.Commit{Records: g.records, Marks: g.marks}
	for _, k := range g.order {
		if p := g.pending[k]; p != nil {
			c.Wait = append(c.Wait, *p)
		} else {
			c.Forget = append(c.Forget, online.Pending{Model: k.model, Key: k.key})
		}
	}
	return c
}

// run commits until its queue is closed, then commits the rest. If ctx ends
// first, what is not committed is not acknowledged, and taken back.
func (c *committer) run(ctx context.Context) {
	c.group.reset()
	defer c.takeBack()
	c.recover(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if at := c.due(); !at.IsZero() {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case it, ok := <-c.in:
			if !ok {
				c.settle(ctx)
				return
			}
			if c.meet(ctx, it) {
				c.add(it)
				if c.full(it) {
					c.settle(ctx)
				}
			}
		case <-due:
			c.boundaries(time.Now())
			c.settle(ctx)
		case <-c.try:
			c.commit(ctx, &online.Commit{})
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// meet prepares for the messages of another connection. It reports false where
// the connection ended before the broker's cursor was known: the message comes
// again over the next one.
func (c *committer) meet(ctx context.Context, it *item) bool {
	u, msg := &c.unconfirmed, it.msg
	if !u.meets(msg) {
		return true
	}
	c.settle(ctx) // what came over the connection before
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-msg.conn.cursor.known:
	case <-msg.conn.lost:
	case <-ctx.Done():
		return false
	}
	// Both may be: then all that came over the connection is left out, not this
	// message alone, which would be learnt after those that follow it.
	select {
	case <-msg.conn.lost:
		msg.ack()
		it.free()
		return false
	default:
	}
	u.begin(msg, &msg.conn.cursor)
	if len(u.messages) > 0 {
		c.log.Debug("some messages may come again although they were learnt", "messages", len(u.messages), "renewed_identifiers", u.renewed)
	}
	return true
}

// full reports whether the group waits for no more company. Where durability is
// relaxed, messages but for requests are acknowledged at once, and the broker
// sends more.
func (c *committer) full(it *item) bool {
	g := &c.group
	if c.relaxed && it.order == nil {
		it.msg.ack()
		it.free()
		g.items, g.unacked = g.items[:len(g.items)-1], 0
		return len(g.records)+len(g.order) >= MaxGroup
	}
	return c.relaxed || !c.durable() || g.unacked >= c.window || len(g.items) >= maxGroup || len(g.records) >= MaxGroup
}

// recover takes up the samples that wait, and lets a minibatch that was filling
// when the node stopped be closed in time.
func (c *committer) recover(ctx context.Context) {
	now := time.Now()
	for _, m := range c.models {
		if len(m.owed) > 0 {
			c.teach(ctx, m, m.owed)
		}
		var dropped []*waiter
		if m.waiting != nil { // it was handed over
			dropped = m.waiting.limit(m.Pending)
		} else {
			m.waiting, dropped = newWaiting(m.Pending, m.Waiting, now)
		}
		m.Waiting = nil
		m.pending.Store(int64(m.waiting.len()))
		c.dropped(m, dropped, &c.counts.pendingEvicted)
		status := m.Model.Status()
		m.place = status.Learned + uint64(status.Open)
		if m.Batch.MaxWait > 0 {
			m.since = now
		}
		if m.mark = m.Mark; c.announced && m.mark&markAnnounced == 0 {
			c.mark(m, m.mark|markAnnounced)
		}
	}
	if c.durable() {
		c.group.due = now
	}
}

// due returns when something is to be done even if no message comes; zero for never.
func (c *committer) due() time.Time {
	at := c.group.due
	for _, m := range c.models {
		if m.since.IsZero() {
			continue
		}
		if t := m.since.Add(m.Batch.MaxWait); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// boundaries closes the minibatches that have waited long enough. Where a group
// waits as long as that for company, what it has gathered has, and the boundary
// needs no commit of its own.
func (c *committer) boundaries(now time.Time) {
	for _, m := range c.models {
		waited := !m.since.IsZero() && now.Sub(m.since) >= m.Batch.MaxWait
		gathered := m.Batch.MaxWait > 0 && c.flush >= m.Batch.MaxWait &&
			slices.ContainsFunc(c.group.records, func(r online.Record) bool { return r.Model == m.Name && r.Kind == online.Observe })
		if waited || gathered {
			c.group.record(m, online.Event{Kind: online.Boundary})
		}
	}
}

func (c *committer) mark(m *modelState, bits uint64) {
	c.group.was = append(c.group.was, online.Mark{Model: m.Name, Bits: m.mark})
	m.mark = bits
	c.group.marks = append(c.group.marks, online.Mark{Model: m.Name, Bits: bits})
}

func (c *committer) add(it *item) {
	now := time.Now()
	c.group.items = append(c.group.items, it)
	repeated, records := c.unconfirmed.repeats(it.msg), len(c.group.records)
	if it.order != nil {
		c.obey(it.order, repeated)
	}
	if it.msg.qos > 0 {
		c.group.unacked++
	}
	for i := range it.lessons {
		l := &it.lessons[i]
		if repeated {
			c.repeated(l)
			continue
		}
		if err := c.consider(it, l, now); err != nil {
			c.report.refuse(l.from, l.from.models, it.msg, refuse(Fault, "%w", err))
		}
	}
	c.unconfirmed.take(it.msg, it.named(), repeated || len(c.group.records) > records)
	if c.durable() && c.group.due.IsZero() {
		c.group.due = now.Add(c.flush)
	}
}

// durable reports whether the group needs a commit.
func (c *committer) durable() bool { return c.group.durable() || c.unconfirmed.due }

// repeated counts what a repetition would have taught.
func (c *committer) repeated(l *lesson) {
	if l.to != nil {
		if l.label != "" {
			c.again(l.to)
		}
		return
	}
	for _, late := range l.labels {
		c.again(late.to)
	}
}

// named reports whether the ids of all that the message labels tell its
// repetition. That of a late label may be a label that takes a correction back.
func (it *item) named() bool {
	return it.order == nil && !slices.ContainsFunc(it.lessons, func(l lesson) bool {
		return l.to == nil || l.label != "" && l.wait == 0
	})
}

// consider takes up what a message teaches. A panic is the error: the message is
// then acknowledged, or the broker would send it again after every restart.
func (c *committer) consider(it *item, l *lesson, now time.Time) (err error) {
	defer online.Recover(&err)
	if l.to == nil {
		c.label(it, l, now)
		return nil
	}
	c.expire(l.to, now)
	c.sample(it, l, now)
	return nil
}

func (c *committer) expire(m *modelState, now time.Time) {
	c.dropped(m, m.waiting.expire(now), &c.counts.pendingExpired)
}

// dropped lets the journal forget samples as well, and counts those that were
// waiting for their label.
func (c *committer) dropped(m *modelState, gone []*waiter, count *atomic.Uint64) {
	for _, p := range gone {
		if p.sample.Label == "" {
			count.Add(1)
		}
		if p.stored {
			c.group.forget(m, p.sample.Key)
		}
	}
}

func (c *committer) seen(m *modelState, key uint64) bool {
	return c.group.keys[recordKey{m.Name, key}] || c.journal.Seen(m.Name, key)
}

// off reports whether a request has switched learning off, which comes in its
// turn among the labels: those before it are learnt, also where they come again
// after it. The committer's.
func (m *modelState) off() bool { return m.mark&markFrozen != 0 }

// freeze counts a label that came while learning was off.
func (c *committer) freeze(m *modelState) {
	m.ignored.Add(1)
	c.counts.frozen.Add(1)
}

func (c *committer) again(m *modelState) {
	m.redelivered.Add(1)
	c.counts.redelivered.Add(1)
}

// sample teaches a labelled sample, and lets another one wait for its label.
func (c *committer) sample(it *item, l *lesson, now time.Time) {
	m := l.to
	if l.label != "" && m.off() {
		c.freeze(m)
		return
	}
	x, probs := l.x, l.probs
	waits := l.wait != 0 && m.Pending.Max > 0
	if l.label != "" || waits { // the item's memory is another's soon
		x, probs = slices.Clone(x), slices.Clone(probs)
	}
	one := waiter{
		sample:  online.Pending{Model: m.Name, Key: l.wait, X: x, Probs: probs, Meta: l.said, Ahead: l.ahead, Last: l.last, Epoch: l.epoch},
		version: l.version, seq: l.seq, fresh: true,
	}
	before := m.waiting.get(l.wait)
	if l.wait != 0 {
		one.sample.Identity = l.key
	}
	if before != nil && !before.same(&one) {
		c.reused(it, l)
		before = nil
	}
	if l.label != "" {
		said := l.key // of the message
		if l.wait != 0 {
			said = messageKey(it.msg.topic, it.msg.payload, l.entry)
		}
		switch {
		case before != nil && before.corrects(l.label):
			if c.admit(it, l, m) {
				c.correct(before, l, m, said, now)
			}
			return
		case l.repeat && c.seen(m, l.key) || before != nil && before.sample.Label != "":
			c.again(m)
			return
		case c.admit(it, l, m):
			c.group.record(m, online.Event{Kind: online.Observe, Key: l.key, X: x, Label: l.label, Weight: l.weight})
			m.last.keep(one, l.device, now)
			c.taught(m, one, before, l, said, now)
			return
		}
	}
	m.last.keep(one, l.device, now)
	switch {
	case !waits:
	case before != nil:
		c.again(m)
	case c.seen(m, l.key):
		m.last.none = true
		c.again(m)
	default:
		one.stored = true
		kept, dropped := m.waiting.add(one, now)
		c.dropped(m, dropped, &c.counts.pendingEvicted)
		c.group.wait(&kept.sample)
		if l.query != nil {
			c.ask(m, l.query, l.wait, now)
		}
	}
}

// taught remembers that a sample was taught its label, so that another one can
// correct it. before is the sample as it waited, if it did.
func (c *committer) taught(m *modelState, one waiter, before *waiter, l *lesson, by uint64, now time.Time) {
	one.sample.Label, one.sample.By = l.label, by
	one.stored = before != nil && before.stored
	if before != nil && before.fresh && c.labelled != nil {
		seq, label := before.seq, l.label
		c.group.done = append(c.group.done, func() { c.labelled(m.Name, seq, label) })
	}
	if !m.last.none && (l.id == lastID || m.last.sample.Key == one.sample.Key) {
		m.last.sample.Label, m.last.sample.By = l.label, by
	}
	if one.sample.Key == 0 {
		return
	}
	m.queries.answer(one.sample.Key)
	if m.Pending.Corrections == 0 {
		if m.waiting.take(one.sample.Key) != nil && one.stored {
			c.group.forget(m, one.sample.Key)
		}
		m.waiting.forget(one.sample.Key)
		return
	}
	kept, dropped := m.waiting.add(one, now)
	if kept.stored {
		c.group.wait(&kept.sample)
	}
	c.dropped(m, dropped, &c.counts.pendingEvicted)
}

// corrects reports whether a label is another one than the sample was taught.
func (p *waiter) corrects(label string) bool {
	return p.sample.Label != "" && p.sample.Label != label
}

// heard reports whether a message has told a label of the sample before.
func (c *committer) heard(m *modelState, p *waiter, message uint64) bool {
	return message == p.sample.By || c.seen(m, message)
}

// same reports whether a sample under the same key is the same one, not another
// one of a device that sends its own id with each.
func (p *waiter) same(other *waiter) bool {
	if p.sample.Identity == 0 { // kept by an earlier version
		return slices.Equal(p.sample.X, other.sample.X)
	}
	return p.sample.Identity == other.sample.Identity
}

// reused counts a sample whose id another one had, and warns about the first one
// of a stream.
func (c *committer) reused(it *item, l *lesson) {
	c.counts.idReused.Add(1)
	if l.from.idReused.Swap(true) {
		return
	}
	detail := fmt.Sprintf("stream %s: samples with other features come under one id: if it is the device's, say id: \"\" for the stream", l.from.name)
	c.log.Warn("an id came again with other features, and is taken for another sample", "stream", l.from.name, "topic", it.msg.topic, "way_out", "where it is the device's id, say id: \"\" for the stream")
	c.report.event("", "id_reused", detail)
}

// correct teaches another label of a sample that was taught one before.
func (c *committer) correct(before *waiter, l *lesson, m *modelState, by uint64, now time.Time) {
	p := before.sample
	c.group.record(m, online.Event{
		Kind: online.Correct, Key: by, X: p.X, Label: l.label, Name: p.Label, Probs: p.Probs, Meta: p.Meta, Weight: l.weight,
		Ahead: p.Ahead, Last: p.Last, Epoch: p.Epoch,
	})
	m.corrected.Add(1)
	c.taught(m, *before, before, l, p.By, now)
}

// admit reports whether the model may be taught the label, and remembers it.
func (c *committer) admit(it *item, l *lesson, m *modelState) bool {
	var err *Refusal
	switch reason := m.classes.refusal(l.label); reason {
	case "":
		if m.Classes.Needed(m.classes.count()) <= 1 { // otherwise the learner says when it is a class
			m.classes.add(l.label)
		}
		return true
	case UnknownClass:
		err = refuse(reason, "label %.80q is not one of the model's classes, which are closed", l.label)
	default:
		err = refuse(reason, "label %.80q would be one class more than classes.max = %d", l.label, m.Classes.Max)
	}
	c.report.refuse(l.from, []*modelState{m}, it.msg, err)
	return false
}

// label teaches the samples that a late label is for.
func (c *committer) label(it *item, l *lesson, now time.Time) {
	var (
		reached bool // a sample was found, or had been taught already
		why     = refuse(UnknownID, "no sample with id %.80q waits for a label: it never came, waited too long, or made room for others", l.id)
		models  []*modelState
	)
	for i := range l.labels {
		late := &l.labels[i]
		m := late.to
		models = append(models, m)
		c.expire(m, now)
		p, err := c.find(l, late)
		switch {
		case err != nil:
			if err.Reason != UnknownID {
				why = err
			}
			continue
		case p == nil || p.sample.Label == l.label || p.corrects(l.label) && l.repeat && c.heard(m, p, l.key):
			reached = true
			c.again(m)
			continue
		}
		reached = true
		if m.off() {
			c.freeze(m)
			continue
		}
		if !c.admit(it, l, m) {
			continue
		}
		if p.sample.Label != "" {
			c.correct(p, l, m, l.key, now)
			continue
		}
		c.measure(m, p, now)
		m.review(p, l.label)
		s := p.sample
		key := s.Identity
		if key == 0 || m.waiting.get(s.Key) != p { // the newest sample, which has no id or does not wait
			key = l.key
		}
		if s.Probs == nil { // no class was known: the learner must not judge by what it knows now
			s.Probs = []float64{}
		}
		c.group.record(m, online.Event{
			Kind: online.Observe, Key: key, X: s.X, Label: l.label, Probs: s.Probs, Meta: s.Meta, Weight: l.weight, Ahead: s.Ahead, Last: s.Last, Epoch: s.Epoch,
		})
		c.taught(m, *p, p, l, l.key, now)
	}
	if !reached {
		c.report.refuse(l.from, models, it.msg, why)
	}
}

// measure notes how late the label of a sample is, in time and in labels.
func (c *committer) measure(m *modelState, p *waiter, now time.Time) {
	if p.sample.Key != 0 && m.waiting.get(p.sample.Key) == p {
		m.delays.add(m.waiting.clock(now) - p.sample.Clock)
	} else {
		m.delays.add(now.Sub(m.last.at))
	}
	m.delay.Store(int64(m.delays.value()))
	if p.fresh {
		m.late.Observe(m.place+1, p.version)
		m.lag.Store(int64(m.late.Ahead()))
	}
}

// review judges the set that was published for a sample which is taught its
// label now.
func (m *modelState) review(p *waiter, label string) {
	post, s := m.Model.Posterior(), &p.sample
	if !p.fresh || !s.Meta.Sets || s.Epoch != post.Epoch {
		return
	}
	if k, known := classOf(post, label); known {
		size := s.Meta.Size(s.Probs, s.X)
		m.aim.Judge(s.Meta.Holds(s.Probs, s.X, k), size, p.version, m.place+1)
	}
}

// find returns the sample of one model that a late label is for; nil if it has
// been taught already and is not kept any more.
func (c *committer) find(l *lesson, late *lateLabel) (*waiter, *Refusal) {
	m := late.to
	unknown := refuse(UnknownID, "no sample with that id waits")
	if l.id == lastID {
		switch {
		case l.repeat && c.seen(m, l.key):
			return nil, nil
		case m.last.none || late.device != "" && late.device != m.last.device:
			return nil, unknown
		}
		if p := m.waiting.get(m.last.sample.Key); m.last.sample.Key != 0 && p != nil {
			return p, nil
		}
		return m.last.waiting(), nil
	}
	keys := late.keys
	if late.byID {
		sharing := m.waiting.sharing(waitKey("", nil, l.id))
		if len(sharing) > 1 {
			return nil, refuse(AmbiguousID, "samples of several devices wait under id %.80q: send the label to …/label/<device>", l.id)
		}
		keys = slices.Concat(keys, sharing)
	}
	for _, k := range keys {
		if p := m.waiting.get(k); p != nil {
			return p, nil
		}
	}
	for _, k := range keys {
		switch {
		case !m.waiting.forgot(k):
		case l.repeat:
			return nil, nil
		default:
			return nil, refuse(TooLate, "the sample with id %.80q was taught its label, and is not kept any more for a correction", l.id)
		}
	}
	return nil, unknown
}

// settle commits the group, acknowledges its messages in the order of receipt
// and hands its records over. If ctx ends before the journal works, nothing of
// it has happened, and the broker sends the messages again.
func (c *committer) settle(ctx context.Context) {
	g := &c.group
	durable := c.durable()
	if durable {
		commit := g.commit()
		commit.Taken = c.unconfirmed.commit()
		if !c.commit(ctx, commit) {
			return
		}
	}
	release := c.unconfirmed.hold(durable)
	for _, it := range g.items {
		it.msg.ack()
		it.free()
	}
	c.unconfirmed.acknowledged(durable)
	release()
	for _, f := range g.done {
		f()
	}
	byModel := map[string][]online.Record{}
	for _, r := range g.records {
		byModel[r.Model] = append(byModel[r.Model], r)
	}
	now := time.Now()
	for _, m := range c.models {
		m.waiting.keep()
		m.settled.copy(&m.last)
		m.classes.keep()
		m.pending.Store(int64(m.waiting.len()))
		m.queries.prune(m.waiting)
		records := byModel[m.Name]
		if len(records) == 0 {
			continue
		}
		m.committed(records, now, c.counts)
		c.teach(ctx, m, records)
	}
	g.reset()
}

// teach hands committed records over. If ctx ends first, they are owed: the node
// that follows hands them over, or the journal does after the next start.
func (c *committer) teach(ctx context.Context, m *modelState, records []online.Record) {
	m.owed = nil
	if err := m.Model.Learn(ctx, records); err != nil {
		m.owed = records
		c.log.Warn("learning is postponed; the journal has the records", "model", m.Name, "records", len(records), "reason", err)
	}
}

// takeBack makes what is known of samples and messages what it was before a group
// that was not committed: the node that follows takes the group's messages anew
// when the broker sends them again.
func (c *committer) takeBack() {
	c.unconfirmed.undo()
	for _, m := range c.models {
		m.waiting.undo()
		m.last.copy(&m.settled)
		m.classes.undo()
		for _, mark := range slices.Backward(c.group.was) {
			if mark.Model == m.Name {
				m.mark = mark.Bits
			}
		}
	}
}

// committed follows the filling of the minibatch. The count may be off after a
// restart, or when the learner refuses a sample: so a Boundary always ends a
// pause in the stream, and closes nothing if the minibatch is empty.
func (m *modelState) committed(records []online.Record, now time.Time, counts *counters) {
	for _, r := range records {
		if r.Kind == online.Observe || r.Kind == online.Correct {
			m.learned.Add(1)
			counts.learned.Add(1)
		}
		if r.Kind != online.Observe { // which closes the minibatch
			m.open, m.since = 0, time.Time{}
			continue
		}
		m.open++
		full := m.open >= m.Batch.MaxSize
		if m.Batch.MaxWait > 0 && (m.open == 1 || full) {
			m.since = now
		}
		if full {
			m.open = 0
		}
	}
}

// commit tries until it succeeds. It reports false if ctx ended first.
func (c *committer) commit(ctx context.Context, commit *online.Commit) bool {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := c.journal.Commit(commit)
		if err == nil {
			if c.counts.degraded.Swap(false) {
				c.log.Info("the journal works again")
				c.report.event("", "store_recovered", "")
			}
			return true
		}
		c.counts.commitFailures.Add(1)
		why := err.Error()
		c.counts.commitError.Store(&why)
		if !c.counts.degraded.Swap(true) {
			c.log.Error("the journal cannot be written; predictions go on, nothing is learnt or acknowledged until it works again", "error", err)
			c.report.event("", "store_degraded", why)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}
