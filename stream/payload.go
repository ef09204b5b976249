package stream

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"edge/online/active"
	onlinescore "edge/online/score"
	"edge/stream/codec"
)

// This file is the schema of all that a node publishes, except the discovery
// messages of Home Assistant (homeassistant.go). V is the version of a payload's
// schema, 1. The members of an object are published in the order of their names,
// those of a prediction in the order of its fields.

// Timestamp is a time as payloads have it: UTC, to the millisecond.
type Timestamp struct{ time.Time }

// MarshalJSON writes RFC 3339 with three decimals.
func (t Timestamp) MarshalJSON() ([]byte, error) { return appendTime(nil, t.Time), nil }

// InfoPayload is the payload of <base>/<node>/info, retained.
type InfoPayload struct {
	Arch    string      `json:"arch"`
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
	OutboxBytes    codec.ByteSize `json:"outbox_bytes"`
	OutboxMessages int            `json:"outbox_messages"`
	RingBytes      codec.ByteSize `json:"ring_bytes"`
	RingMessages   int            `json:"ring_messages"`
}

// HealthPayload is the payload of <base>/<node>/health, published once a minute.
type HealthPayload struct {
	V           int         `json:"v"`
	Time        Timestamp   `json:"ts"`
	Node        string      `json:"node"`
	Status      string      `json:"status"`                 // ok or degraded
	CommitError string      `json:"commit_error,omitempty"` // of the journal, where that degrades the node
	Refused     []string    `json:"refused,omitempty"`      // subscriptions, where that degrades the node
	Uptime      int64       `json:"uptime_s"`
	Queues      QueueLength `json:"queues"`
	HealthCounts
	MessageAge *float64 `json:"last_message_age_s,omitempty"` // nil before the first message
	HeapBytes  uint64   `json:"heap_bytes"`
	RSSBytes   uint64   `json:"rss_bytes,omitempty"` // 0 where the system does not report it

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
}

// DropCounts are the LossStats that a HealthPayload has.
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

// MarshalJSON writes the members of Program among the others; of two with one
// name, that of Program.
func (h HealthPayload) MarshalJSON() ([]byte, error) {
	type plain HealthPayload
	return sortedJSON(plain(h), h.Program)
}

// sortedJSON returns v, whose type has embedded fields, as an object with its
// members in order and more among them.
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

// encodeJSON returns v as JSON, with <, > and & as they are.
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
	Model  string    `json:"model,omitempty"` // "" if the event is not about one model
	Node   string    `json:"node"`
	Time   Timestamp `json:"ts"`
	V      int       `json:"v"`
}

// RejectPayload is the payload of <base>/<node>/<model>/reject.
type RejectPayload struct {
	Bytes   *int         `json:"bytes,omitempty"` // of the payload; nil where it was cut
	Error   string       `json:"error"`
	Node    string       `json:"node"`
	Payload string       `json:"payload"` // its beginning, as valid text
	Reason  codec.Reason `json:"reason"`
	Stream  string       `json:"stream"`
	Topic   string       `json:"topic"`
	Time    Timestamp    `json:"ts"`
	V       int          `json:"v"`
}

// QueryPayload is the payload of <base>/<node>/<model>/query.
type QueryPayload struct {
	Class      *string             `json:"class"` // the most probable one; nil while no class is known
	Confidence *float64            `json:"confidence"`
	Device     string              `json:"device,omitempty"`
	Expires    Timestamp           `json:"expires"`
	Features   map[string]*float64 `json:"features"` // nil where one is missing
	ID         any                 `json:"id"`       // of the sample: text or number, as it came
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
	Transaction json.RawMessage `json:"transaction,omitempty"` // as it came in the request
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
	Learning bool         `json:"learning"`          // not switched off
	Queries  *QueryCounts `json:"queries,omitempty"` // nil where no labels are asked for
	LabelCounts
	Missing       uint64                `json:"missing"`                  // features that samples lacked
	Clipped       uint64                `json:"clipped"`                  // features that were too far from their mean
	PublishedSets *onlinescore.Coverage `json:"published_sets,omitempty"` // nil before the first set whose label is known
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

// Scores are the scores of a model as they are published: null where they are not
// defined, as before the first sample.
type Scores struct {
	Abstention       *onlinescore.Abstentions `json:"abstention,omitempty"`
	Accuracy         onlinescore.Real         `json:"accuracy"`
	BalancedAccuracy onlinescore.Real         `json:"balanced_accuracy"`
	Baselines        Baselines                `json:"baselines"`
	BeatsBaselines   *bool                    `json:"beats_baselines"`
	Brier            onlinescore.Real         `json:"brier"`
	Coverage         *onlinescore.Real        `json:"coverage,omitempty"` // of Sets
	ECE              onlinescore.Real         `json:"ece"`
	Error            onlinescore.Real         `json:"error"`
	Kappa            onlinescore.Real         `json:"kappa"`
	LogLoss          onlinescore.Real         `json:"log_loss"`
	MacroF1          onlinescore.Real         `json:"macro_f1"`
	N                uint64                   `json:"n"` // samples judged
	PerClass         map[string]ClassScore    `json:"per_class"`
	Sets             *onlinescore.Coverage    `json:"sets,omitempty"`
}

// Baselines are the scores of two rules on the same samples.
type Baselines struct {
	ClassPrior BaselineScore `json:"class_prior"`
	LastLabel  BaselineScore `json:"last_label"`
}

// BaselineScore is the score of a rule that ignores the features.
type BaselineScore struct {
	Error   onlinescore.Real `json:"error"`
	LogLoss onlinescore.Real `json:"log_loss"`
	N       uint64           `json:"n"`
}

// ClassScore is the score of one class.
type ClassScore struct {
	N          uint64           `json:"n"`
	Precision  onlinescore.Real `json:"precision"`
	Prevalence onlinescore.Real `json:"prevalence"`
	Recall     onlinescore.Real `json:"recall"`
}

// DescribeScores returns scores as they are published.
func DescribeScores(f *onlinescore.Figures) Scores {
	score := func(n uint64, v float64) onlinescore.Real {
		if n == 0 {
			return onlinescore.Real(math.NaN())
		}
		return onlinescore.Real(v)
	}
	baseline := func(b *onlinescore.Baseline) BaselineScore {
		return BaselineScore{N: b.N, Error: score(b.N, b.Error), LogLoss: score(b.N, b.NLL)}
	}
	s := Scores{
		N: f.N, Error: score(f.N, f.Error), Accuracy: score(f.N, 1-f.Error), BalancedAccuracy: score(f.N, float64(f.Balanced)), Kappa: score(f.N, float64(f.Kappa)),
		MacroF1: score(f.N, f.MacroF1), LogLoss: score(f.N, f.NLL), Brier: score(f.N, f.Brier), ECE: score(f.N, f.ECE),
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

// Published is a prediction as it is published, for whoever reads it: the keys
// of its JSON, and of its CBOR.
type PredictionPayload struct {
	V          int                `json:"v"`
	ID         any                `json:"id"` // text or number, as it came; nil for none
	Time       any                `json:"ts"` // the same
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
	Set        *[]string          `json:"set,omitempty"` // nil: there are no sets
	Coverage   float64            `json:"coverage,omitempty"`
	Abstain    bool               `json:"abstain"`
	Drift      string             `json:"drift"`
	Learned    bool               `json:"learned"`
	Latency    int64              `json:"latency_us"`
}

// ReadPublished reads a published prediction, JSON or CBOR. What it does not have is zero.
func ReadPrediction(payload []byte) (p *PredictionPayload, err error) {
	p = &PredictionPayload{}
	if bytes.HasPrefix(payload, []byte("{")) {
		d := json.NewDecoder(bytes.NewReader(payload))
		d.UseNumber() // an id goes back as it came
		err = d.Decode(p)
	} else {
		err = unmarshalCBOR(payload, p)
	}
	return p, err
}
