package codec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// In every format a label of any kind becomes the class that the map has for it.
// Long: a list of independent cases.
func TestLabelMap(t *testing.T) {
	machine := map[string]string{"true": "running", "false": "idle", "ON": "running", "1": "fault", "2.0": "hot", "0.5": "half"}
	for _, tc := range []struct {
		label string // as JSON has it
		by    map[string]string
		want  string // "": refused
	}{
		{"true", nil, "true"}, {"false", nil, "false"}, {"1", nil, "1"}, {"1.0", nil, "1"}, {"-3", nil, "-3"}, {"1e2", nil, "100"}, {"-0", nil, "0"},
		{"0.5", nil, ""}, {`"0.5"`, nil, "0.5"}, {`"ON"`, nil, "ON"}, {"12345678901234567890", nil, "12345678901234567890"}, {"9007199254740993", nil, "9007199254740993"},
		{"true", machine, "running"}, {"false", machine, "idle"}, {`"ON"`, machine, "running"}, {"1", machine, "fault"}, {"1.0", machine, "fault"}, {`"1"`, machine, "fault"},
		{"2", machine, "hot"}, {"2.0", machine, "hot"}, {"0.5", machine, "half"}, {"0.50", machine, "half"}, {"0.25", machine, ""},
		{"3", machine, ""}, {`"OFF"`, machine, ""}, {`"on"`, machine, ""}, {`"running"`, machine, "running"}, {`"true"`, machine, "running"},
	} {
		text := strings.Trim(tc.label, `"`)
		isText := tc.label != text
		influx := text
		if isText {
			influx = tc.label
		}
		s := bearing()
		s.LabelMap = tc.by
		l := DefaultLabels()
		l.Map, l.Last = tc.by, true
		payloads := map[string]struct {
			d       *Decoder
			payload string
		}{
			"json":         {mustDecoder(t, s), `{"features":[1,2,3],"label":` + tc.label + `}`},
			"json, batch":  {mustDecoder(t, s), `{"batch":[{"rms":1,"kurtosis":2,"peak_hz":3,"label":` + tc.label + `}]}`},
			"influx":       {mustDecoder(t, as(s, formatInflux)), "v rms=1,kurtosis=2,peak_hz=3,label=" + influx},
			"label topic":  {NewLabelDecoder(l), `{"id":"a","label":` + tc.label + `}`},
			"without id":   {NewLabelDecoder(l), `{"label":` + tc.label + `}`},
			"label itself": {NewLabelDecoder(l), " " + tc.label + "\n"},
		}
		if isText || tc.want == "" || text == tc.want || tc.by != nil {
			c := as(s, formatCSV)
			c.Columns = []string{"rms", "kurtosis", "peak_hz", "label"}
			if isText || tc.by != nil { // a cell is a text
				payloads["csv"] = struct {
					d       *Decoder
					payload string
				}{mustDecoder(t, c), "1,2,3," + text + "\n"}
			}
		}
		if isText && strings.Trim(text, "0123456789.") != "" && text != "true" {
			payloads["bare word"] = struct {
				d       *Decoder
				payload string
			}{NewLabelDecoder(l), text}
		}
		if !isText {
			var v any
			switch text {
			case "true", "false":
				v = text == "true"
			default:
				var f float64
				fmt.Sscan(text, &f)
				v = f
			}
			packed, err := cbor.Marshal(map[string]any{"features": []float64{1, 2, 3}, "label": v})
			if err != nil {
				t.Fatal(err)
			}
			if len(text) < 10 { // a float64 holds it
				payloads["cbor"] = struct {
					d       *Decoder
					payload string
				}{mustDecoder(t, as(s, FormatCBOR)), string(packed)}
			}
		}
		for format, p := range payloads {
			readings, err := p.d.Decode([]byte(p.payload))
			switch {
			case tc.want == "" && refusalOf(err).Reason != BadLabel:
				t.Errorf("%s, %s by %v: %+v, %v; want it refused", format, tc.label, tc.by, readings, err)
			case tc.want != "" && (err != nil || len(readings) != 1 || readings[0].Label != tc.want):
				t.Errorf("%s, %s by %v: %+v, %v; want %s", format, tc.label, tc.by, readings, err, tc.want)
			}
		}
	}
}

func as(s Stream, format string) Stream {
	s.Format = format
	return s
}

// A label alone needs to be for the newest sample.
func TestLabelThatIsThePayload(t *testing.T) {
	plain := NewLabelDecoder(DefaultLabels())
	for _, payload := range []string{"ON", "1", `"ON"`, "true"} {
		if _, err := plain.Decode([]byte(payload)); err == nil || !strings.Contains(err.Error(), "last: true") {
			t.Errorf("%s: %v; want the way out", payload, err)
		}
	}
	l := DefaultLabels()
	l.Last = true
	last := NewLabelDecoder(l)
	for payload, want := range map[string]Reading{
		"ON":                       {ID: LastID, Label: "ON"},
		" two words \r\n":          {ID: LastID, Label: "two words"},
		`"ON"`:                     {ID: LastID, Label: "ON"},
		"true":                     {ID: LastID, Label: "true"},
		"3":                        {ID: LastID, Label: "3"},
		`{"label":"ON"}`:           {ID: LastID, Label: "ON"},
		`{"id":"p7","label":"ok"}`: {ID: "p7", Label: "ok"},
	} {
		got, err := last.Decode([]byte(payload))
		if err != nil || len(got) != 1 || got[0].ID != want.ID || got[0].Label != want.Label {
			t.Errorf("%q: %+v, %v; want %+v", payload, got, err, want)
		}
	}
	for payload, want := range map[string]Reason{"": Empty, "0.5": BadLabel, "a\nb": BadLabel, "\xff": Malformed, "{": Malformed, "[]": Malformed, strings.Repeat("a", 300): BadLabel} {
		_, err := last.Decode([]byte(payload))
		if refusalOf(err).Reason != want {
			t.Errorf("%.20q: %v; want %s", payload, err, want)
		}
	}
}

func TestLabelMapValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		by   map[string]string
		want string
	}{
		"no label":        {map[string]string{"1": "", "2": "a"}, ""},
		"no value":        {map[string]string{"": "idle"}, `label_map "": want values of 1 to 256 bytes`},
		"a line break":    {map[string]string{"1": "a\nb"}, "label_map.1: the class has a control character"},
		"a number twice":  {map[string]string{"1": "a", "1.0": "b"}, "label_map 1.0: want one class for one number: 1 is a key as well"},
		"the same twice":  {map[string]string{"1": "a", "1.0": "a"}, ""},
		"as it should be": {map[string]string{"true": "a", "ON": "a", "7": "b"}, ""},
	} {
		s := bearing()
		s.LabelMap = tc.by
		if err := s.Validate(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", name, err, tc.want)
		}
	}
	for _, sticky := range []bool{true, false} { // a message that holds only a label has one
		l := DefaultLabels()
		l.Topics, l.Sticky, l.Map = []string{"t"}, sticky, map[string]string{"1": ""}
		if err := l.Validate(); (err == nil) != sticky || err != nil && !strings.Contains(err.Error(), "map.1: the class has 0 bytes: want 1 to 256") {
			t.Errorf("sticky %t: %v", sticky, err)
		}
	}
}

// A word that the map has for no label leaves a sample without one, in every format, and is as
// null for a row of signals.
func TestNoLabelByMap(t *testing.T) {
	for _, signals := range []bool{false, true} {
		for format, payload := range map[string]string{formatCSV: "1,0", formatInflux: "m a=1,label=0", FormatJSON: `{"a":1,"label":0.0}`} {
			s := DefaultStream()
			s.Topics, s.Format, s.LabelMap = []string{"t"}, format, map[string]string{"0": "", "1": "run"}
			if s.Features = []string{"a"}; signals {
				s.Features, s.Stage.Signals = nil, []string{"a"}
			}
			if format == formatCSV {
				s.Columns = []string{"a", "label"}
			}
			got, err := mustDecoder(t, s).Decode([]byte(payload))
			if err != nil || len(got) != 1 || got[0].Label != "" || got[0].Null != signals || got[0].X[0] != 1 {
				t.Errorf("%s: %+v, %v", payload, got, err)
			}
			one, err := mustDecoder(t, s).Decode([]byte(strings.Replace(strings.Replace(payload, "0.0", "1", 1), "0", "1", 1)))
			if err != nil || one[0].Label != "run" || one[0].Null {
				t.Errorf("1 in place of 0 in %s: %+v, %v", payload, one, err)
			}
		}
	}
}
