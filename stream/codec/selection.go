package codec

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/signal"
)

// Selection names the samples of a label otherwise than by one id. One of Seq, IDs and
// From is set.
type Selection struct {
	Seq uint64   // number of a prediction of this run
	IDs []string // of samples

	// From and To are times as in the payload: of every sample whose window lies between
	// them, of one Device or of all. To "": until now.
	From, To string
	Device   string
}

// selection returns the selection in the payload of a label, nil without one: a payload
// with an id has none, and with last: true neither has one that only looks like it.
func (c jsonCodec) selection(v gjson.Result) (*Selection, *Refusal) {
	if !v.IsObject() || c.id != "" && at(v, c.id).Type != gjson.Null {
		return nil, nil
	}
	seq, ids, from, to := v.Get("seq"), v.Get("ids"), v.Get("from"), v.Get("to")
	s := &Selection{}
	var err *Refusal
	switch {
	case ids.IsArray():
		err = c.selectIDs(s, ids)
	case seq.Type == gjson.Number && seq.Uint() > 0 && seq.Num == float64(seq.Uint()):
		s.Seq = seq.Uint()
	case isTime(from):
		s.From = strings.Clone(from.Raw)
		err = s.selectUntil(to, v.Get("device"))
	case !c.last && (from.Exists() || seq.Exists() || ids.Exists()):
		return nil, Refuse(BadID, "want seq, a whole number above 0; or ids, a list; or from, and to, RFC 3339 or Unix times")
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// selectIDs sets the ids of a selection.
func (c jsonCodec) selectIDs(s *Selection, ids gjson.Result) *Refusal {
	for _, id := range ids.All() {
		var r Reading
		if id.Type != gjson.String && id.Type != gjson.Number || c.setID(&r, id.String()) != nil {
			return Refuse(BadID, "ids has %s: want texts or numbers of 1 to %d bytes", kind(id), maxID)
		}
		if len(s.IDs) == c.maxBatch {
			return Refuse(TooLarge, "more than %d ids", c.maxBatch)
		}
		s.IDs = append(s.IDs, r.ID)
	}
	if len(s.IDs) == 0 {
		return Refuse(Empty, "ids without an id")
	}
	return nil
}

// selectUntil sets the end and the device of a range of times.
func (s *Selection) selectUntil(to, device gjson.Result) *Refusal {
	if to.Type != gjson.Null {
		if !isTime(to) {
			return Refuse(BadID, "to is %.40s: want a time, or none for now", to.Raw)
		}
		s.To = strings.Clone(to.Raw)
	}
	if device.Type != gjson.Null {
		s.Device = strings.Clone(device.String())
		if device.Type != gjson.String && device.Type != gjson.Number || len(s.Device) > maxID {
			return Refuse(BadID, "device is %.40s: want a text or a number of at most %d bytes, or none for all", device.Raw, maxID)
		}
	}
	return nil
}

// isTime reports whether a value is a time.
func isTime(v gjson.Result) bool {
	if v.Type != gjson.String && v.Type != gjson.Number || len(v.Raw) > maxTime {
		return false
	}
	_, ok := signal.ParseTime(v.Raw, time.UTC)
	return ok
}

// selected returns the reading of a label with a selection; false without one.
func (c labelCodec) selected(payload []byte) (r Reading, ok bool, err *Refusal) {
	if err := CheckJSON(payload); err != nil {
		return r, false, nil // which the ordinary way refuses
	}
	v := gjson.ParseBytes(payload)
	s, err := c.json.selection(v)
	if s == nil {
		return r, false, err
	}
	if err := c.json.identity(&r, v); err != nil {
		return r, false, err
	}
	if r.Label == "" {
		return r, false, c.json.noLabel(v)
	}
	r.Selection = s
	r.Device, err = c.json.deviceOf(payload)
	return r, err == nil, err
}
