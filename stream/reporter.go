package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

const (
	reportEvery  = time.Second // how often a reporter looks what is due
	healthEvery  = time.Minute
	rejectEvery  = time.Second // for each model and reason, after a burst
	rejectBurst  = 5
	logEvery     = time.Minute // for each reason
	excerptBytes = 256         // of a refused payload
	maxConfusion = 64          // classes up to which the confusion matrix is published
)

// Build is what a program knows about itself.
type Build struct {
	Version string
	Commit  string
}

// reporter publishes what is not a prediction: latest, metrics, rejects,
// events, info and health. Any goroutine may call it.
type reporter struct {
	node    string
	prefix  string // <base>/<node>/
	models  []*modelState
	outbox  *mqtt.Outbox
	qos     byte
	metrics Metrics
	build   Build
	limits  map[string]any // as info says them
	counts  *counters
	stats   func() Stats
	more    func() map[string]any // for health; may be nil
	heard   func(Event)           // may be nil
	log     *slog.Logger
	started time.Time
	logs    limits
	home    *homeAssistant

	settings atomic.Pointer[string] // that identify the configuration
}

// run publishes what is due until ctx ends.
func (r *reporter) run(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	health := time.NewTicker(healthEvery)
	defer health.Stop()
	type mark struct {
		at      time.Time
		samples uint64
		classes []string
	}
	marks := make([]mark, len(r.models))
	for i := range marks {
		marks[i] = mark{time.Now(), r.models[i].Model.Status().Scores.N, r.models[i].Model.Posterior().Classes()}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-health.C:
			r.health()
		case now := <-tick.C:
			changed := false
			latest := make([][]byte, len(r.models))
			for i, m := range r.models {
				latest[i] = m.latest.take() // before its class is announced, if that is new
				if c := m.Model.Posterior().Classes(); !slices.Equal(c, marks[i].classes) {
					marks[i].classes, changed = c, true
				}
			}
			if changed {
				r.info()
			}
			if changed || r.home.due(now) {
				r.announce()
			}
			for i, m := range r.models {
				r.latest(m, latest[i])
				n := m.Model.Status().Scores.N
				before := marks[i].samples
				sooner := r.metrics.Samples > 0 && n != before && (n-before >= r.metrics.Samples || n >= 2*before)
				if sooner || now.Sub(marks[i].at) >= r.metrics.Every {
					marks[i].at, marks[i].samples = now, n
					r.scores(m)
				}
			}
		}
	}
}

// hello publishes what every new connection begins with.
func (r *reporter) hello() {
	r.info()
	r.announce()
	r.final()
}

// final publishes what the retained topics should end with.
func (r *reporter) final() {
	for _, m := range r.models {
		r.latest(m, m.latest.take())
		r.scores(m)
	}
}

// refuse counts a refusal and, within limits, publishes and logs it.
func (r *reporter) refuse(from *source, models []*modelState, msg *mqtt.Message, why *codec.Refusal) {
	why.Topic = msg.Topic
	from.rejected[why.Reason].Add(1)
	r.counts.refused.Add(1)
	if l, ok := msg.Attached.(*ownLabel); ok {
		l.refused(why)
	}
	now := time.Now()
	if r.logs[why.Reason].allow(now) {
		r.log.Warn("message refused; more with this reason in the next minute are only counted", "topic", why.Topic, "stream", from.name, "reason", why.Reason, "error", why.Err)
		if p := (*online.Panic)(nil); errors.As(why, &p) {
			r.log.Error("a message made the program panic, which is an error of this program", "topic", why.Topic, "stack", string(p.Stack))
		}
	}
	var payload []byte
	for _, m := range models {
		if !m.rejects[why.Reason].allow(now) {
			r.counts.rejectsDropped.Add(1)
			continue
		}
		if payload == nil {
			reject := map[string]any{
				"v": 1, "ts": stamp(now), "node": r.node, "stream": from.name, "topic": why.Topic,
				"reason": why.Reason, "error": why.Err.Error(), "payload": excerpt(msg.Payload),
			}
			if why.Reason != codec.TooLarge { // such a payload was cut on its way in
				reject["bytes"] = len(msg.Payload)
			}
			payload = r.encode(reject)
		}
		r.outbox.Push(&mqtt.Publication{Topic: m.rejectTopic, Payload: payload, QoS: r.qos})
	}
}

// Event is something that a person may want to know, as it is published on the
// node's event topic.
type Event struct {
	Time   time.Time
	Model  string // "" if it is not about one model
	Kind   string
	Detail string
}

// event publishes something that a person may want to know; model may be "".
func (r *reporter) event(model, kind, detail string) {
	now := time.Now()
	if r.heard != nil {
		r.heard(Event{now, model, kind, detail})
	}
	e := map[string]any{"v": 1, "ts": stamp(now), "node": r.node, "event": kind}
	if model != "" {
		e["model"] = model
	}
	if detail != "" {
		e["detail"] = detail
	}
	r.outbox.Push(&mqtt.Publication{Topic: r.prefix + "event", Payload: r.encode(e), QoS: r.qos})
}

// latest publishes the newest prediction; nil: it is there already.
func (r *reporter) latest(m *modelState, payload []byte) {
	if payload != nil {
		r.outbox.Push(&mqtt.Publication{Topic: m.latestTopic, Payload: payload, QoS: r.qos, Retained: true})
	}
}

func (r *reporter) info() {
	type modelInfo struct {
		Name     string   `json:"name"`
		Streams  []string `json:"streams"`
		Features []string `json:"features"`
		Classes  []string `json:"classes"`
	}
	models := []modelInfo{}
	for _, m := range r.models {
		models = append(models, modelInfo{m.Name, m.Streams, m.Features, append([]string{}, m.Model.Posterior().Classes()...)})
	}
	r.outbox.Push(&mqtt.Publication{Topic: r.prefix + "info", QoS: r.qos, Retained: true, Payload: r.encode(map[string]any{
		"v": 1, "node": r.node, "version": r.build.Version, "commit": r.build.Commit,
		"go": runtime.Version(), "arch": runtime.GOOS + "/" + runtime.GOARCH,
		"started": stamp(r.started), "models": models, "limits": r.limits, "control": r.home.control, "config": *r.settings.Load(),
	})})
}

func (r *reporter) health() {
	s := r.stats()
	h := map[string]any{
		"v": 1, "ts": stamp(time.Now()), "node": r.node, "status": "ok", "uptime_s": int64(time.Since(r.started).Seconds()),
		"queues": map[string]int{"in": s.Ring, "commit": s.Commit, "out": s.Outbox}, "unacked": s.Unacked, "unconfirmed": s.Unconfirmed,
		"received": s.Received, "predictions": s.Predictions, "learned": s.Learned, "redelivered": s.Redelivered, "id_reused": s.IDReused,
		"rejected": s.Rejected,
		"dropped":  map[string]uint64{"in": s.RingDropped, "lessons": s.LessonsDropped, "out": s.OutboxDropped, "observed": s.ObservedDropped, "pending": s.PendingEvicted, "values": s.ValuesUnused, "unconfirmed": s.UnconfirmedDropped, "frozen": s.Frozen},
		"observed": s.Observed, "reconnects": s.Reconnects, "protocol_errors": s.ProtocolErrors, "commit_failures": s.CommitFailures, "heap_bytes": heapBytes(),
	}
	if s.Degraded {
		h["status"], h["commit_error"] = "degraded", s.CommitError
	}
	if len(s.Refused) > 0 {
		h["status"], h["refused"] = "degraded", s.Refused
	}
	if s.Received > 0 {
		h["last_message_age_s"] = math.Round(s.SinceMessage.Seconds()*10) / 10
	}
	if rss := residentBytes(); rss > 0 {
		h["rss_bytes"] = rss
	}
	if r.more != nil {
		maps.Copy(h, r.more())
	}
	r.outbox.Push(&mqtt.Publication{Topic: r.prefix + "health", Payload: r.encode(h), QoS: r.qos})
}

// scores publishes a model's prequential scores.
func (r *reporter) scores(m *modelState) {
	status := m.Model.Status()
	s := &status.Scores
	v := DescribeScores(&s.Figures)
	v["v"], v["ts"], v["node"], v["model"], v["version"] = 1, stamp(time.Now()), r.node, m.Name, status.Learned
	v["window"], v["classes"] = DescribeScores(&s.Window), s.Classes
	v["drift"], v["drifts"] = status.Drift.String(), status.Drifts
	v["pending"], v["warmed_up"] = m.pending.Load(), status.WarmedUp
	if q := &m.queries; m.asker != nil {
		v["queries"] = map[string]uint64{"asked": q.asked.Load(), "answered": q.answered.Load(), "unanswered": q.expired.Load(), "open": uint64(q.len())}
	}
	v["learning"], v["frozen"], v["corrected"] = m.learning.Load(), m.ignored.Load(), m.corrected.Load()
	v["missing"], v["clipped"], v["label_delay_p50_s"] = m.missing.Load(), m.clipped.Load(), nil
	if d := m.delay.Load(); d > 0 {
		v["label_delay_p50_s"] = rounded(time.Duration(d).Seconds())
	}
	if sets := m.aim.Coverage(); sets.N > 0 {
		v["published_sets"] = sets
	}
	if len(s.Classes) <= maxConfusion {
		v["confusion"] = s.Matrix // [label][predicted]
	}
	r.outbox.Push(&mqtt.Publication{Topic: m.metricsTopic, Payload: r.encode(v), QoS: r.qos, Retained: true})
}

// DescribeScores returns scores as they are published: null where they are not
// defined, as before the first sample.
func DescribeScores(f *online.Figures) map[string]any {
	score := func(n uint64, v float64) online.Real {
		if n == 0 {
			return online.Real(math.NaN())
		}
		return online.Real(v)
	}
	baseline := func(b *online.Baseline) map[string]any {
		return map[string]any{"n": b.N, "error": score(b.N, b.Error), "log_loss": score(b.N, b.NLL)}
	}
	v := map[string]any{
		"n": f.N, "error": score(f.N, f.Error), "accuracy": score(f.N, 1-f.Error), "balanced_accuracy": score(f.N, float64(f.Balanced)), "kappa": score(f.N, float64(f.Kappa)),
		"macro_f1": score(f.N, f.MacroF1), "log_loss": score(f.N, f.NLL), "brier": score(f.N, f.Brier), "ece": score(f.N, f.ECE),
		"baselines": map[string]any{"class_prior": baseline(&f.Prior), "last_label": baseline(&f.Last)}, "beats_baselines": nil,
	}
	if beats, known := f.Beats(); known {
		v["beats_baselines"] = beats
	}
	if a := f.Abstained; a != nil {
		v["abstention"] = a
	}
	if c := f.Sets; c != nil {
		v["sets"], v["coverage"] = c, c.Covered
	}
	perClass := make(map[string]any, len(f.PerClass))
	for _, c := range f.PerClass {
		perClass[c.Class] = map[string]any{"n": c.N, "prevalence": c.Prevalence, "precision": c.Precision, "recall": c.Recall}
	}
	v["per_class"] = perClass
	return v
}

// encode returns v as JSON. Whatever it is given can be encoded.
func (r *reporter) encode(v map[string]any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		r.log.Error("cannot encode a report", "error", err)
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// excerpt returns the beginning of a payload as valid text.
func excerpt(payload []byte) string {
	return strings.ToValidUTF8(string(payload[:min(len(payload), excerptBytes)]), "\uFFFD")
}

// heapBytes is the size of the live heap.
func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// residentBytes is the resident set as Linux reports it; 0 elsewhere.
func residentBytes() uint64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
