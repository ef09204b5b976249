package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"edge/model"
	"edge/online"
	"edge/online/active"
	"edge/stream/mqtt"
)

const (
	drainWithin   = 2 * time.Second // to answer and commit what has arrived, after the end of Run's ctx
	publishWithin = time.Second     // to publish what is left after that

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
	Subscriptions mqtt.Subscriptions
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
	Dial mqtt.Dialer
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

	client    *mqtt.Client
	ring      *mqtt.Queue[*mqtt.Message] // messages that wait for the worker
	deferred  *mqtt.Queue[*mqtt.Message] // messages that are only answered: they come again
	queue     chan *item
	outbox    *mqtt.Outbox
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
	n, filters, err := newNode(cfg, deps)
	if err != nil {
		return nil, fmt.Errorf("stream: new node: %w", err)
	}
	return n.wire(cfg, deps, filters), nil
}

// wire gives a node that is joined all that it works with.
func (n *Node) wire(cfg Config, deps Deps, filters []string) *Node {
	prefix := cfg.prefix()
	qos := byte(cfg.MQTT.QoS)
	n.ring = mqtt.NewQueue(cfg.MQTT.Ring.MaxMessages, cfg.MQTT.Ring.MaxBytes, mqtt.MessageSize)
	n.queue = make(chan *item, commitQueue)
	n.outbox = mqtt.NewOutbox(cfg.Outbox, &n.counts.network)
	n.report = &reporter{
		node: cfg.Node, prefix: prefix, models: n.models, outbox: n.outbox, qos: qos, metrics: cfg.Metrics, build: deps.Build,
		home:   newHomeAssistant(cfg, prefix),
		counts: n.counts, stats: n.Stats, more: deps.Health, heard: deps.OnEvent, log: n.log, started: time.Now(), logs: newLimits(logEvery, 1), limits: n.limits(),
	}
	n.report.settings.Store(&deps.Settings)
	n.worker = &worker{
		node: cfg.Node, ring: n.ring, router: n.router(), lost: n.lost, out: n.queue, report: n.report,
		outbox: n.outbox, qos: qos, hook: deps.OnPrediction, counts: n.counts, ws: model.NewWorkspace(), started: time.Now(),
		items: make(itemPool, keptItems), shared: shared{ws: model.NewWorkspace()},
	}
	n.committer = &committer{
		in: n.queue, try: make(chan struct{}, 1), journal: deps.Journal, models: n.models, window: cfg.MQTT.InflightWindow, flush: cmp.Or(cfg.LossWindow, cfg.JournalFlush), relaxed: cfg.LossWindow > 0,
		report: n.report, counts: n.counts, log: n.log, announced: cfg.HomeAssistant.Enabled, labelled: deps.OnLabel,
		unconfirmed: unconfirmed{dropped: &n.counts.unconfirmedDropped, size: &n.counts.unconfirmed, newest: &n.counts.sequence},
	}
	n.committer.unconfirmed.load(deps.Taken)
	id := cfg.MQTT.ClientID
	if id == "" {
		id = mqtt.DefaultClientID(cfg.Node)
	}
	n.deferred = mqtt.NewQueue(observedQueue, cfg.MQTT.Ring.MaxBytes, mqtt.MessageSize)
	n.client = mqtt.NewClient(mqtt.Options{
		Config: cfg.MQTT, ID: id, StateTopic: prefix + "state", CursorTopic: prefix + mqtt.CursorLevel, Filters: filters, Memory: deps.Subscriptions, MaxPayload: n.maxPayload(),
		Queue: n.ring, Deferred: n.deferred, Dial: deps.Dial, Counters: &n.counts.network, Dropped: &n.counts.ringDropped, Sequence: &n.counts.sequence, Log: n.log,
		Event: func(kind, detail string) { n.report.event("", kind, detail) },
		Serve: func(ctx context.Context, c *mqtt.Conn) {
			n.report.hello()
			n.outbox.Serve(ctx, c)
		},
	})
	n.observer = n.newObserver()
	n.worker.observed = n.deferred
	if cfg.LossWindow > 0 {
		n.log.Warn("durability is relaxed: messages are acknowledged before they are on the disk; a crash or a power cut loses the labels and samples of the last", "window", cfg.LossWindow.String())
	}
	return n
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
	network.Go(func() { n.client.Run(online) })
	network.Go(func() { n.observer.run(ctx) })
	reports.Go(func() { n.report.run(reporting) })
	work.Go(func() { n.worker.run(working, stop) })
	work.Go(func() { n.committer.run(working) })

	<-ctx.Done()
	n.log.Info("stopping", "ring", n.ring.Len(), "outbox", n.outbox.Len())
	n.client.StopReceiving()
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
	n.client.SetReplaced(errors.Is(context.Cause(ctx), ErrReplaced))
	stopReporting()
	reports.Wait()
	n.report.final()
	if c := n.client.Conn(); c != nil {
		publishing, done := context.WithTimeout(background, publishWithin)
		n.outbox.Drain(publishing, c)
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
