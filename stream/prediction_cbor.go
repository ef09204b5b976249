package stream

import (
	"fmt"
	"strconv"

	"github.com/fxamacker/cbor/v2"
	"github.com/tidwall/gjson"
)

// cborEncoder writes predictions in CBOR.
type cborEncoder struct{ mode cbor.EncMode }

func newCBOREncoder() (*cborEncoder, error) {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return nil, fmt.Errorf("cbor: %w", err)
	}
	return &cborEncoder{mode}, nil
}

// encode returns the prediction in CBOR.
func (e *cborEncoder) encode(p *Prediction) ([]byte, error) {
	c := PredictionPayload{
		V: 1, ID: scalarOf(p.raw.id), Time: scalarOf(p.raw.time), Node: p.Node, Model: p.Model, Device: p.Device,
		Seq: p.Seq, Version: p.Version, Probs: make(map[string]float64, len(p.Probs)),
		Entropy: rounded(p.Entropy), Novelty: rounded(p.Novelty), Coverage: rounded(p.Coverage),
		Caveats: Caveats{p.Abstain, p.Drift.String(), p.Recovering}, Learned: p.Learned, Latency: p.Latency.Microseconds(),
	}
	if c.ID == nil && p.ID != "" {
		c.ID = p.ID
	}
	if c.Time == nil {
		c.Time = stamp(p.raw.arrived)
	}
	if p.Class >= 0 {
		confidence := rounded(p.Probs[p.Class])
		c.Class, c.Confidence = &p.Classes[p.Class], &confidence
	}
	if f, ok := p.fleetAnswer(); ok {
		c.Fleet = &FleetAnswer{f.Class, rounded(f.Confidence), f.Members}
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
	return e.mode.Marshal(c)
}

// scalarOf returns the value of a JSON text or number, an int64 for a whole number; nil
// for an empty one.
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
