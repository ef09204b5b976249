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

// JSONPath begins with $, which would be a key that no payload has.
func TestPathsOfJSONPath(t *testing.T) {
	for path, valid := range map[string]bool{"$.a.b": false, "$": false, "$date": true, `\$.a`: true, "a.$.b": true} {
		s := special(FormatJSON, func(s *Stream) { s.Fields = map[string]string{"x": path} })
		if err := s.Validate(); (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "no $ before them") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// An array has the values of paths that begin with an index, and is refused where a path begins
// with a key: its order is not that of the features.
func TestPathsInArrays(t *testing.T) {
	byIndex := map[string]string{"h": "1", "t": "0"}
	for _, c := range []struct {
		name, format string
		fields       map[string]string
		payload      string
		want         []Reading // of h and t; nil: refused
		features     bool      // the same where h and t are features
	}{
		{"one row", FormatJSON, byIndex, `[21.5,40]`, rowsOf2(40, 21.5), true},
		{"more values", FormatJSON, byIndex, `[21.5,40,7]`, rowsOf2(40, 21.5), true},
		{"a value too few", FormatJSON, byIndex, `[21.5]`, nil, true},
		{"rows", FormatJSON, byIndex, `[[21.5,40],[22.5,41]]`, rowsOf2(40, 21.5, 41, 22.5), false},
		{"batch", FormatJSON, byIndex, `{"batch":[[21.5,40],[22.5,41]]}`, rowsOf2(40, 21.5, 41, 22.5), true},
		{"keys that are numbers", FormatJSON, byIndex, `{"0":21.5,"1":40}`, rowsOf2(40, 21.5), true},
		{"rows with keys that are numbers", FormatJSON, byIndex, `[{"0":21.5,"1":40},{"0":22.5,"1":41}]`, rowsOf2(40, 21.5, 41, 22.5), false},
		{"within objects", FormatJSON, map[string]string{"h": "1.v", "t": "0.v"}, `[{"v":21.5},{"v":40}]`, rowsOf2(40, 21.5), true},
		{"within arrays", FormatJSON, map[string]string{"h": "1.0", "t": "0.0"}, `[[21.5,9],[40,8]]`, rowsOf2(40, 21.5), true},
		{"keys", FormatJSON, map[string]string{"h": "hum", "t": "temp"}, `[21.5,40]`, nil, true},
		{"rows without keys", FormatJSON, map[string]string{"h": "hum", "t": "temp"}, `[[21.5,40]]`, nil, true},
		{"objects with keys", FormatJSON, map[string]string{"h": "hum", "t": "temp"}, `[{"temp":21.5,"hum":40}]`, rowsOf2(40, 21.5), false},
		{"a key beside an index", FormatJSON, map[string]string{"h": "1"}, `[21.5,40]`, nil, true},
		{"CBOR", FormatCBOR, byIndex, "\x82\xf9\x4d\x60\x18\x28", rowsOf2(40, 21.5), true},
		{"CBOR map", FormatCBOR, byIndex, "\xa2\x00\xf9\x4d\x60\x01\x18\x28", rowsOf2(40, 21.5), true},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Fields, s.Stage.Signals = []string{"a"}, c.format, c.fields, []string{"h", "t"}
		of := []Stream{s}
		if s.Features, s.Stage.Signals = []string{"h", "t"}, nil; c.features {
			of = append(of, s)
		}
		for i, s := range of {
			d, err := NewDecoder(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode([]byte(c.payload))
			if (err != nil) != (c.want == nil) || !sameReadings(got, c.want) && c.want != nil {
				t.Errorf("%s, %d: Decode(%q) = %+v, %v, want %+v", c.name, i, c.payload, got, err, c.want)
			}
		}
	}
}

// rowsOf2 returns readings of two values each.
func rowsOf2(x ...float64) (list []Reading) {
	for i := 0; i < len(x); i += 2 {
		list = append(list, Reading{X: x[i : i+2]})
	}
	return list
}
