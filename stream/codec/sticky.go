package codec

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/field"
)

// Teach thins the samples that are learnt from labels that are a state.
type Teach struct {
	// Every is the shortest time between two samples of a device that are learnt. 0: all
	// are. Default 0.
	Every time.Duration `yaml:"every"`
}

// validateSticky checks the keys of labels that are a state.
func (l Labels) validateSticky() error {
	errs := []error{
		field.Check(l.MaxAge >= 0, "max_age", l.MaxAge, "0s (none) or more"),
		field.Check(l.Settle >= 0, "settle", l.Settle, "0s or more"),
		field.Check(l.Teach.Every >= 0, "teach.every", l.Teach.Every, "0s or more"),
		field.Check(!l.Sticky || !l.Last, "last", l.Last, "false beside sticky: the label of each row, or that of the newest sample"),
	}
	if !l.Sticky {
		const needs = "sticky: true beside it"
		errs = append(errs,
			field.Check(l.MaxAge <= 0, "max_age", l.MaxAge, needs),
			field.Check(l.Settle <= 0, "settle", l.Settle, needs),
			field.Check(l.Teach.Every <= 0, "teach.every", l.Teach.Every, needs))
	}
	return errors.Join(errs...)
}

// State returns the label that the payload of a state tells, "" where it tells that the
// state is not known. A word of the map is a label in any case.
func (d *Decoder) State(payload []byte) (label string, err error) {
	if len(payload) > d.maxPayload {
		return "", Refuse(TooLarge, "more than %s", ByteSize(d.maxPayload))
	}
	if d.isNoState(d.stateText(bytes.TrimSpace(payload))) {
		return "", nil
	}
	readings, err := d.Decode(payload)
	if err != nil {
		return "", err
	}
	return readings[len(readings)-1].Label, nil
}

// stateText returns the text of a state: that at the path of the label, or the payload.
func (d *Decoder) stateText(payload []byte) []byte {
	if len(payload) > 0 && payload[0] == '{' && CheckJSON(payload) == nil {
		root := gjson.ParseBytes(payload)
		if v := root.Get(d.label); v.Exists() && repeatedKey(root) == "" {
			return []byte(v.String()) // "" for null
		}
	}
	return payload
}

// isNoState reports whether a text, in any case, tells that a state is not known. A word of the
// map is a label.
func (s *schema) isNoState(text []byte) bool {
	text = bytes.TrimSpace(text[:min(len(text), 64)]) // longer than any of unknownWords
	word := strings.ToLower(strings.Trim(string(text), `"`))
	_, mapped := s.labels[word]
	return !mapped && isUnknownWord(word)
}
