package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/stream/field"
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
		payloads, err := e.Row([]string{"400", "5"}, 17e9, "ok")
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
	for _, path := range []string{"*", "a.*", "a?", "a.#", "a.#.b", "a.#(b>1)", "@reverse", "a|b", "!true", "{a,b}", "[a,b]", "a[0]", `a\`, ".a", "a.", "a..b", "", "[a]", "[=b]", "[a=]", `[a=b\]`, "a[b=c]", "[a=b]c", "[a*=b]", "[a..b=c]", "[a=b", "[[a=b]=c].d", "[a.b]", "[=]"} {
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

// A path goes on in a text that is JSON, and selects the entry of an array by a word.
func TestPathsThroughTextsAndEntries(t *testing.T) {
	inner := map[string]string{"h": "data.hum", "t": "data.list.0.temp"}
	records := map[string]string{"h": "[n=hum].v", "t": "[n=temp].v"}
	for _, c := range []struct {
		name, format string
		fields       map[string]string
		payload      string
		want         []Reading // of h and t; nil: refused
	}{
		{"text", FormatJSON, inner, `{"data":"{\"hum\":40,\"list\":[{\"temp\":21.5}]}"}`, rowsOf2(40, 21.5)},
		{"text in a text", FormatJSON, inner, `{"data":"{\"hum\":40,\"list\":\"[{\\\"temp\\\":21.5}]\"}"}`, rowsOf2(40, 21.5)},
		{"object", FormatJSON, inner, `{"data":{"hum":40,"list":[{"temp":21.5}]},"x":"{}"}`, rowsOf2(40, 21.5)},
		{"text of CBOR", FormatCBOR, inner, asCBOR(t, `{"data":"{\"hum\":40,\"list\":[{\"temp\":21.5}]}"}`), rowsOf2(40, 21.5)},
		{"text in entries", FormatJSON, inner, `{"batch":[{"data":"{\"hum\":40,\"list\":[{\"temp\":21.5}]}"},{"data":"{\"hum\":41,\"list\":[{\"temp\":22.5}]}"}]}`, rowsOf2(40, 21.5, 41, 22.5)},
		{"entries in a text", FormatJSON, map[string]string{"h": "hum", "t": "temp"}, `{"batch":"[{\"hum\":40,\"temp\":21.5},{\"hum\":41,\"temp\":22.5}]"}`, rowsOf2(40, 21.5, 41, 22.5)},
		{"all in a text", FormatJSON, map[string]string{"h": "hum", "t": "temp"}, ` "{\"hum\":40,\"temp\":21.5}" `, rowsOf2(40, 21.5)},
		{"no JSON in a text", FormatJSON, inner, `{"data":"{\"hum\":40,\"list\":[{\"temp\":21.5}"}`, nil},
		{"a key twice in a text", FormatJSON, inner, `{"data":"{\"hum\":40,\"hum\":41,\"list\":[{\"temp\":21.5}]}"}`, nil},
		{"deep in a text", FormatJSON, inner, `{"data":"{\"hum\":40,\"list\":[{\"temp\":21.5}],\"x\":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}"}`, nil},
		{"another text", FormatJSON, inner, `{"data":"hum","hum":40}`, nil},
		{"records", FormatJSON, records, `[{"n":"temp","v":21.5},{"u":"%"},{"n":"hum","v":40},{"n":"hum","v":41}]`, rowsOf2(40, 21.5)},
		{"records in another order", FormatCBOR, records, asCBOR(t, `[{"v":40,"n":"hum"},{"v":21.5,"n":"temp"}]`), rowsOf2(40, 21.5)},
		{"a record too few", FormatJSON, records, `[{"n":"temp","v":21.5}]`, nil},
		{"records below a key", FormatJSON, map[string]string{"h": `values.[id=dev.hum].v`, "t": "values.[id=7].v"}, `{"values":[{"id":7,"v":21.5},{"id":"dev.hum","v":40}]}`, rowsOf2(40, 21.5)},
		{"records in a text", FormatJSON, map[string]string{"h": `values.[id=hum].v`, "t": "values.[id=temp].v"}, `{"values":"[{\"id\":\"temp\",\"v\":21.5},{\"id\":\"hum\",\"v\":40}]"}`, rowsOf2(40, 21.5)},
		{"records that are arrays", FormatJSON, map[string]string{"h": "[0=hum].1", "t": "[0=temp].1"}, `[["temp",21.5],["hum",40]]`, rowsOf2(40, 21.5)},
		{"an equals sign", FormatJSON, map[string]string{"h": `[a\=b=c=d].v`, "t": "[n=true].v"}, `[{"a=b":"c=d","v":40},{"n":true,"v":21.5}]`, rowsOf2(40, 21.5)},
		{"a path in a selection", FormatJSON, map[string]string{"h": `rx.[gw.id=g 2*].[c.0.n=x\]\\].v`, "t": "rx.[gw.id=g1].v"}, `{"rx":[{"gw":{"id":"g1"},"v":21.5},[{"gw":1}],{"gw":"{\"id\":\"g1\"}","v":22}]}`, nil},
		{"paths in selections", FormatJSON, map[string]string{"h": `rx.[gw.id=g.2\]\\].v`, "t": "rx.[gw.id=g1].v"}, `{"rx":[{"gw":{"id":"g1"},"v":21.5},{"gw":"{\"id\":\"g.2]\\\\\"}","v":40}]}`, rowsOf2(40, 21.5)},
		{"records that are texts", FormatJSON, records, `["{n:\"hum\"}","{\"n\":\"hum\",\"v\":40}",7,"{\"n\":\"temp\",\"v\":21.5}"]`, rowsOf2(40, 21.5)},
		{"no array", FormatJSON, map[string]string{"h": `a.[n=hum].v`, "t": "a.[n=temp].v"}, `{"a":{"n":"hum","v":40}}`, nil},
	} {
		for _, signals := range []bool{true, false} {
			s := DefaultStream()
			s.Topics, s.Format, s.Fields = []string{"a"}, c.format, c.fields
			if s.Features = []string{"h", "t"}; signals {
				s.Features, s.Stage.Signals = nil, s.Features
			}
			got, err := mustDecoder(t, s).Decode([]byte(c.payload))
			if (err != nil) != (c.want == nil) || !sameReadings(got, c.want) && c.want != nil {
				t.Errorf("%s, signals %v: Decode(%q) = %+v, %v, want %+v", c.name, signals, c.payload, got, err, c.want)
			}
		}
	}
}

// The time, the label and the device may lie in a text.
func TestMembersInTexts(t *testing.T) {
	s := DefaultStream()
	s.Topics, s.Fields, s.Stage.Signals = []string{"a"}, map[string]string{"x": "d.x"}, []string{"x"}
	s.Time, s.Label, s.Entries.Device.Path = "d.t", "d.state", "d.dev"
	s.Entries.Where = map[string]field.Words{"d.tags.[k=a].v": {"1"}}
	got, err := mustDecoder(t, s).Decode([]byte(`{"d":"{\"x\":2,\"t\":17,\"state\":\"ok\",\"dev\":\"p7\",\"tags\":[{\"k\":\"a\",\"v\":1}]}"}`))
	if want := []Reading{{X: []float64{2}, RawTime: "17", Label: "ok", Device: "p7"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	l := DefaultLabels()
	l.Label, l.Sticky = "d.state", true
	for _, payload := range []string{`{"d":"{\"state\":\"run\"}"}`, `"{\"d\":{\"state\":\"run\"}}"`} {
		if label, _, found, err := NewLabelDecoder(l).State([]byte(payload)); label != "run" || !found || err != nil {
			t.Errorf("the state of %s is %q, %v, %v", payload, label, found, err)
		}
	}
}

// A text is checked once for all paths that go on in it.
func TestTextsAreCheckedOnce(t *testing.T) {
	s := DefaultStream()
	s.Topics, s.Fields = []string{"a"}, map[string]string{}
	inner := map[string]float64{}
	for i := range 200 {
		name := fmt.Sprintf("x%03d", i)
		inner[name], s.Fields[name] = float64(i), "data."+name
		s.Stage.Signals = append(s.Stage.Signals, name)
	}
	text, err := json.Marshal(inner)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(map[string]string{"data": string(text)})
	if err != nil {
		t.Fatal(err)
	}
	d := mustDecoder(t, s)
	n := testing.AllocsPerRun(10, func() {
		if r, err := d.Decode(payload); err != nil || r[0].X[199] != 199 {
			t.Error(r, err)
		}
	})
	if n > 100 {
		t.Errorf("%v allocations for 200 paths, want less than one each", n)
	}
}

// A path without selections finds in steps what it finds at once.
func FuzzPath(f *testing.F) {
	f.Add(`{"a":{"b":[1,{"c":2}]}}`, "a.b.1.c")
	f.Add(`{"a":"{\"b\":1}","a.b":2}`, `a\.b`)
	f.Add(`[["temp",21.5],{"n":"x","v":[1]}]`, `[n=x].v`)
	f.Fuzz(func(t *testing.T, payload, path string) {
		if CheckJSON([]byte(payload)) != nil || checkPath("", path) != nil {
			return
		}
		v := gjson.Parse(payload)
		got := at(v, path)
		var inner texts
		step, _, _ := cutStep(path)
		inner.at(v, step+".a")
		for range 2 {
			if again := inner.at(v, path); again.Raw != got.Raw {
				t.Fatalf("%s in %s is %q, then %q", path, payload, got.Raw, again.Raw)
			}
		}
		if got.Exists() && !gjson.Valid(got.Raw) {
			t.Fatalf("%s in %s is %q", path, payload, got.Raw)
		}
		if v.Type == gjson.JSON && !strings.Contains(path, "[") && v.Get(path).Exists() && got.Raw != v.Get(path).Raw {
			t.Fatalf("%s in %s is %q, want %q", path, payload, got.Raw, v.Get(path).Raw)
		}
		if v.Type != gjson.JSON || repeatedKey(v) != "" || strings.Contains(path, "[") {
			return
		}
		steps := v
		for rest, more := path, true; more && steps.Type == gjson.JSON; {
			var step string
			step, rest, more = cutStep(rest)
			if steps = opened(steps.Get(step)); !more && steps.Raw != opened(got).Raw {
				t.Fatalf("%s in %s is %q, in steps %q", path, payload, got.Raw, steps.Raw)
			}
		}
	})
}

// rowsOf2 returns readings of two values each.
func rowsOf2(x ...float64) (list []Reading) {
	for i := 0; i < len(x); i += 2 {
		list = append(list, Reading{X: x[i : i+2]})
	}
	return list
}
