package codec

import (
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

// Half of a surrogate pair is no character: all such labels would be one class.
func TestLabelWithHalfOfAPair(t *testing.T) {
	l := DefaultLabels()
	l.Last = true
	d := NewLabelDecoder(l)
	for _, payload := range []string{`"\ud83d"`, `{"label":"a\ud83d"}`} {
		if _, err := d.Decode([]byte(payload)); refusalOf(err).Reason != BadLabel || !strings.Contains(err.Error(), `\ud83d", which has half of a surrogate pair`) {
			t.Errorf("%s: %v", payload, err)
		}
	}
	for payload, want := range map[string]string{`"\ud83d\ude00"`: "😀", "\"a\ufffd\"": "a\ufffd"} {
		if got, err := d.Decode([]byte(payload)); err != nil || got[0].Label != want {
			t.Errorf("%s: %+v, %v", payload, got, err)
		}
	}
}

// The refusal of a label without an id says what it has, and which id needs none.
func TestLabelWithoutID(t *testing.T) {
	d := NewLabelDecoder(DefaultLabels())
	_, err := d.Decode([]byte(`{"ID":"a1","label":"worn"}`))
	if want := `id is missing: the object has ID, label; the id "last" stands for the newest sample`; refusalOf(err).Reason != BadID || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
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
		if refusalOf(err).Reason != BadLabel || !strings.Contains(err.Error(), "list it in map") {
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

// The refusal of a state names its effect and the remedy.
func TestRefusedState(t *testing.T) {
	l := DefaultLabels()
	l.Sticky, l.Map = true, map[string]string{"1": "idle", "2": "run", "0": "", "stand by": ""}
	d := NewLabelDecoder(l)
	for _, test := range []struct {
		payload, label string
		told           bool
		err            string // a part; "": none
	}{
		{"2.0", "run", true, ""},
		{" unavailable ", "", true, ""},
		{`{"label":null}`, "", true, ""},
		{" 0.0", "", true, ""},
		{"unavailable\x00\x00", "", true, ""},
		{"\ufeff{\"label\":null}", "", true, ""},
		{`"stand by"`, "", true, ""},
		{`{"label":0}`, "", true, ""},
		{`{"label":"stand by"}`, "", true, ""},
		{"3", "", true, "bad_label: label is \"3\", which the map of labels does not have; it has 0, 1, 2, idle, run, stand by; this ends the state before, and rows have no label until a known one comes: list it in map, with \"\" as its class where that state has no label"},
		{`{"label":{}}`, "", true, "this ends the state before"},
		{`{"battery":3,"linkquality":9}`, "", false, "label is missing: the object has battery, linkquality; label: KEY in an entry of labels reads another key"},
		{`{}`, "", false, "label is missing: the object has no members"},
		{`{"label":2,"label":1}`, "", false, "occurs twice"},
		{`{"label":2`, "", false, "malformed"},
		{"\xff", "", false, "malformed"},
	} {
		label, _, told, err := d.State([]byte(test.payload))
		if label != test.label || told != test.told || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %q, %t, %v; want %q, %t, %s", test.payload, label, told, err, test.label, test.told, test.err)
		}
	}
}

// A word that is ignored says nothing about the state.
func TestIgnoredState(t *testing.T) {
	l := DefaultLabels()
	l.Topics, l.Sticky, l.Label, l.Ignore = []string{"t"}, true, "action", []string{"", "0", "unknown", "long release"}
	if err := l.Validate(); err != nil {
		t.Error(err)
	}
	d := NewLabelDecoder(l)
	for _, payload := range []string{`{"action":""}`, `{"action":null}`, `{"battery":90}`, `{}`, `{"action":0.0}`, `{"action":"long release","battery":90}`, "", `""`, " 0\n", "unknown"} {
		if label, _, told, err := d.State([]byte(payload)); label != "" || told || err != nil {
			t.Errorf("%s: %q, %t, %v; want it to say nothing", payload, label, told, err)
		}
	}
	for payload, want := range map[string]string{`{"action":"on"}`: "on", "long release 2": "long release 2", "1": "1", "unavailable": ""} {
		if label, _, told, err := d.State([]byte(payload)); label != want || !told || err != nil {
			t.Errorf("%s: %q, %t, %v; want %q", payload, label, told, err, want)
		}
	}
	for _, payload := range []string{`{"battery":90,"battery":91}`, `{"battery":`, `{"battery":90}x`} {
		if _, _, told, err := d.State([]byte(payload)); told || err == nil {
			t.Errorf("%s: %t, %v; want it refused", payload, told, err)
		}
	}
}

// The entry of labels for a button of Shelly in docs/guide/shapes.md.
func TestStateOfEvents(t *testing.T) {
	l := DefaultLabels()
	l.Sticky, l.Label, l.Map = true, "params.events.0.event", map[string]string{"single_push": "awake", "double_push": "asleep"}
	l.Ignore = []string{"", "btn_down", "btn_up"}
	d := NewLabelDecoder(l)
	for _, c := range []struct {
		payload, want string
		told          bool
	}{
		{`{"src":"shellyplusi4-1","method":"NotifyEvent","params":{"ts":1.5,"events":[{"component":"input:0","id":0,"event":"btn_down","ts":1.5}]}}`, "", false},
		{`{"src":"shellyplusi4-1","method":"NotifyEvent","params":{"ts":1.6,"events":[{"component":"input:0","id":0,"event":"double_push","ts":1.6}]}}`, "asleep", true},
		{`{"src":"shellyplusi4-1","method":"NotifyStatus","params":{"ts":1.7,"input:0":{"id":0,"state":true}}}`, "", false},
	} {
		if label, _, told, err := d.State([]byte(c.payload)); label != c.want || told != c.told || err != nil {
			t.Errorf("%s: %q, %t, %v; want %q, %t", c.payload, label, told, err, c.want, c.told)
		}
	}
}

func TestIgnoreValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		ignore []string
		sticky bool
		want   string
	}{
		"not sticky":        {[]string{""}, false, "ignore [\"\"]: want sticky: true beside it"},
		"a label":           {[]string{"1.0"}, true, "ignore \"1.0\": want words that are in map neither"},
		"a class":           {[]string{"idle"}, true, "ignore \"idle\": want words that are in map neither"},
		"too long":          {[]string{strings.Repeat("a", 257)}, true, "want words of at most 256 bytes"},
		"as it should be":   {[]string{"", "2"}, true, ""},
		"none and a number": {nil, false, ""},
	} {
		l := DefaultLabels()
		l.Topics, l.Sticky, l.Ignore, l.Map = []string{"t"}, tc.sticky, tc.ignore, map[string]string{"1": "idle"}
		if err := l.Validate(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", name, err, tc.want)
		}
	}
}
