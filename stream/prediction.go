package stream

import (
	"math"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/tidwall/gjson"
)

// Prediction is the answer to one sample.
type Prediction struct {
	Node, Model string
	Stream      string
	Device      string   // captured levels of the topic, with / between them; "" for none
	ID          string   // "" if the sample has none
	Seq         uint64   // 1, 2, 3, … for each model since the node started, without gaps
	Version     uint64   // samples that the model had learnt
	Classes     []string // read only
	Probs       []float64
	Class       int     // of the largest probability; −1 while no class is known
	Entropy     float64 // of Probs, nats
	Novelty     float64 // fraction of the prior variance that is left at the sample
	Set         []int   // classes of the prediction set, the most probable first; may be empty
	Coverage    float64 // fraction of sets that should hold the label; 0: there are no sets
	Abstain     bool    // the configured rule says that the prediction should not be relied on
	Label       string  // that came with the sample
	Learned     bool    // the label is taught, now or already
	Latency     time.Duration

	rawID, rawTime string
	arrived        time.Time
}

// judge fills in what follows from Probs.
func (p *Prediction) judge() {
	p.Class, p.Entropy = -1, 0
	for i, v := range p.Probs {
		if p.Class < 0 || v > p.Probs[p.Class] {
			p.Class = i
		}
		if v > 0 {
			p.Entropy -= v * math.Log(v)
		}
	}
}

// AppendJSON appends the prediction as it is published.
func (p *Prediction) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"v":1,"id":`...)
	switch {
	case p.rawID != "":
		dst = append(dst, p.rawID...)
	case p.ID != "":
		dst = gjson.AppendJSONString(dst, p.ID)
	default:
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"ts":`...)
	if p.rawTime != "" {
		dst = append(dst, p.rawTime...)
	} else {
		dst = appendTime(dst, p.arrived)
	}
	dst = append(dst, `,"node":`...)
	dst = gjson.AppendJSONString(dst, p.Node)
	dst = append(dst, `,"model":`...)
	dst = gjson.AppendJSONString(dst, p.Model)
	if p.Device != "" {
		dst = append(dst, `,"device":`...)
		dst = gjson.AppendJSONString(dst, p.Device)
	}
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, p.Seq, 10)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendUint(dst, p.Version, 10)
	dst = append(dst, `,"class":`...)
	if p.Class >= 0 {
		dst = gjson.AppendJSONString(dst, p.Classes[p.Class])
		dst = append(dst, `,"confidence":`...)
		dst = appendRounded(dst, p.Probs[p.Class])
	} else {
		dst = append(dst, `null,"confidence":null`...)
	}
	dst = append(dst, `,"probs":{`...)
	for i, v := range p.Probs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = gjson.AppendJSONString(dst, p.Classes[i])
		dst = append(dst, ':')
		dst = appendRounded(dst, v)
	}
	dst = append(dst, `},"entropy":`...)
	dst = appendRounded(dst, p.Entropy)
	dst = append(dst, `,"novelty":`...)
	dst = appendRounded(dst, p.Novelty)
	if p.Coverage > 0 {
		dst = append(dst, `,"set":[`...)
		for i, k := range p.Set {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = gjson.AppendJSONString(dst, p.Classes[k])
		}
		dst = append(dst, `],"coverage":`...)
		dst = appendRounded(dst, p.Coverage)
	}
	dst = append(dst, `,"abstain":`...)
	dst = strconv.AppendBool(dst, p.Abstain)
	dst = append(dst, `,"learned":`...)
	dst = strconv.AppendBool(dst, p.Learned)
	dst = append(dst, `,"latency_us":`...)
	dst = strconv.AppendInt(dst, p.Latency.Microseconds(), 10)
	return append(dst, '}')
}

// cborPrediction is a prediction as it is published in CBOR: what the JSON
// says, key by key.
type cborPrediction struct {
	V          int                `cbor:"v"`
	ID         any                `cbor:"id"`
	Time       any                `cbor:"ts"`
	Node       string             `cbor:"node"`
	Model      string             `cbor:"model"`
	Device     string             `cbor:"device,omitempty"`
	Seq        uint64             `cbor:"seq"`
	Version    uint64             `cbor:"version"`
	Class      *string            `cbor:"class"`
	Confidence *float64           `cbor:"confidence"`
	Probs      map[string]float64 `cbor:"probs"`
	Entropy    float64            `cbor:"entropy"`
	Novelty    float64            `cbor:"novelty"`
	Set        *[]string          `cbor:"set,omitempty"`
	Coverage   float64            `cbor:"coverage,omitempty"`
	Abstain    bool               `cbor:"abstain"`
	Learned    bool               `cbor:"learned"`
	Latency    int64              `cbor:"latency_us"`
}

// marshalCBOR returns the prediction in CBOR.
func (p *Prediction) marshalCBOR(mode cbor.EncMode) ([]byte, error) {
	c := cborPrediction{
		V: 1, ID: scalarOf(p.rawID), Time: scalarOf(p.rawTime), Node: p.Node, Model: p.Model, Device: p.Device,
		Seq: p.Seq, Version: p.Version, Probs: make(map[string]float64, len(p.Probs)),
		Entropy: rounded(p.Entropy), Novelty: rounded(p.Novelty), Coverage: rounded(p.Coverage), Abstain: p.Abstain, Learned: p.Learned, Latency: p.Latency.Microseconds(),
	}
	if c.ID == nil && p.ID != "" {
		c.ID = p.ID
	}
	if c.Time == nil {
		c.Time = stamp(p.arrived)
	}
	if p.Class >= 0 {
		confidence := rounded(p.Probs[p.Class])
		c.Class, c.Confidence = &p.Classes[p.Class], &confidence
	}
	for i, v := range p.Probs {
		c.Probs[p.Classes[i]] = rounded(v)
	}
	if p.Coverage > 0 {
		set := make([]string, len(p.Set))
		for i, k := range p.Set {
			set[i] = p.Classes[k]
		}
		c.Set = &set
	}
	return mode.Marshal(c)
}

// scalarOf returns what a JSON text or number says, whole numbers as such; nil
// for nothing.
func scalarOf(raw string) any {
	v := gjson.Parse(raw)
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.Number:
		if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
			return n
		}
		return v.Num
	}
	return nil
}

// rounded returns v with at most four decimals.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// appendRounded appends v with at most four decimals.
func appendRounded(dst []byte, v float64) []byte {
	return strconv.AppendFloat(dst, rounded(v), 'f', -1, 64)
}

// appendTime appends a time as a JSON string, UTC, to the millisecond.
func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, `"2006-01-02T15:04:05.000Z"`)
}
