package stream

import (
	"math"
	"strconv"
	"time"

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
	dst = append(dst, `,"learned":`...)
	dst = strconv.AppendBool(dst, p.Learned)
	dst = append(dst, `,"latency_us":`...)
	dst = strconv.AppendInt(dst, p.Latency.Microseconds(), 10)
	return append(dst, '}')
}

// appendRounded appends v with at most four decimals.
func appendRounded(dst []byte, v float64) []byte {
	return strconv.AppendFloat(dst, math.Round(v*1e4)/1e4, 'f', -1, 64)
}

// appendTime appends a time as a JSON string, UTC, to the millisecond.
func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, `"2006-01-02T15:04:05.000Z"`)
}
