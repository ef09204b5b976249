package codec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// special is a stream of signals under keys with characters that have a meaning in a path.
func special(format string, set func(*Stream)) Stream {
	s := DefaultStream()
	s.Topics, s.Format, s.Stage.Signals = []string{"a"}, format, []string{"x", "cpu%"}
	set(&s)
	return s
}

func TestSpecialKeys(t *testing.T) {
	escaped := func(s *Stream) {
		s.Time, s.Label, s.Fields = `\@timestamp`, `meta.\#\.\\`, map[string]string{"x": `CO2 \[ppm\].\*`}
	}
	lines := func(s *Stream) {
		s.Time, s.Label, s.Fields = "@timestamp", "state?", map[string]string{"x": "CO2 [ppm]"}
		if s.Format == formatCSV {
			s.Columns = []string{"@timestamp", "CO2 [ppm]", "cpu%", "state?"}
		}
	}
	object := `{"@timestamp":17,"CO2 [ppm]":{"*":400,"?":1},"cpu%":5,"meta":{"#.\\":"ok"}}`
	for name, c := range map[string]struct {
		stream  Stream
		payload string
	}{
		"json":   {special(FormatJSON, escaped), object},
		"cbor":   {special(FormatCBOR, escaped), asCBOR(t, object)},
		"influx": {special(formatInflux, lines), `m CO2\ [ppm]=400,cpu%=5,state?="ok" 17`},
		"csv":    {special(formatCSV, lines), `17,400,5,ok`},
	} {
		want := []Reading{{X: []float64{400, 5}, RawTime: "17", Label: "ok"}}
		d, err := NewDecoder(c.stream)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := d.Decode([]byte(c.payload)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Decode(%q) = %+v, %v, want %+v", name, c.payload, got, err, want)
		}
		if c.stream.Format == formatInflux { // which is not written
			continue
		}
		e, err := NewEncoder(c.stream)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		payloads, err := e.Append(nil, []string{"400", "5"}, 17e9, "ok")
		if err != nil || len(payloads) != 1 {
			t.Errorf("%s: %d payloads, %v", name, len(payloads), err)
			continue
		}
		got, err := d.Decode(payloads[0].Data)
		if err == nil {
			got[0].RawTime = strings.Trim(got[0].RawTime, `"`) // a text in CBOR
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: what is written, %q, is %+v, %v, want %+v", name, payloads[0].Data, got, err, want)
		}
	}
}

// Wildcards, queries and modifiers of gjson are no paths.
func TestPathsWithoutMeaning(t *testing.T) {
	for _, path := range []string{"*", "a.*", "a?", "a.#", "a.#.b", "a.#(b>1)", "@reverse", "a|b", "!true", "{a,b}", "[a,b]", "a[0]", `a\`, ".a", "a.", "a..b", ""} {
		s := special(FormatJSON, func(s *Stream) { s.Fields = map[string]string{"x": path} })
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("fields.x %q: want keys and array indices", path)) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
