package codec

import (
	"errors"
	"strings"
	"testing"
)

// Labels that need no id may have one that is the device's.
func TestLabelsIgnoreIDs(t *testing.T) {
	of := func(set func(*Labels)) Labels {
		l := DefaultLabels()
		l.Topics, l.Label = []string{"a"}, "state"
		set(&l)
		return l
	}
	for name, l := range map[string]Labels{
		"last":   of(func(l *Labels) { l.ID, l.Last = "", true }),
		"sticky": of(func(l *Labels) { l.Sticky = true }),
	} {
		if err := l.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		d := NewLabelDecoder(l)
		for _, id := range []string{`0`, `"x"`, `""`, `{"x":1}`, `"` + strings.Repeat("x", 200) + `"`} {
			payload := `{"id":` + id + `,"state":"go"}`
			got, err := d.Decode([]byte(payload))
			if err != nil || len(got) != 1 || got[0].ID != LastID || got[0].Label != "go" {
				t.Errorf("%s: %s: %+v, %v", name, payload, got, err)
			}
		}
	}
	if err := of(func(l *Labels) { l.ID = "" }).Validate(); err == nil || !strings.Contains(err.Error(), `id "": want a path; or last: true`) {
		t.Errorf("without an id: %v", err)
	}
	d := NewLabelDecoder(of(func(l *Labels) { l.Last = true }))
	if got, err := d.Decode([]byte(`{"id":"x","state":"go"}`)); err != nil || got[0].ID != "x" {
		t.Errorf("last with ids: %+v, %v", got, err)
	}
}

// The refusal of an array does not ask for one.
func TestLabelInArray(t *testing.T) {
	l := DefaultLabels()
	l.Last = true
	if _, err := NewLabelDecoder(l).Decode([]byte(`["w"]`)); err == nil || !strings.Contains(err.Error(), "malformed: want an object, not an array") {
		t.Error(err)
	}
}

// Words by which systems tell that a state is not known are no classes, unless the map has them.
func TestBareLabelsWithoutState(t *testing.T) {
	l := DefaultLabels()
	l.Last = true
	d := NewLabelDecoder(l)
	l.Map = map[string]string{"none": "empty", "ON": "on"}
	mapped := NewLabelDecoder(l)
	for _, word := range []string{"unavailable", "Unknown", "none", "null", `"none"`, " unknown\n"} {
		_, err := d.Decode([]byte(word))
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reason != BadLabel || !strings.Contains(err.Error(), "list it in map") {
			t.Errorf("%q: %v", word, err)
		}
	}
	if got, err := mapped.Decode([]byte("none")); err != nil || got[0].Label != "empty" {
		t.Errorf("in the map: %+v, %v", got, err)
	}
	if got, err := d.Decode([]byte(`{"id":"x","label":"unknown"}`)); err != nil || got[0].Label != "unknown" {
		t.Errorf("in an object: %+v, %v", got, err)
	}
}
