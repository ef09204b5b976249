package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"edge/online"
	"edge/online/active"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

const (
	drainWithin   = 2 * time.Second // time to answer and commit received messages after the end of Run's ctx
	publishWithin = time.Second     // time to publish waiting messages after that
)

// ErrUnfinished reports that a stop left received messages because the journal could not be
// written. No acknowledged message is lost.
var ErrUnfinished = errors.New("stream: stop: the journal could not be written, and received messages are left; they are not acknowledged, and the broker sends them again")

// ModelConfig configures one model and its streams.
type ModelConfig struct {
	// Name is a level of the model's topics: [a-z0-9_-].
	Name string
	// Model predicts and learns; it must live until Run has returned.
	Model Model
	// Streams are the names of the streams that feed the model, at least one.
	Streams []string
	// Features are the names of the inputs, in the model's order; every stream must
	// have them. Nil: those of the first stream.
	Features []string
	// Classes are the permitted labels, as in the learner's configuration.
	Classes online.Classes
	// Batch closes the minibatches, as in the learner's configuration.
	Batch online.Batch
	// Pending bounds the samples that wait for a label.
	Pending Pending
	// Waiting are the pending samples in the journal, oldest first.
	Waiting []online.Pending
	// Unlearnt are the records of the journal that the model is yet to learn, as far as
	// they change its classes: online.ClassRecords.
	Unlearnt []online.Record
	// Mark holds the bits of the model in the journal, from the last Commit.
	Mark uint64
	// Output is the format of the predictions: json or cbor. Empty: json.
	Output string
	// Active decides which labels are requested. The zero value: none.
	Active active.Config
	// Seed is the seed of the noise of Active.
	Seed uint64
	// Fleet is the model's part in a fleet. The zero value: none.
	Fleet membership.Config
	// Follow returns the posterior of a follower, for the contributions of a set.
	Follow Follow
}

// Deps are the collaborators of a Node.
type Deps struct {
	Models  []ModelConfig
	Readers *online.Readers // of the models' loops; may be nil
	Journal Journal
	// Subscriptions, if set, stores the subscriptions, so that those of an earlier
	// configuration can be ended, with which the broker's session would go on, and its fleets left.
	Subscriptions mqtt.Subscriptions
	// Taken are the unconfirmed messages in the journal.
	Taken online.Taken
	// Windows are the windows in progress in the journal.
	Windows []online.Windows
	Log     *slog.Logger // nil: no log
	Build   Build
	Program Program
	// Health, if set, returns further members of the node's health. It is called once
	// a minute.
	Health func() map[string]any
	// OnPrediction, if set, is called with every prediction in the worker's goroutine.
	// It must not wait, and keep no more than a copy (CopyTo).
	OnPrediction func(*Prediction)
	// Courses adds the course of the signals over its window to each prediction of a stream
	// with windows, for OnPrediction and Queries, and makes Windows known.
	Courses bool
	// OnLabel, if set, is called when a label is durable that came after the prediction
	// with this Seq. It must not wait.
	OnLabel func(model string, seq uint64, label string)
	// OnEvent, if set, is called with every event, in any goroutine. It must not wait.
	OnEvent func(Event)
	// Settings identifies the configuration in the info message.
	Settings string
	// Dial, if set, opens the connections to the broker; nil: over the network.
	Dial mqtt.Dialer
	// After is the node that this one replaces, see Inherit. Models of one name are the
	// same in both.
	After *Node
}

// Node is one MQTT edge node. NewNode makes it; Run runs it, once.
type Node struct {
	cfg          Config
	log          *slog.Logger
	counts       *counters
	previous     *Node // until Inherit
	sources      []*source
	unrouted     *source // source of messages without a source
	models       []*modelState
	sourceCounts map[string]*sourceCounts // by name: of this node's sources and those of the previous nodes
	modelCounts  map[string]*modelCounts  // by name: of this node's models and those of the previous nodes

	client *mqtt.Client
	received
	queue      *commitQueue
	outbox     *mqtt.Outbox
	fallback   *fallback // nil: no fallback
	worker     *worker
	committer  *committer
	report     *reporter
	program    Program
	background backgroundQueue
	fleets     *fleets
}

// received are the queues of received messages.
type received struct {
	ring     *mqtt.Queue[*mqtt.Message] // messages that wait for the worker
	deferred *mqtt.Queue[*mqtt.Message] // messages that are only answered, because they come again
}

// NewNode checks the configuration and wires a node. It starts nothing.
func NewNode(cfg Config, deps Deps) (*Node, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	n, filters, err := newNode(cfg, deps)
	if err != nil {
		return nil, fmt.Errorf("stream: new node: %w", err)
	}
	return n.wire(deps, filters), nil
}

// model returns the state of a model, nil without a model of that name, and for a nil
// node.
func (n *Node) model(name string) *modelState {
	if n == nil {
		return nil
	}
	for _, m := range n.models {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Run connects and works until ctx ends. Then it receives no more messages, answers and
// commits the received ones, publishes the final metrics and that the node is offline,
// and disconnects, within five seconds. It does not wait for a learner that is behind, whose
// records the journal has. ErrUnfinished reports that a received message was left because the
// journal could not be written. If the cause of ctx's end is ErrReplaced, another node follows,
// and Run does not publish that this one is offline.
func (n *Node) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	connected, disconnect := context.WithCancel(background)
	defer disconnect()
	reporting, stopReporting := context.WithCancel(background)
	defer stopReporting()
	working, abandon := context.WithCancel(background)
	defer abandon()
	stop := make(chan struct{})

	var network, reports, work, requests, fleets sync.WaitGroup
	requests.Go(func() { n.background.run(ctx) })
	network.Go(func() { n.client.Run(connected) })
	network.Go(func() { n.fallback.run(ctx) })
	reports.Go(func() { n.report.run(reporting) })
	n.worker.awaited = n.client.Awaited
	work.Go(func() { n.worker.run(working, stop) })
	work.Go(func() { n.committer.run(working, ctx) })
	fleets.Go(func() { n.fleets.run(ctx) })

	<-ctx.Done()
	n.log.Info("no more messages are received; those that wait are handled", "ring", n.ring.Len(), "outbox", n.outbox.Len())
	n.client.StopReceiving()
	deadline := time.AfterFunc(drainWithin, abandon)
	defer deadline.Stop()
	fleets.Wait()
	n.fleets.leave(ctx)
	close(stop)
	work.Wait()
	requests.Wait()
	replaced := errors.Is(context.Cause(ctx), ErrReplaced)
	for _, m := range n.models {
		if replaced { // the loops go on, and the next node publishes their metrics
			break
		}
		if err := m.Model.Idle(working); err != nil || len(m.owed) > 0 {
			n.log.Warn("the model is still learning committed records; its last metrics are without them, and it continues at the next start", "model", m.Name)
		}
	}
	n.client.SetReplaced(replaced)
	stopReporting()
	reports.Wait()
	n.report.final()
	n.fleets.final(working, ctx)
	if c := n.client.Conn(); c != nil {
		publishing, done := context.WithTimeout(background, publishWithin)
		n.outbox.Drain(publishing, c)
		done()
	}
	left := n.Stats().Unacked
	disconnect()
	network.Wait()
	return n.unfinished(left)
}

// unfinished reports a stop that left messages: as an error where the journal fails. A disk that is
// slow has failed in nothing.
func (n *Node) unfinished(left int64) error {
	s := n.Stats()
	switch {
	case n.committer.clean:
	case n.committer.told == failing:
		return fmt.Errorf("%w: %s", ErrUnfinished, s.CommitError)
	default:
		n.log.Warn("the stop did not wait for all received messages; those without an acknowledgement come again if the broker keeps the session (mqtt.persistent_session)", "messages", left, "reason", cmp.Or(s.CommitError, "they take more than "+drainWithin.String()))
	}
	return nil
}

// Notify publishes a notice of a learner as an event. It never waits.
func (n *Node) Notify(notice online.Notice) {
	m := n.model(notice.Model)
	if m != nil {
		n.follow(m, notice.Kind)
	}
	switch notice.Kind {
	case online.NoticeReset, online.NoticeRolledBack, online.NoticeClassRemoved, online.NoticeClassRenamed:
		n.log.Info("the learnt model has changed", "model", notice.Model, "event", notice.Kind, "detail", notice.Detail)
	}
	n.report.event(notice.Model, notice.Kind, notice.Detail)
	if m != nil && notice.Kind == online.NoticeClassAdded {
		n.compare(m, notice.Detail)
	}
}

// follow adapts the node to a change of a model.
func (n *Node) follow(m *modelState, kind string) {
	switch kind {
	case online.NoticeClassAdded, online.NoticeClassRemoved, online.NoticeClassRenamed, online.NoticeCorrected, online.NoticeEventRefused:
		m.classes.catchUp()
	case online.NoticeRolledBack:
		m.classes.catchUp()
		n.fleets.again(m)
		n.leaveFleet(m)
	case online.NoticeReset:
		m.classes.catchUp()
		n.fleets.again(m)
	case online.NoticeMerged, online.NoticeRecovered: // a merge before the configuration changed
		m.classes.catchUp()
		n.leaveFleet(m)
	}
}

// compare reports a new class whose name a person may take for that of another one.
func (n *Node) compare(m *modelState, name string) {
	if like := m.classes.alike(name); like != "" {
		n.log.Warn("a new class is spelt almost like another one, and counts as a class of its own", "model", m.Name, "class", name, "other", like,
			"advice", "if they are one, send one spelling, or give a map of all labels (label_map, or map under labels), and remove the new class (edge request class_remove)")
		n.report.event(m.Name, "class_alike", fmt.Sprintf("%q beside %q: if they are one class, send one spelling, or give a map of all labels, and remove the new class", name, like))
	}
}

// Learnt notes that a model has a new Status, for the reports. It never waits.
func (n *Node) Learnt() { wake(n.report.changed) }

// Repaired publishes as an event that the state file was repaired at the start.
func (n *Node) Repaired(detail string) { n.report.event("", "store_repaired", detail) }

// CheckJournal requests an empty commit, so that a failure of the journal is reported
// and repaired before a label needs it. It never waits.
func (n *Node) CheckJournal() { wake(n.committer.probe) }
