package codec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
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
			field.Check(l.Teach.Every <= 0, "teach.every", l.Teach.Every, needs),
			field.Check(len(l.Ignore) == 0, "ignore", fmt.Sprintf("%.40q", l.Ignore), needs))
	}
	known := NewLabelMap(l.Map)
	for _, word := range l.Ignore {
		_, both := known.class(word)
		errs = append(errs,
			field.Check(len(word) <= online.MaxLabel, "ignore", fmt.Sprintf("%.40q", word), fmt.Sprintf("words of at most %d bytes", online.MaxLabel)),
			field.Check(known == nil || !both, "ignore", fmt.Sprintf("%.40q", word), "words that are in map neither as labels nor as classes"))
	}
	return field.Join(errs...)
}

// ignoredWords returns the words of a state that say nothing, nil for none. A number stands for all
// its spellings.
func ignoredWords(words []string) LabelMap {
	of := make(map[string]string, len(words))
	for _, word := range words {
		of[word] = ""
	}
	return NewLabelMap(of)
}

// ignores reports whether a text of a state says nothing.
func (s *schema) ignores(text []byte) bool {
	if s.ignored == nil {
		return false
	}
	_, ignored := s.ignored.class(strings.Trim(string(text), `"`))
	return ignored
}

// State returns the label in the payload of a state, "" where the state is not known, and the device that
// the payload names. found is false for a payload without a state, and for a word that is ignored. A word of the map is a
// label in any case. Another word is refused, and its state is not known.
func (d *Decoder) State(payload []byte) (label, device string, found bool, err error) {
	if len(payload) > d.maxPayload {
		return "", "", false, Refuse(TooLarge, "more than %s", field.ByteSize(d.maxPayload))
	}
	payload = bytes.TrimSpace(plainText(payload))
	text, found := d.stateText(payload)
	if d.ignores(text) {
		return "", "", false, nil
	}
	device, refused := jsonCodec{d.schema}.deviceOf(payload)
	if refused != nil {
		return "", "", false, refused
	}
	if found && d.isNoState(text) {
		return "", device, true, nil
	}
	readings, err := d.Decode(payload)
	if r := (*Refusal)(nil); errors.As(err, &r) {
		if found = found && r.Reason == BadLabel; found {
			err = Refuse(BadLabel, "%w; this ends the state before, and rows have no label until a known one comes: list it in map, with \"\" as its class where that state has no label", r.Err)
		}
		return "", device, found, err
	}
	return readings[len(readings)-1].Label, device, true, nil
}

// stateText returns the text of a state: that at the path of the label, or the payload. An object
// without the label has no state, and no text.
func (d *Decoder) stateText(payload []byte) (text []byte, found bool) {
	if len(payload) == 0 || payload[0] != '{' {
		return payload, true
	}
	if CheckJSON(payload) == nil {
		v := at(gjson.ParseBytes(payload), d.label)
		return []byte(v.String()), v.Exists() // "" for null
	}
	return payload, false
}

// isNoState reports whether a text stands for a state that is not known: in any case one of the usual
// words, unless the map has it, or one that is no label by the map.
func (s *schema) isNoState(text []byte) bool {
	if name, known := s.labels.class(strings.Trim(string(text), `"`)); known && name == "" {
		return true
	}
	text = bytes.TrimSpace(text[:min(len(text), 64)]) // longer than any of unknownWords
	word := strings.ToLower(strings.Trim(string(text), `"`))
	_, mapped := s.labels[word]
	return !mapped && isUnknownWord(word)
}
