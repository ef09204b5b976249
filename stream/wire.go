package stream

import (
	"cmp"
	"context"
	"time"

	"edge/model"
	"edge/stream/homeassistant"
	"edge/stream/mqtt"
)

// wire makes the parts of a connected node, which share its queues and counters.
func (n *Node) wire(deps Deps, filters []string) *Node {
	ring := n.cfg.MQTT.Ring
	n.ring = mqtt.NewQueue(ring.MaxMessages, ring.MaxBytes, mqtt.MessageSize)
	n.deferred = mqtt.NewQueue(deferredQueue, ring.MaxBytes, mqtt.MessageSize)
	n.queue = newCommitQueue(ring.MaxBytes)
	n.outbox = mqtt.NewOutbox(n.cfg.Outbox, &n.counts.network)
	n.report = n.newReporter(deps)
	n.outbox.OnRefused(n.report.refused)
	n.worker = n.newWorker(deps)
	turned := make(chan struct{}, 1)
	n.committer = n.newCommitter(deps, turned)
	n.client = n.newClient(deps, filters)
	if deps.After == nil && deps.Subscriptions != nil {
		if known, err := deps.Subscriptions.Filters(); err == nil { // the client reports the error
			n.leaveFormerFleets(known)
		}
	}
	n.fallback = n.newFallback(turned)
	if window := n.cfg.LossWindow; window > 0 {
		n.log.Warn("durability is relaxed: messages are acknowledged before they are on the disk; a crash or a power cut loses the labels and samples of the last", "window", window.String())
	}
	return n
}

func (n *Node) newReporter(deps Deps) *reporter {
	prefix := n.cfg.prefix()
	r := &reporter{
		node: n.cfg.Node, prefix: prefix, build: deps.Build, started: NewBeginning(),
		models: n.models, counts: n.counts, stats: n.Stats, limits: n.limits(), metrics: n.cfg.Metrics,
		outbox: n.outbox, qos: byte(n.cfg.MQTT.QoS), log: n.log, onEvent: deps.OnEvent, moreHealth: deps.Health,
		changed: make(chan struct{}, 1),
	}
	settings := deps.Settings // alone, without the samples in deps
	r.settings.Store(&settings)
	r.home = homeassistant.New(n.cfg.HomeAssistant, homeassistant.Options{
		Node: n.cfg.Node, Prefix: prefix, Control: n.cfg.Control.Enabled, MetricsLast: 3 * n.cfg.Metrics.Every, Wake: func() { wake(r.changed) },
	})
	return r
}

func (n *Node) newWorker(deps Deps) *worker {
	now := time.Now()
	return &worker{
		node: n.cfg.Node, ring: n.ring, deferred: n.deferred, out: n.queue, outbox: n.outbox, qos: byte(n.cfg.MQTT.QoS),
		router: n.router(), unrouted: n.unrouted, report: n.report, counts: n.counts, onPrediction: deps.OnPrediction,
		ws: model.NewWorkspace(), items: mqtt.NewPool[item](), batch: batch{ws: model.NewWorkspace(), readers: deps.Readers},
		started: now, stageClock: stageClock{stages: n.stages(), seen: now},
	}
}

// newCommitter returns the committer. turned gets an element when the journal begins to fail, or to
// work again.
func (n *Node) newCommitter(deps Deps, turned chan<- struct{}) *committer {
	c := &committer{
		in: n.queue, probe: make(chan struct{}, 1), journal: deps.Journal, models: n.models, stages: n.worker.stages,
		window: n.cfg.MQTT.InflightWindow, flush: cmp.Or(n.cfg.LossWindow, n.cfg.JournalFlush), relaxed: n.cfg.LossWindow > 0,
		report: n.report, counts: n.counts, turned: turned, log: n.log, announced: n.cfg.HomeAssistant.Enabled, onLabel: deps.OnLabel,
		unconfirmed: unconfirmed{dropped: &n.counts.unconfirmedDropped, size: &n.counts.unconfirmed, newest: &n.counts.sequence},
	}
	c.unconfirmed.load(deps.Taken)
	return c
}

// newClient returns the connection to the broker, with the filters to subscribe to.
func (n *Node) newClient(deps Deps, filters []string) *mqtt.Client {
	id := n.cfg.MQTT.ClientID
	if id == "" {
		id = mqtt.DefaultClientID(n.cfg.Node)
	}
	prefix := n.cfg.prefix()
	return mqtt.NewClient(mqtt.Options{
		Config: n.cfg.MQTT, ID: id, Dial: deps.Dial, Log: n.log, StateTopic: prefix + "state", CursorTopic: prefix + mqtt.CursorLevel,
		Filters: filters, QoS: n.qualities(), Aside: n.fleets.aside(), Memory: deps.Subscriptions,
		MaxPayload: n.maxPayload(), Queue: n.ring, Deferred: n.deferred,
		Counters: &n.counts.network, Dropped: &n.counts.ringDropped, Sequence: &n.counts.sequence,
		Event: func(kind, detail string) { n.report.event("", kind, detail) },
		Serve: func(ctx context.Context, c *mqtt.Conn) {
			n.report.birth()
			defer time.AfterFunc(mqtt.RepeatAfter, n.report.repeat).Stop()
			defer n.fleets.serve(c)()
			n.outbox.Serve(ctx, c)
		},
	})
}
