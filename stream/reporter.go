package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/homeassistant"
	"edge/stream/mqtt"
)

const (
	reportEvery  = time.Second // shortest interval of the checks for due reports
	healthEvery  = time.Minute
	rejectEvery  = time.Second // for each model and reason, after a burst
	rejectBurst  = 5
	logEvery     = time.Minute // for each stream and reason
	excerptBytes = 256         // of a refused payload
	maxConfusion = 64          // largest number of classes with a published confusion matrix
)

// Build identifies the program.
type Build struct {
	Version string
	Commit  string
}

// reporter publishes everything except predictions: latest, metrics, rejects, events,
// info and health. Any goroutine may call it.
type reporter struct {
	node       string
	prefix     string // <base>/<node>/
	models     []*modelState
	outbox     *mqtt.Outbox
	qos        byte
	metrics    Metrics
	build      Build
	limits     Limits
	counts     *counters
	stats      func() Stats
	moreHealth func() map[string]any // further members of health; may be nil
	onEvent    func(Event)           // may be nil
	log        *slog.Logger
	started    *Beginning
	home       *homeassistant.Devices
	changed    chan struct{} // has an element when there may be something to report; capacity 1

	settings atomic.Pointer[string] // identifies the configuration
}

// reported is the latest report of a model.
type reported struct {
	at      time.Time // of the scores
	samples uint64    // in them
	classes []string
}

// run publishes due reports until ctx ends. It waits for a change, or for the time of
// the next report: nothing wakes it in between.
func (r *reporter) run(ctx context.Context) {
	due := time.NewTimer(reportEvery)
	defer due.Stop()
	began, healthy := time.Now(), time.Now()
	started := r.started.Time()
	last := make([]reported, len(r.models))
	for i, m := range r.models {
		last[i] = reported{began, m.Model.Status().Scores.N, m.Model.Snapshot().Classes()}
	}
	for checked := began; ; {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			if wait := reportEvery - time.Since(checked); wait > 0 {
				due.Reset(wait)
				continue
			}
		case <-due.C:
		}
		now := time.Now()
		if checked = now; now.Sub(healthy) >= healthEvery {
			healthy = now
			r.health()
			if at := r.started.Time(); !at.Equal(started) { // the clock was set
				started = at
				r.info()
			}
		}
		next := r.reportDue(last, now)
		if at := healthy.Add(healthEvery); at.Before(next) {
			next = at
		}
		due.Reset(max(reportEvery, next.Sub(now)))
	}
}

// reportDue publishes the due reports, and returns when the next one is.
func (r *reporter) reportDue(last []reported, now time.Time) (next time.Time) {
	changed := false
	latest := make([][]byte, len(r.models))
	for i, m := range r.models {
		latest[i] = m.latest.take() // before a new class is announced
		if c := m.Model.Snapshot().Classes(); !slices.Equal(c, last[i].classes) {
			last[i].classes, changed = c, true
		}
	}
	if changed {
		r.info()
	}
	if changed || r.home.Due(now) {
		r.announce()
	}
	next = now.Add(r.metrics.Every)
	for i, m := range r.models {
		r.latest(m, latest[i])
		n := m.Model.Status().Scores.N
		before := last[i].samples
		sooner := r.metrics.Samples > 0 && n != before && (n-before >= r.metrics.Samples || n >= 2*before)
		if sooner || now.Sub(last[i].at) >= r.metrics.Every {
			last[i].at, last[i].samples = now, n
			r.scores(m)
		}
		if at := last[i].at.Add(r.metrics.Every); at.Before(next) {
			next = at
		}
	}
	if at := r.home.Next(); !at.IsZero() && at.Before(next) {
		next = at
	}
	return next
}

// birth publishes the first messages of a new connection.
func (r *reporter) birth() {
	r.repeat()
	r.final()
}

// repeat publishes info and the devices of Home Assistant. A connection calls it twice: a broker that
// has just started may not keep the first messages, and the next change may be days away.
func (r *reporter) repeat() {
	r.info()
	r.announce()
}

// final publishes the last values of the retained topics.
func (r *reporter) final() {
	for _, m := range r.models {
		r.latest(m, m.latest.take())
		r.scores(m)
	}
}

// refuse counts a refusal and, within rate limits, publishes and logs it.
func (r *reporter) refuse(from *source, models []*modelState, msg *mqtt.Message, why *codec.Refusal) {
	why.Topic = msg.Topic
	from.rejected[why.Reason].Add(1)
	r.counts.refused.Add(1)
	if l, ok := msg.Attached.(*ownLabel); ok {
		l.refused(why)
	}
	now := time.Now()
	if from.logs[why.Reason].allow(now) {
		r.log.Warn("message refused; more of this stream with this reason in the next minute are only counted", "topic", shortTopic(msg), "stream", from.name, "reason", why.Reason, "error", why.Err)
		if p, ok := errors.AsType[*online.Panic](why); ok {
			r.log.Error("a message caused a panic, which is a bug of this program", "topic", shortTopic(msg), "stack", string(p.Stack))
		}
	}
	var payload []byte
	for _, m := range models {
		if !m.rejects[why.Reason].allow(now) {
			r.counts.rejectsDropped.Add(1)
			continue
		}
		if payload == nil {
			reject := RejectPayload{
				V: 1, Time: Timestamp{now}, Node: r.node, Stream: from.name, Topic: why.Topic,
				Reason: why.Reason, Error: why.Err.Error(), Payload: excerpt(msg.Payload),
			}
			if why.Reason != codec.TooLarge { // such a payload was cut while it was read
				size := len(msg.Payload)
				reject.Bytes = &size
			}
			payload = r.encode(reject)
		}
		r.outbox.Push(&mqtt.Publication{Topic: m.rejectTopic, Payload: payload, QoS: r.qos})
	}
}

// Event is an event for a person, as published on the node's event topic.
type Event struct {
	Time   time.Time
	Model  string // "" for an event of the node
	Kind   string
	Detail string
}

// event publishes an event; model may be "".
func (r *reporter) event(model, kind, detail string) {
	now := time.Now()
	if r.onEvent != nil {
		r.onEvent(Event{now, model, kind, detail})
	}
	e := EventPayload{V: 1, Time: Timestamp{now}, Node: r.node, Event: kind, Model: model, Detail: detail}
	r.publish(r.prefix+"event", e)
}

// refused reports a publication that was discarded because the broker ended one connection
// after the other upon it; limit: so are all that are as large.
func (r *reporter) refused(topic string, bytes int, limit bool) {
	const ended = "the broker ended the connection repeatedly upon a message, which is discarded"
	what, advice := ended, "let the node publish on this topic in the broker's access list"
	if limit {
		what = ended + ", as are all about as large"
		advice = "raise the broker's limit (mosquitto, EMQX: max_packet_size), or shorten the messages (output: cbor for predictions, fleet.max_message for contributions); if smaller ones pass on this topic, the size is the reason, else its access list"
	}
	r.log.Error(what, "topic", topic, "bytes", bytes, "advice", advice+mqtt.WordsAdvice(topic))
	r.event("", "publication_refused", fmt.Sprintf("%s, %d bytes: %s", topic, bytes, what))
}

// latest publishes the newest prediction; nil: it was published before.
func (r *reporter) latest(m *modelState, payload []byte) {
	if payload != nil {
		r.retain(m.latestTopic, payload)
	}
}

func (r *reporter) info() {
	models := []ModelInfo{}
	for _, m := range r.models {
		models = append(models, ModelInfo{m.Name, m.Streams, m.Features, append([]string{}, m.Model.Snapshot().Classes()...)})
	}
	r.retain(r.prefix+"info", r.encode(InfoPayload{
		V: 1, Node: r.node, Version: r.build.Version, Commit: r.build.Commit, Go: runtime.Version(), Arch: runtime.GOOS + "/" + runtime.GOARCH,
		Started: Timestamp{r.started.Time()}, Brief: r.stats().Brief, Models: models, Limits: r.limits, Control: r.home.Control, Config: *r.settings.Load(),
	}))
}

func (r *reporter) health() {
	s := r.stats()
	h := HealthPayload{
		V: 1, Time: Timestamp{time.Now()}, Node: r.node, Status: "ok", Uptime: int64(r.started.since().Seconds()),
		Queues: QueueLength{In: s.Ring, Commit: s.Commit, Out: s.Outbox},
		HealthCounts: HealthCounts{
			Unacked: s.Unacked, Unconfirmed: s.Unconfirmed, Received: s.Received, Predictions: s.Predictions, Learned: s.Learned,
			Redelivered: s.Redelivered, IDReused: s.IDReused, Rejected: s.Rejected, Observed: s.Observed,
			Reconnects: s.Reconnects, ProtocolErrors: s.ProtocolErrors, CommitFailures: s.CommitFailures,
			Dropped: DropCounts{
				In: s.RingDropped, Lessons: s.ExamplesDropped, Out: s.OutboxDropped + s.OutboxRefused, Observed: s.ObservedDropped, Pending: s.PendingEvicted,
				Values: s.ValuesUnused, Unconfirmed: s.UnconfirmedDropped, Frozen: s.Frozen,
			},
		},
		HeapBytes: heapBytes(),
	}
	for name, of := range s.Streams {
		if of.Signals != nil && !of.Ended {
			if h.Signals == nil {
				h.Signals = map[string]*SignalStats{}
			}
			h.Signals[name] = of.Signals
		}
	}
	if s.Degraded {
		h.Status, h.CommitError = "degraded", s.CommitError
	}
	if len(s.Refused) > 0 {
		h.Status, h.Refused = "degraded", s.Refused
	}
	for _, m := range r.models {
		if m.Model.Status().Recovering {
			h.Recovering = append(h.Recovering, m.Name)
		}
	}
	if s.SinceMessage > 0 {
		age := math.Round(s.SinceMessage.Seconds()*10) / 10
		h.MessageAge = &age
	}
	if r.moreHealth != nil {
		h.Program = r.moreHealth()
	}
	r.publish(r.prefix+"health", h)
}

// scores publishes a model's prequential scores.
func (r *reporter) scores(m *modelState) {
	status := m.Model.Status()
	s := &status.Scores
	v := MetricsPayload{
		V: 1, Time: Timestamp{time.Now()}, Node: r.node, Model: m.Name, Version: status.Learned,
		Scores: DescribeScores(&s.Figures), Window: DescribeScores(&s.Window), Classes: s.Classes,
		Drift: status.Drift.String(), Drifts: status.Drifts, Pending: m.pending.Load(), WarmedUp: status.WarmedUp, Learning: m.learning.Load(),
		LabelCounts: LabelCounts{Frozen: m.ignored.Load(), Corrected: m.corrected.Load()}, Missing: m.missing.Load(), Clipped: m.clipped.Load(),
	}
	if q := &m.queries; m.asker != nil {
		v.Queries = &QueryCounts{Asked: q.asked.Load(), Answered: q.answered.Load(), Unanswered: q.expired.Load(), Open: uint64(q.len())}
	}
	if d := m.delay.Load(); d > 0 {
		seconds := rounded(time.Duration(d).Seconds())
		v.LabelDelay = &seconds
	}
	if sets := m.aim.Coverage(); sets.N > 0 {
		v.PublishedSets = &sets
	}
	if status.Recovering {
		behind := int(status.Behind)
		v.Recovery = &behind
	}
	if m.Fleet.Follows() { // its status is that of a model without labels
		v.Classes = m.Model.Snapshot().Classes()
	}
	if len(s.Classes) <= maxConfusion {
		v.Confusion = s.Matrix
	}
	r.retain(m.metricsTopic, r.encode(v))
}

// publish publishes a payload.
func (r *reporter) publish(topic string, v any) {
	r.outbox.Push(&mqtt.Publication{Topic: topic, Payload: r.encode(v), QoS: r.qos})
}

// retain publishes the message that the broker keeps of a topic; an empty payload removes it.
func (r *reporter) retain(topic string, payload []byte) {
	r.outbox.Push(&mqtt.Publication{Topic: topic, Payload: payload, QoS: r.qos, Retained: true})
}

// respond publishes the response to a request, <command>[/<model>].
func (r *reporter) respond(what string, v ResponsePayload) {
	r.publish(r.prefix+"response/"+what, v)
}

// encode returns a payload as JSON.
func (r *reporter) encode(v any) []byte {
	text, err := encodeJSON(v)
	if err != nil {
		r.log.Error("cannot encode a report", "error", err)
		return nil
	}
	return text
}

// shortTopic returns the topic of a message for the log, or its beginning: a topic may have 64 KiB.
func shortTopic(msg *mqtt.Message) string { return excerpt([]byte(msg.Topic)) }

// excerpt returns the beginning of a payload as valid text.
func excerpt(payload []byte) string {
	return strings.ToValidUTF8(string(payload[:min(len(payload), excerptBytes)]), "\uFFFD")
}

// heapBytes returns the size of the live heap.
func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
