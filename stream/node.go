package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"edge/model"
	"edge/online"
	"edge/online/active"
)

const (
	drainWithin   = 2 * time.Second // to answer and commit what has arrived, after the end of Run's ctx
	publishWithin = time.Second     // to publish what is left after that
	labelsName    = "labels"        // of the sources that are not streams
)

// Topics that a node publishes, below <base>/<node>/ and below that of a model.
// Those of requests, logs, schemas and queries are kept free for it.
var (
	nodeTopics  = []string{"state", "info", "health", "event", "log", "request", "response", cursorLevel}
	modelTopics = []string{"prediction", "latest", "metrics", "reject", "schema", "query"}
)

// ErrUnfinished is what Run says when a stop had no time for all that had
// arrived. Nothing that was acknowledged is missing.
var ErrUnfinished = errors.New("stream: stop: not everything that had arrived was committed in time; the broker will send it again")

// ModelConfig is one model and how it is fed.
type ModelConfig struct {
	// Name is a level of the model's topics: [a-z0-9_-].
	Name string
	// Model predicts and learns; it must live until Run has returned.
	Model Model
	// Streams are the names of those that feed the model, at least one.
	Streams []string
	// Features are the names of its inputs, in the model's order; every stream
	// must have them. Nil: those of the first stream.
	Features []string
	// Classes are the labels that it accepts, as its learner was told.
	Classes online.Classes
	// Batch says when its minibatches close, as its learner was told.
	Batch online.Batch
	// Pending bounds the samples that wait for a label.
	Pending Pending
	// Waiting are the samples that waited when the journal was closed, oldest first.
	Waiting []online.Pending
	// Mark is what the journal remembers of the model, as it was told in a Commit.
	Mark uint64
	// Output is the format of the predictions: json or cbor. Empty: json.
	Output string
	// Active says which labels are asked for. The zero value: none.
	Active active.Config
	// Seed of the noise with which they are chosen.
	Seed uint64
}

// Deps are what a Node works with.
type Deps struct {
	Models  []ModelConfig
	Journal Journal
	// Subscriptions, if set, lets topics that an earlier configuration had be
	// given back to the broker, whose session would go on sending them.
	Subscriptions Subscriptions
	// Taken are the messages that the journal has noted as taken.
	Taken   online.Taken
	Log     *slog.Logger // nil: none
	Build   Build
	Program Program
	// Health, if set, adds what other parts of the program know to the node's
	// health. It is called once a minute.
	Health func() map[string]any
	// OnPrediction, if set, is called with every prediction from the goroutine
	// that makes them: it must not wait, and keep no more than a copy (CopyTo).
	OnPrediction func(*Prediction)
	// OnLabel, if set, is called when a label is durable that came after the
	// prediction with this Seq: it must not wait.
	OnLabel func(model string, seq uint64, label string)
	// OnEvent, if set, is called with every event, from any goroutine: it must not wait.
	OnEvent func(Event)
	// Settings identify the configuration, for info.
	Settings string
	// Dial, if set, opens the connections to the broker; nil: over the network.
	Dial Dial
	// After is the node that this one replaces, see TakeOver; its models are the
	// same where the names are the same.
	After *Node
}

// Node is one MQTT edge node. NewNode makes it, Run runs it, once.
type Node struct {
	cfg     Config
	log     *slog.Logger
	counts  *counters
	after   *Node // until TakeOver
	sources []*source
	lost    *source // of messages that no source asks for
	models  []*modelState
	heard   map[string]*sourceCounts // by name: of the sources, and of those of the nodes before
	taught  map[string]*modelCounts  // likewise

	client    *client
	ring      *fifo[*message]
	queue     chan *item
	outbox    *outbox
	observer  *observer // nil: none
	worker    *worker
	committer *committer
	report    *reporter
	program   Program
	errands   *errands
}

// NewNode checks the configuration and wires a node; nothing runs yet.
func NewNode(cfg Config, deps Deps) (*Node, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Dial == nil {
		deps.Dial = dial
	}
	n, filters, err := join(cfg, deps)
	if err != nil {
		return nil, fmt.Errorf("stream: new node: %w", err)
	}
	return n.wire(cfg, deps, filters), nil
}

// join checks the configuration, and joins streams, labels and models. It returns
// what is to be subscribed to.
func join(cfg Config, deps Deps) (*Node, []string, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	n := &Node{
		cfg: cfg, log: deps.Log, after: deps.After, program: deps.Program, errands: newErrands(),
		counts: new(counters), heard: map[string]*sourceCounts{}, taught: map[string]*modelCounts{},
	}
	if n.after != nil {
		n.counts, n.heard, n.taught = n.after.counts, maps.Clone(n.after.heard), maps.Clone(n.after.taught)
	}
	n.lost = n.count(&source{name: "none"})
	if err := n.connectModels(deps.Models); err != nil {
		return nil, nil, err
	}
	filters, err := n.filters()
	return n, filters, err
}

// wire gives a node that is joined all that it works with.
func (n *Node) wire(cfg Config, deps Deps, filters []string) *Node {
	prefix := cfg.MQTT.BaseTopic + "/" + cfg.Node + "/"
	qos := byte(cfg.MQTT.QoS)
	n.ring = newFifo(cfg.MQTT.Ring.MaxMessages, cfg.MQTT.Ring.MaxBytes, func(m *message) int { return len(m.topic) + len(m.payload) })
	n.queue = make(chan *item, commitQueue)
	n.outbox = newOutbox(cfg.Outbox, publishWindow, n.counts)
	n.report = &reporter{
		node: cfg.Node, prefix: prefix, models: n.models, outbox: n.outbox, qos: qos, metrics: cfg.Metrics, build: deps.Build,
		home:   newHomeAssistant(cfg, prefix),
		counts: n.counts, stats: n.Stats, more: deps.Health, heard: deps.OnEvent, log: n.log, started: time.Now(), logs: newLimits(logEvery, 1), limits: n.limits(),
	}
	n.report.settings.Store(&deps.Settings)
	n.worker = &worker{
		node: cfg.Node, ring: n.ring, router: n.router(), lost: n.lost, out: n.queue, report: n.report,
		outbox: n.outbox, qos: qos, hook: deps.OnPrediction, counts: n.counts, ws: model.NewWorkspace(), started: time.Now(),
		items: make(pool[item], kept), outgoings: make(pool[outgoing], kept), shared: shared{ws: model.NewWorkspace()},
	}
	n.committer = &committer{
		in: n.queue, try: make(chan struct{}, 1), journal: deps.Journal, models: n.models, window: cfg.MQTT.InflightWindow, flush: cmp.Or(cfg.LossWindow, cfg.JournalFlush), relaxed: cfg.LossWindow > 0,
		report: n.report, counts: n.counts, log: n.log, announced: cfg.HomeAssistant.Enabled, labelled: deps.OnLabel,
		unconfirmed: unconfirmed{dropped: &n.counts.unconfirmedDropped, size: &n.counts.unconfirmed, newest: &n.counts.sequence},
	}
	n.committer.unconfirmed.load(deps.Taken)
	id := cfg.MQTT.ClientID
	if id == "" {
		id = defaultClientID(cfg.Node)
	}
	n.client = &client{
		cfg: cfg.MQTT, id: id, stateTopic: prefix + "state", cursorTopic: prefix + cursorLevel, filters: filters, memory: deps.Subscriptions, maxPayload: n.maxPayload(),
		ring: n.ring, observed: newFifo(observedQueue, cfg.MQTT.Ring.MaxBytes, n.ring.size),
		dial: deps.Dial, counters: n.counts, dropped: &n.counts.ringDropped, log: n.log, connectTimeout: connectTimeout, pingTimeout: pingTimeout,
		event: func(kind, detail string) { n.report.event("", kind, detail) },
		serve: func(ctx context.Context, c *connection) {
			n.report.hello()
			n.outbox.serve(ctx, c)
		},
	}
	n.observer = n.newObserver()
	n.worker.observed = n.client.observed
	if cfg.LossWindow > 0 {
		n.log.Warn("durability is relaxed: messages are acknowledged before they are on the disk; a crash or a power cut loses the labels and samples of the last", "window", cfg.LossWindow.String())
	}
	return n
}

// connectModels makes the sources and the models and joins them.
func (n *Node) connectModels(configs []ModelConfig) error {
	var errs []error
	byName, identities := map[string]*source{}, n.identities()
	for _, name := range slices.Sorted(maps.Keys(n.cfg.Streams)) {
		s := n.cfg.Streams[name]
		decoder, err := NewDecoder(s)
		if err != nil {
			return err
		}
		src := &source{name: name, key: "streams." + name + ".topics", filters: s.Topics, decoder: decoder, allowRetained: s.AllowRetained, impute: s.OnMissing == OnMissingImpute, identity: identities[name]}
		tmpl := s.TopicTemplate
		if s.Format == formatValue {
			src.gatherer = newGatherer(s, n.counts)
			tmpl = strings.Replace(tmpl, featureLevel, "+", 1) // the other levels name the device
		}
		if src.template, err = parseTemplate(tmpl); err != nil {
			return err
		}
		byName[name] = src
	}
	prefix := n.cfg.MQTT.BaseTopic + "/" + n.cfg.Node + "/"
	for _, c := range configs {
		if !isName(c.Name) || slices.Contains(nodeTopics, c.Name) || slices.ContainsFunc(n.models, func(m *modelState) bool { return m.Name == c.Name }) {
			errs = append(errs, fmt.Errorf("models.%s: want names of their own in [a-z0-9_-], and none of %s", c.Name, strings.Join(nodeTopics, ", ")))
			continue
		}
		m := &modelState{
			ModelConfig: c, rejects: newLimits(rejectEvery, rejectBurst),
			classes:         newClasses(c.Classes.Open, c.Classes.Max),
			predictionTopic: prefix + c.Name + "/prediction", latestTopic: prefix + c.Name + "/latest",
			metricsTopic: prefix + c.Name + "/metrics", rejectTopic: prefix + c.Name + "/reject",
			labelTopic: prefix + c.Name + "/label", queryTopic: prefix + c.Name + "/query",
		}
		errs = append(errs, within("models."+c.Name+".pending", c.Pending.Validate()))
		if err := CheckOutput(cmp.Or(c.Output, formatJSON)); err != nil {
			errs = append(errs, fmt.Errorf("models.%s.output %w", c.Name, err))
			continue
		}
		if err := m.join(byName); err != nil {
			errs = append(errs, within("models."+c.Name, err))
			continue
		}
		if m.modelCounts = n.taught[c.Name]; m.modelCounts == nil {
			m.modelCounts = new(modelCounts)
			n.taught[c.Name] = m.modelCounts
		}
		if n.after.model(c.Name) == nil { // which would hand over whether it learns
			m.frozen = c.Mark&markFrozen != 0
			m.learning.Store(!m.frozen)
		}
		if m.frozen {
			n.log.Warn("learning is switched off, as an earlier request asked; labels teach nothing until another switches it on", "model", c.Name,
				"topic", prefix+"request/learning/"+c.Name, "control", n.cfg.Control.Enabled)
		}
		if c.Active.Enabled() {
			m.asker = active.NewSelector(c.Active, c.Seed)
			errs = append(errs, within("models."+c.Name+".active", c.Active.Validate()))
		}
		if c.Output == formatCBOR {
			var err error
			if m.cbor, err = newCBOREncoder(); err != nil {
				return fmt.Errorf("models.%s.output cbor: %w", c.Name, err)
			}
		}
		m.last.none, m.settled.none = true, true
		m.knowClasses()
		n.models = append(n.models, m)
	}
	if len(configs) == 0 {
		errs = append(errs, errors.New("models: want at least one"))
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if len(byName[name].models) == 0 {
			n.log.Warn("no model uses this stream; it is not subscribed to", "stream", name)
			continue
		}
		n.sources = append(n.sources, n.count(byName[name]))
	}
	for i, l := range n.cfg.Labels {
		t, err := parseTemplate(l.TopicTemplate)
		if err != nil {
			return err
		}
		src := &source{name: labelsName, key: fmt.Sprintf("labels[%d].topics", i), filters: l.Topics, decoder: newLabelDecoder(l), template: t}
		for _, m := range n.models {
			if l.Model == "" || l.Model == m.Name {
				src.models = append(src.models, m)
			}
		}
		if len(src.models) == 0 && errors.Join(errs...) == nil {
			errs = append(errs, fmt.Errorf("labels[%d].model %s: there is no such model", i, l.Model))
		}
		n.sources = append(n.sources, n.count(src))
	}
	for _, m := range n.models {
		n.sources = append(n.sources, n.count(&source{
			name: labelsName, filters: []string{m.labelTopic + "/#"}, // which matches …/label too
			decoder: newLabelDecoder(DefaultLabels()), template: &template{}, models: []*modelState{m},
			ownTopic: m.labelTopic,
		}))
	}
	n.listen(prefix)
	return errors.Join(errs...)
}

// knowClasses takes over the classes that the model has learnt.
func (m *modelState) knowClasses() {
	p := m.Model.Posterior()
	m.classes.reset(p.Classes(), p.Aliases...)
	if p.Epoch == 0 { // none was removed
		m.classes.add(m.Classes.Names...)
	}
}

// listen adds the sources of what is neither a sample nor a label.
func (n *Node) listen(prefix string) {
	own := func(name, filter string, heed func(*item, *source) error) {
		n.sources = append(n.sources, n.count(&source{
			name: name, filters: []string{filter}, decoder: newLabelDecoder(DefaultLabels()), template: &template{},
			ownTopic: filter, heed: heed,
		}))
	}
	if n.cfg.Control.Enabled {
		own(requestsName, prefix+"request/#", func(it *item, _ *source) error { return n.request(it, prefix) })
	}
	if h := n.cfg.HomeAssistant; h.Enabled {
		own(homeAssistantName, h.StatusTopic, func(it *item, _ *source) error { return n.report.home.status(it.msg) })
		for _, m := range n.models {
			own(homeAssistantName, h.announcement(n.cfg.Node, m.Name), func(it *item, _ *source) error { return n.report.home.former(m, it.msg) })
		}
	}
}

// join lets the model's streams feed it.
func (m *modelState) join(streams map[string]*source) error {
	if len(m.Streams) == 0 {
		return errors.New("streams []: want at least one")
	}
	var errs []error
	for _, name := range m.Streams {
		src := streams[name]
		if src == nil {
			errs = append(errs, fmt.Errorf("streams: there is no stream %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(streams)), ", ")))
			continue
		}
		if slices.Contains(m.streams, src) {
			errs = append(errs, fmt.Errorf("streams: %s is there twice", name))
			continue
		}
		if m.Features == nil {
			m.Features = slices.Clone(src.decoder.names)
		}
		f := feed{to: m}
		if !slices.Equal(m.Features, src.decoder.names) {
			for _, feature := range m.Features {
				at, ok := src.decoder.index[feature]
				if !ok {
					errs = append(errs, fmt.Errorf("features: stream %s has no feature %q", name, feature))
				}
				f.pick = append(f.pick, at)
			}
		}
		src.feeds, src.models, m.streams = append(src.feeds, f), append(src.models, m), append(m.streams, src)
	}
	if d := m.Model.Posterior().Dim(); len(errs) == 0 && d != len(m.Features) {
		errs = append(errs, fmt.Errorf("features: %d of them, but the model was made for %d", len(m.Features), d))
	}
	return errors.Join(errs...)
}

// filters returns what to subscribe to.
func (n *Node) filters() ([]string, error) {
	var filters []string
	var errs []error
	for _, src := range n.sources {
		for _, f := range src.filters {
			plain, _ := unshare(f)
			for _, own := range n.outputs() {
				if src.ownTopic == "" && overlap(plain, own) {
					errs = append(errs, fmt.Errorf("%s: %s would receive the node's own output %s: name the topics of the sensors, such as factory/+/vibration", src.key, f, own))
					break
				}
			}
			filters = append(filters, f)
		}
	}
	subscribe, overlaps := subscriptions(filters)
	for _, pair := range overlaps {
		n.log.Warn("two subscriptions overlap; some brokers send a message twice that matches both", "one", pair[0], "other", pair[1])
	}
	return subscribe, errors.Join(errs...)
}

// outputs are filters for all that the node publishes.
func (n *Node) outputs() (filters []string) {
	prefix := n.cfg.MQTT.BaseTopic + "/" + n.cfg.Node + "/"
	for _, m := range n.models {
		for _, t := range modelTopics {
			filters = append(filters, prefix+m.Name+"/"+t)
		}
		filters = append(filters, m.predictionTopic+"/#")
	}
	for _, t := range nodeTopics {
		filters = append(filters, prefix+t)
	}
	filters = append(filters, prefix+"request/#", prefix+"response/#")
	if h := n.cfg.HomeAssistant; h.Enabled {
		filters = append(filters, h.DiscoveryPrefix+"/device/+/config")
	}
	return filters
}

func (n *Node) router() *router[*source] {
	r := new(router[*source])
	for _, src := range n.sources {
		for _, f := range src.filters {
			r.add(f, src)
		}
	}
	return r
}

func (n *Node) maxPayload() (largest int) {
	for _, src := range n.sources {
		largest = max(largest, src.decoder.maxPayload)
	}
	return largest
}

// limits are what info says about the node's bounds.
func (n *Node) limits() map[string]any {
	payload := map[string]int{}
	for _, src := range n.sources {
		payload[src.name] = src.decoder.maxPayload
	}
	return map[string]any{
		"max_payload": payload, "inflight_window": n.cfg.MQTT.InflightWindow,
		"ring_messages": n.cfg.MQTT.Ring.MaxMessages, "ring_bytes": n.cfg.MQTT.Ring.MaxBytes,
		"loss_window_seconds": n.cfg.LossWindow.Seconds(),
		"outbox_messages":     n.cfg.Outbox.MaxMessages, "outbox_bytes": n.cfg.Outbox.MaxBytes,
	}
}

// Run connects and works until ctx ends. Then it takes in no more, answers and
// commits what has arrived, publishes the final metrics, says that it is
// offline and disconnects, within five seconds. The error says that something
// that has arrived was left for the broker to send again. If the cause of ctx's
// end is ErrReplaced, another node follows and nobody is told that this one is
// offline.
func (n *Node) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	online, disconnect := context.WithCancel(background)
	defer disconnect()
	reporting, stopReporting := context.WithCancel(background)
	defer stopReporting()
	working, abandon := context.WithCancel(background)
	defer abandon()
	stop := make(chan struct{})

	var network, reports, work, requests sync.WaitGroup
	requests.Go(func() { n.errands.run(ctx) })
	network.Go(func() { n.client.run(online) })
	network.Go(func() { n.observer.run(ctx) })
	reports.Go(func() { n.report.run(reporting) })
	work.Go(func() { n.worker.run(working, stop) })
	work.Go(func() { n.committer.run(working) })

	<-ctx.Done()
	n.log.Info("stopping", "ring", n.ring.len(), "outbox", n.outbox.queue.len())
	n.client.draining.Store(true)
	close(stop)
	deadline := time.AfterFunc(drainWithin, abandon)
	defer deadline.Stop()
	work.Wait()
	late := working.Err() != nil
	requests.Wait()
	for _, m := range n.models {
		if err := m.Model.Idle(working); err != nil {
			n.log.Warn("the model is still learning what is committed; its final metrics are not published, and it carries on at the next start", "model", m.Name)
		}
	}
	n.client.replaced.Store(errors.Is(context.Cause(ctx), ErrReplaced))
	stopReporting()
	reports.Wait()
	n.report.final()
	if c := n.client.current.Load(); c != nil {
		publishing, done := context.WithTimeout(background, publishWithin)
		n.outbox.drain(publishing, c)
		done()
	}
	disconnect()
	network.Wait()
	if late {
		return ErrUnfinished
	}
	return nil
}

// Notify publishes a learner's notice as an event. It never waits.
func (n *Node) Notify(notice online.Notice) {
	for _, m := range n.models {
		if m.Name != notice.Model {
			continue
		}
		switch notice.Kind {
		case online.NoticeClassAdded:
			if m.Classes.Confirm > 1 { // else the committer knew before, and may know that it was removed since
				m.classes.add(notice.Detail)
			}
		case online.NoticeRolledBack:
			m.knowClasses()
		}
	}
	n.report.event(notice.Model, notice.Kind, notice.Detail)
}

// CheckJournal has the journal tried by a commit of nothing, so that a failure
// is reported, and made good, before a label needs it. It never waits.
func (n *Node) CheckJournal() {
	select {
	case n.committer.try <- struct{}{}:
	default: // one is due
	}
}

// Stats returns what the node has done so far. Any goroutine may call it.
func (n *Node) Stats() Stats {
	c := n.counts
	s := Stats{
		Degraded: c.degraded.Load(),
		Received: c.received.Load(), Predictions: c.predictions.Load(), Learned: c.learned.Load(), Redelivered: c.redelivered.Load(),
		RingDropped: c.ringDropped.Load(), Redeliveries: c.redeliveries.Load(), LessonsDropped: c.lessonsDropped.Load(),
		OutboxDropped: c.outboxDropped.Load(), RejectsDropped: c.rejectsDropped.Load(), StaleAcks: c.staleAcks.Load(),
		PendingExpired: c.pendingExpired.Load(), PendingEvicted: c.pendingEvicted.Load(), Published: c.published.Load(),
		ValuesUnused: c.valuesUnused.Load(), Frozen: c.frozen.Load(), Observed: c.observed.Load(), ObservedDropped: c.observedDropped.Load(),
		IDReused: c.idReused.Load(), Unconfirmed: int(c.unconfirmed.Load()), UnconfirmedDropped: c.unconfirmedDropped.Load(),
		Reconnects: c.reconnects.Load(), ConnectFailures: c.connectFailures.Load(), CommitFailures: c.commitFailures.Load(),
		ProtocolErrors: c.protocolErrors.Load(),
		Ring:           n.ring.len(), Commit: len(n.queue) + int(n.counts.held.Load()), Outbox: n.outbox.queue.len(),
		Rejected: map[Reason]uint64{}, Streams: map[string]StreamStats{}, Models: map[string]ModelStats{},
	}
	if why := c.commitError.Load(); s.Degraded && why != nil {
		s.CommitError = *why
	}
	if conn := n.client.current.Load(); conn != nil {
		s.Connected, s.Subscribed, s.Unacked = true, conn.granted.Load(), conn.unsettled.Load()
	}
	if why := n.client.failure.Load(); why != nil {
		s.Failure = *why
	}
	if refused := n.client.refused.Load(); refused != nil {
		s.Refused = slices.Clone(*refused)
	}
	s.SinceMessage = c.lastMessage.since()
	for name, c := range n.heard {
		c.rejected.addTo(s.Rejected)
		if c.received.Load() == 0 {
			continue
		}
		of := StreamStats{Received: c.received.Load(), SinceMessage: c.last.since(), Rejected: map[Reason]uint64{}}
		c.rejected.addTo(of.Rejected)
		s.Streams[name] = of
	}
	for _, m := range n.models {
		s.Models[m.Name] = ModelStats{
			Predictions: m.predictions.Load(), Learned: m.learned.Load(), Redelivered: m.redelivered.Load(), Pending: int(m.pending.Load()),
			Asked: m.queries.asked.Load(), Answered: m.queries.answered.Load(), Unanswered: m.queries.expired.Load(), Open: m.queries.len(),
			Frozen: m.ignored.Load(), Learning: m.learning.Load(), Corrected: m.corrected.Load(), LabelDelay: time.Duration(m.delay.Load()),
			Missing: m.missing.Load(), Clipped: m.clipped.Load(), Sets: m.aim.Coverage(),
		}
	}
	return s
}
