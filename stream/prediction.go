package stream

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"edge/model"
	"edge/online/drift"
	"edge/stream/codec"
)

// Prediction is the prediction for one sample.
type Prediction struct {
	Node, Model string
	Device      string    // captured levels of the topic, joined by /; "" for none
	ID          string    // "" without an id
	Seq         uint64    // 1, 2, 3, … for each model since the start of the node, without gaps
	Version     uint64    // number of samples that the model had learnt
	X           []float64 // D raw features, in the model's order; NaN for a missing one
	Classes     []string  // read only
	Probs       []float64
	Class       int     // index of the largest probability; −1 while no class is known
	Entropy     float64 // of Probs, nats
	Novelty     float64 // fraction of the prior variance that remains at the sample
	PredictionSet
	Abstain bool // the abstention rule advises against relying on the prediction
	Condition
	Label   string // of the sample, if it came with it
	Learned bool   // the label is learnt, now or earlier
	Latency time.Duration

	raw rawReading
}

// Condition is the condition of a model.
type Condition struct {
	Drift      drift.Level // of the stream
	Recovering bool        // the model is yet to learn labels of the run before
}

// PredictionSet is a set of classes that holds the label with a given probability.
type PredictionSet struct {
	Set      []int   // indices of classes, the most probable first; may be empty
	Coverage float64 // intended fraction of sets that hold the label; 0: no prediction sets
}

// rawReading is the part of a message that its prediction repeats, or that it was made of,
// and the fleet's answer.
type rawReading struct {
	id, time string // valid JSON, as received; "" if absent
	arrived  time.Time
	course   Course
	fleet    model.Report // Members is 0 without a fleet
}

// fleetAnswer returns the answer of the model's fleet by itself; false without a fleet.
func (p *Prediction) fleetAnswer() (r model.Report, ok bool) {
	return p.raw.fleet, p.raw.fleet.Members > 0
}

// CopyTo makes to a copy of the prediction with slices of its own.
func (p *Prediction) CopyTo(to *Prediction) {
	x, probs, set := append(to.X[:0], p.X...), append(to.Probs[:0], p.Probs...), append(to.Set[:0], p.Set...)
	course := append(to.raw.course.Values[:0], p.raw.course.Values...)
	*to = *p
	to.X, to.Probs, to.Set, to.raw.course.Values = x, probs, set, course
}

// judge sets Class and Entropy from Probs.
func (p *Prediction) judge() {
	p.Class, p.Entropy = -1, model.Entropy(p.Probs)
	for i, v := range p.Probs {
		if p.Class < 0 || v > p.Probs[p.Class] {
			p.Class = i
		}
	}
}

// appendJSON appends the prediction in its published form.
func (p *Prediction) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"v":1,"id":`...)
	switch {
	case p.raw.id != "":
		dst = append(dst, p.raw.id...)
	case p.ID != "":
		dst = gjson.AppendJSONString(dst, p.ID)
	default:
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"ts":`...)
	if p.raw.time != "" {
		dst = append(dst, p.raw.time...)
	} else {
		dst = appendTime(dst, p.raw.arrived)
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
	if f, ok := p.fleetAnswer(); ok {
		dst = appendFleet(append(dst, `,"fleet":`...), f)
	}
	dst = append(dst, `,"abstain":`...)
	dst = strconv.AppendBool(dst, p.Abstain)
	dst = append(dst, `,"drift":"`...)
	dst = append(dst, p.Drift.String()...)
	dst = append(dst, '"')
	if p.Recovering {
		dst = append(dst, `,"recovering":true`...)
	}
	dst = append(dst, `,"learned":`...)
	dst = strconv.AppendBool(dst, p.Learned)
	dst = append(dst, `,"latency_us":`...)
	dst = strconv.AppendInt(dst, p.Latency.Microseconds(), 10)
	return append(dst, '}')
}

// appendFleet appends the answer of a fleet as FleetAnswer.
func appendFleet(dst []byte, f model.Report) []byte {
	dst = append(dst, `{"class":`...)
	dst = gjson.AppendJSONString(dst, f.Class)
	dst = append(dst, `,"confidence":`...)
	dst = appendRounded(dst, f.Confidence)
	dst = append(dst, `,"members":`...)
	return append(strconv.AppendInt(dst, int64(f.Members), 10), '}')
}

// rounded returns v with at most four decimals.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// appendRounded appends v with at most four decimals.
func appendRounded(dst []byte, v float64) []byte {
	return strconv.AppendFloat(dst, rounded(v), 'f', -1, 64)
}

// stampLayout is the layout of the times in payloads: UTC, to the millisecond.
const stampLayout = "2006-01-02T15:04:05.000Z"

// stamp returns a time as payloads have it.
func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// appendTime appends a time as payloads have it, as a JSON string.
func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, `"`+stampLayout+`"`)
}

// CheckOutput returns an error unless predictions can be published in a format.
func CheckOutput(format string) error {
	if format != codec.FormatJSON && format != codec.FormatCBOR {
		return fmt.Errorf("%s: want json or cbor", format)
	}
	return nil
}
