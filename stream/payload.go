package stream

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/fxamacker/cbor/v2"

	"edge/online/active"
	"edge/online/score"
	"edge/stream/codec"
	"edge/stream/field"
)

// This file is the schema of all that a node publishes, except the discovery
// messages of Home Assistant (homeassistant.go). V is the version of a payload's
// schema, 1. The members of an object are published in the order of their names,
// those of a prediction in the order of its fields.

// Timestamp is a time in a payload: UTC, to the millisecond.
type Timestamp struct{ time.Time }

// MarshalJSON writes RFC 3339 with three decimals.
func (t Timestamp) MarshalJSON() ([]byte, error) { return appendTime(nil, t.Time), nil }

// InfoPayload is the payload of <base>/<node>/info, retained.
type InfoPayload struct {
	Arch    string      `json:"arch"`
	Brief   int64       `json:"brief_connections"` // in a row, before the present one, that were lost within a minute
	Commit  string      `json:"commit"`
	Config  string      `json:"config"`  // identifies the configuration
	Control bool        `json:"control"` // requests are carried out
	Go      string      `json:"go"`
	Limits  Limits      `json:"limits"`
	Models  []ModelInfo `json:"models"`
	Node    string      `json:"node"`
	Started Timestamp   `json:"started"`
	V       int         `json:"v"`
	Version string      `json:"version"` // of the program
}

// ModelInfo is one model in an InfoPayload.
type ModelInfo struct {
	Name     string   `json:"name"`
	Streams  []string `json:"streams"`
	Features []string `json:"features"`
	Classes  []string `json:"classes"`
}

// Limits are the bounds of a node.
type Limits struct {
	InflightWindow int            `json:"inflight_window"`
	LossWindow     float64        `json:"loss_window_seconds"`
	MaxPayload     map[string]int `json:"max_payload"` // bytes, by stream
	OutboxBytes    field.ByteSize `json:"outbox_bytes"`
	OutboxMessages int            `json:"outbox_messages"`
	RingBytes      field.ByteSize `json:"ring_bytes"`
	RingMessages   int            `json:"ring_messages"`
}

// HealthPayload is the payload of <base>/<node>/health, published once a minute.
type HealthPayload struct {
	V           int         `json:"v"`
	Time        Timestamp   `json:"ts"`
	Node        string      `json:"node"`
	Status      string      `json:"status"`                 // ok or degraded
	CommitError string      `json:"commit_error,omitempty"` // of the journal, if it degrades the node
	Refused     []string    `json:"refused,omitempty"`      // subscriptions, if they degrade the node
	Recovering  []string    `json:"recovering,omitempty"`   // models that learn the journal of the run before
	Uptime      int64       `json:"uptime_s"`
	Queues      QueueLength `json:"queues"`
	HealthCounts
	MessageAge *float64 `json:"last_message_age_s,omitempty"` // nil before the first message
	HeapBytes  uint64   `json:"heap_bytes"`

	Program map[string]any `json:"-"` // further members, from Deps.Health
}

// QueueLength is the number of messages in each queue of a node.
type QueueLength struct {
	Commit int `json:"commit"`
	In     int `json:"in"`
	Out    int `json:"out"`
}

// HealthCounts are the counters of a HealthPayload, since the start.
type HealthCounts struct {
	Unacked        int64                   `json:"unacked"`
	Unconfirmed    int                     `json:"unconfirmed"`
	Received       uint64                  `json:"received"`
	Predictions    uint64                  `json:"predictions"`
	Learned        uint64                  `json:"learned"`
	Redelivered    uint64                  `json:"redelivered"`
	IDReused       uint64                  `json:"id_reused"`
	Rejected       map[codec.Reason]uint64 `json:"rejected"`
	Dropped        DropCounts              `json:"dropped"`
	Observed       uint64                  `json:"observed"`
	Reconnects     uint64                  `json:"reconnects"`
	ProtocolErrors uint64                  `json:"protocol_errors"`
	CommitFailures uint64                  `json:"commit_failures"`
	Signals        map[string]*SignalStats `json:"signals,omitempty"` // of the streams with signals
}

// DropCounts are the LossStats in a HealthPayload.
type DropCounts struct {
	Frozen      uint64 `json:"frozen"`
	In          uint64 `json:"in"`
	Lessons     uint64 `json:"lessons"`
	Observed    uint64 `json:"observed"`
	Out         uint64 `json:"out"`
	Pending     uint64 `json:"pending"`
	Unconfirmed uint64 `json:"unconfirmed"`
	Values      uint64 `json:"values"`
}

// MarshalJSON writes the members of Program among the others. A member of Program
// replaces another one of the same name.
func (h HealthPayload) MarshalJSON() ([]byte, error) {
	type plain HealthPayload
	return sortedJSON(plain(h), h.Program)
}

// sortedJSON returns v, a struct with embedded fields, as an object with sorted members,
// including more.
func sortedJSON(v any, more map[string]any) ([]byte, error) {
	text, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	for key, value := range more {
		if members[key], err = encodeJSON(value); err != nil {
			return nil, err
		}
	}
	return encodeJSON(members)
}

// encodeJSON returns v as JSON, without escapes for <, > and &.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// EventPayload is the payload of <base>/<node>/event.
type EventPayload struct {
	Detail string    `json:"detail,omitempty"`
	Event  string    `json:"event"`
	Model  string    `json:"model,omitempty"` // "" for an event of the node
	Node   string    `json:"node"`
	Time   Timestamp `json:"ts"`
	V      int       `json:"v"`
}

// RejectPayload is the payload of <base>/<node>/<model>/reject.
type RejectPayload struct {
	Bytes   *int         `json:"bytes,omitempty"` // size of the payload; nil if it was cut
	Error   string       `json:"error"`
	Node    string       `json:"node"`
	Payload string       `json:"payload"` // beginning of the payload, as valid text
	Reason  codec.Reason `json:"reason"`
	Stream  string       `json:"stream"`
	Topic   string       `json:"topic"`
	Time    Timestamp    `json:"ts"`
	V       int          `json:"v"`
}

// QueryPayload is the payload of <base>/<node>/<model>/query.
type QueryPayload struct {
	Class      *string             `json:"class"` // most probable class; nil while no class is known
	Confidence *float64            `json:"confidence"`
	Device     string              `json:"device,omitempty"`
	Expires    Timestamp           `json:"expires"`
	Features   map[string]*float64 `json:"features"` // nil for a missing one
	ID         any                 `json:"id"`       // of the sample: text or number, as received
	Model      string              `json:"model"`
	Node       string              `json:"node"`
	Reason     active.Strategy     `json:"reason"`
	Score      float64             `json:"score"`
	Time       Timestamp           `json:"ts"`
	V          int                 `json:"v"`
}

// ResponsePayload is the payload of <base>/<node>/response/#.
type ResponsePayload struct {
	Data        map[string]any  `json:"data,omitzero"`
	Error       string          `json:"error,omitempty"`
	Status      string          `json:"status"`                // ok or error
	Transaction json.RawMessage `json:"transaction,omitempty"` // as received in the request
}

// MetricsPayload is the payload of <base>/<node>/<model>/metrics, retained.
type MetricsPayload struct {
	V       int       `json:"v"`
	Time    Timestamp `json:"ts"`
	Node    string    `json:"node"`
	Model   string    `json:"model"`
	Version uint64    `json:"version"` // samples that the model has learnt

	Scores
	Window    Scores     `json:"window"` // of the latest samples
	Classes   []string   `json:"classes"`
	Confusion [][]uint64 `json:"confusion,omitzero"` // [label][predicted]; nil for more than 64 classes

	Drift    string       `json:"drift"` // none, warning or drift
	Drifts   uint64       `json:"drifts"`
	Pending  int64        `json:"pending"` // samples that wait for a label
	WarmedUp bool         `json:"warmed_up"`
	Recovery *int         `json:"recovery,omitempty"` // records of the run before that are yet to be learnt; nil: none
	Learning bool         `json:"learning"`           // not switched off
	Queries  *QueryCounts `json:"queries,omitempty"`  // nil if no labels are requested
	LabelCounts
	Missing       uint64          `json:"missing"`                  // missing features of samples
	Clipped       uint64          `json:"clipped"`                  // features that were too far from their mean
	PublishedSets *score.Coverage `json:"published_sets,omitempty"` // nil before the first set whose label is known
}

// MarshalJSON writes the members in the order of their names.
func (m MetricsPayload) MarshalJSON() ([]byte, error) {
	type plain MetricsPayload
	return sortedJSON(plain(m), nil)
}

// LabelCounts are the counters of labels in a MetricsPayload.
type LabelCounts struct {
	Frozen     uint64   `json:"frozen"` // labels that came while learning was switched off
	Corrected  uint64   `json:"corrected"`
	LabelDelay *float64 `json:"label_delay_p50_s"` // median; nil: no label came late
}

// QueryCounts are the counters of queries in a MetricsPayload.
type QueryCounts struct {
	Answered   uint64 `json:"answered"`
	Asked      uint64 `json:"asked"`
	Open       uint64 `json:"open"`
	Unanswered uint64 `json:"unanswered"`
}

// Scores are the published scores of a model: null if they are undefined, as before the
// first sample.
type Scores struct {
	Abstention       *score.Abstentions    `json:"abstention,omitempty"`
	Accuracy         score.Real            `json:"accuracy"`
	BalancedAccuracy score.Real            `json:"balanced_accuracy"`
	Baselines        Baselines             `json:"baselines"`
	BeatsBaselines   *bool                 `json:"beats_baselines"`
	Brier            score.Real            `json:"brier"`
	Coverage         *score.Real           `json:"coverage,omitempty"` // of Sets
	ECE              score.Real            `json:"ece"`
	Error            score.Real            `json:"error"`
	Kappa            score.Real            `json:"kappa"`
	LogLoss          score.Real            `json:"log_loss"`
	MacroF1          score.Real            `json:"macro_f1"`
	N                uint64                `json:"n"` // samples judged
	PerClass         map[string]ClassScore `json:"per_class"`
	Sets             *score.Coverage       `json:"sets,omitempty"`
}

// Baselines are the scores of two rules on the same samples.
type Baselines struct {
	ClassPrior BaselineScore `json:"class_prior"`
	LastLabel  BaselineScore `json:"last_label"`
}

// BaselineScore is the score of a rule that ignores the features.
type BaselineScore struct {
	Error   score.Real `json:"error"`
	LogLoss score.Real `json:"log_loss"`
	N       uint64     `json:"n"`
}

// ClassScore is the score of one class.
type ClassScore struct {
	N          uint64     `json:"n"`
	Precision  score.Real `json:"precision"`
	Prevalence score.Real `json:"prevalence"`
	Recall     score.Real `json:"recall"`
}

// DescribeScores returns the published form of scores.
func DescribeScores(f *score.Figures) Scores {
	baseline := func(b *score.Baseline) BaselineScore {
		return BaselineScore{N: b.N, Error: score.Judged(b.N, b.Error), LogLoss: score.Judged(b.N, b.NLL)}
	}
	s := Scores{
		N: f.N, Error: score.Judged(f.N, f.Error), Accuracy: score.Judged(f.N, 1-f.Error), BalancedAccuracy: score.Judged(f.N, float64(f.Balanced)), Kappa: score.Judged(f.N, float64(f.Kappa)),
		MacroF1: score.Judged(f.N, f.MacroF1), LogLoss: score.Judged(f.N, f.NLL), Brier: score.Judged(f.N, f.Brier), ECE: score.Judged(f.N, f.ECE),
		Abstention: f.Abstained, Sets: f.Sets, PerClass: make(map[string]ClassScore, len(f.PerClass)),
	}
	s.Baselines.ClassPrior, s.Baselines.LastLabel = baseline(&f.Prior), baseline(&f.Last)
	if beats, known := f.Beats(); known {
		s.BeatsBaselines = &beats
	}
	if c := f.Sets; c != nil {
		s.Coverage = &c.Covered
	}
	for _, c := range f.PerClass {
		s.PerClass[c.Class] = ClassScore{N: c.N, Prevalence: c.Prevalence, Precision: c.Precision, Recall: c.Recall}
	}
	return s
}

// PredictionPayload is a published prediction, in JSON or CBOR: the payload of
// <base>/<node>/<model>/prediction[/<device>] and, retained, of …/latest.
type PredictionPayload struct {
	V          int                `json:"v"`
	ID         any                `json:"id"` // text or number, as received; nil for none
	Time       any                `json:"ts"` // text or number, as received; the time of arrival for none
	Node       string             `json:"node"`
	Model      string             `json:"model"`
	Device     string             `json:"device,omitempty"`
	Seq        uint64             `json:"seq"`
	Version    uint64             `json:"version"`
	Class      *string            `json:"class"` // nil while no class is known
	Confidence *float64           `json:"confidence"`
	Probs      map[string]float64 `json:"probs"`
	Entropy    float64            `json:"entropy"`
	Novelty    float64            `json:"novelty"`
	Set        *[]string          `json:"set,omitempty"` // nil without prediction sets
	Coverage   float64            `json:"coverage,omitempty"`
	Fleet      *FleetAnswer       `json:"fleet,omitempty"` // nil without a fleet
	Caveats
	Learned bool  `json:"learned"`
	Latency int64 `json:"latency_us"`
}

// Caveats are the reasons to distrust a published prediction.
type Caveats struct {
	Abstain    bool   `json:"abstain"`
	Drift      string `json:"drift"`
	Recovering bool   `json:"recovering,omitempty"` // labels of the run before are not learnt yet
}

// FleetAnswer is the answer of a fleet's members by themselves.
type FleetAnswer struct {
	Class      string  `json:"class"`
	Confidence float64 `json:"confidence"`
	Members    int     `json:"members"`
}

// ReadPrediction reads a published prediction, JSON or CBOR. Absent members are zero.
func ReadPrediction(payload []byte) (p *PredictionPayload, err error) {
	p = &PredictionPayload{}
	if bytes.HasPrefix(payload, []byte("{")) {
		d := json.NewDecoder(bytes.NewReader(payload))
		d.UseNumber() // keeps a number as received
		err = d.Decode(p)
	} else {
		err = cbor.Unmarshal(payload, p)
	}
	return p, err
}
