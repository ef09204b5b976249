package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// bearing is the stream of the examples: three named features.
func bearing() Stream {
	s := DefaultStream()
	s.Topics = []string{"factory/+/vibration"}
	s.TopicTemplate = "factory/{device}/vibration"
	s.Features = []string{"rms", "kurtosis", "peak_hz"}
	return s
}

func nested() Stream {
	s := bearing()
	s.Fields = map[string]string{"rms": "spectrum.rms", "peak_hz": "spectrum.peaks.0.hz", "kurtosis": `stat\.k`}
	s.ID, s.Label = "meta.id", "meta.label"
	return s
}

func mustDecoder(t testing.TB, s Stream) *Decoder {
	t.Helper()
	d, err := NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refusalOf returns the refusal of err; the zero one, which has no reason, if err is none.
func refusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return &Refusal{}
}

func TestDecode(t *testing.T) {
	x := []float64{0.82, 3.9, 118.5}
	for _, c := range []struct {
		name    string
		stream  Stream
		payload string
		want    []Reading
	}{
		{"named features", bearing(), `{"id":"p7-000123","ts":"2026-11-20T20:29:45.120Z","features":{"rms":0.82,"kurtosis":3.9,"peak_hz":118.5}}`,
			[]Reading{{ID: "p7-000123", X: x, RawID: `"p7-000123"`, RawTime: `"2026-11-20T20:29:45.120Z"`}}},
		{"array and label", bearing(), `{"features":[0.82,3.9,118.5],"label":"worn"}`, []Reading{{X: x, Label: "worn"}}},
		{"flat", bearing(), `{"rms":0.82,"kurtosis":3.9,"peak_hz":118.5}`, []Reading{{X: x}}},
		{"flat with everything", bearing(), `{"label":"ok","peak_hz":118.5,"id":17,"ts":1700000000123,"rms":0.82,"kurtosis":3.9,"weight":1.0,"source":"operator"}`,
			[]Reading{{ID: "17", X: x, Label: "ok", Source: "operator", RawID: "17", RawTime: "1700000000123"}}},
		{"bare array", bearing(), ` [0.82, 3.9, 118.5] `, []Reading{{X: x}}},
		{"late label", bearing(), `{"id":"p7-000123","label":"worn","weight":1.0,"source":"operator"}`,
			[]Reading{{ID: "p7-000123", Label: "worn", Source: "operator", RawID: `"p7-000123"`}}},
		{"batch", bearing(), `{"batch":[{"id":"a","features":[1,2,3]},[3,2,1],{"rms":1,"kurtosis":1,"peak_hz":1,"label":"ok"}]}`,
			[]Reading{{ID: "a", X: []float64{1, 2, 3}, RawID: `"a"`}, {X: []float64{3, 2, 1}}, {X: []float64{1, 1, 1}, Label: "ok"}}},
		{"array of objects", bearing(), `[{"id":"a","features":[1,2,3]},{"rms":1,"kurtosis":1,"peak_hz":1,"label":"ok"}]`,
			[]Reading{{ID: "a", X: []float64{1, 2, 3}, RawID: `"a"`}, {X: []float64{1, 1, 1}, Label: "ok"}}},
		{"array of arrays", bearing(), `[[1,2,3],[3,2,1],{"rms":1,"kurtosis":1,"peak_hz":1}]`,
			[]Reading{{X: []float64{1, 2, 3}}, {X: []float64{3, 2, 1}}, {X: []float64{1, 1, 1}}}},
		{"array of nested objects", nested(), `[{"spectrum":{"rms":0.82,"peaks":[{"hz":118.5}]},"stat.k":3.9,"meta":{"id":"z"}},{"meta":{"id":"y","label":"ok"}}]`,
			[]Reading{{ID: "z", X: x, RawID: `"z"`}, {ID: "y", Label: "ok", RawID: `"y"`}}},
		{"nested paths", nested(), `{"spectrum":{"rms":0.82,"peaks":[{"hz":118.5},{"hz":2}]},"stat.k":3.9,"battery":97,"meta":{"id":"z","label":"ok"}}`,
			[]Reading{{ID: "z", X: x, Label: "ok", RawID: `"z"`}}},
		{"nested late label", nested(), `{"meta":{"id":"z","label":"ok"},"battery":97}`, []Reading{{ID: "z", Label: "ok", RawID: `"z"`}}},
		{"null id, time and label", bearing(), `{"id":null,"ts":null,"label":null,"features":[1,2,3]}`, []Reading{{X: []float64{1, 2, 3}}}},
		{"a time of another kind", bearing(), `{"ts":{"sec":1},"features":[1,2,3]}`, []Reading{{X: []float64{1, 2, 3}}}},
		{"escapes", bearing(), `{"\u0072ms":1,"kurtosis":2,"peak_hz":3,"id":"\u00e9\n","label":"\u00fc"}`,
			[]Reading{{ID: "é\n", X: []float64{1, 2, 3}, Label: "ü", RawID: `"\u00e9\n"`}}},
		{"numbers at the edges", bearing(), `[-0, 1.7976931348623157e308, 5e-324]`,
			[]Reading{{X: []float64{math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64}}}},
		{"dimension", plane(),
			`{"f1":2,"f0":1}`, []Reading{{X: []float64{1, 2}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustDecoder(t, c.stream).Decode([]byte(c.payload))
			if err != nil {
				t.Fatalf("Decode(%s) = %v", c.payload, err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("Decode(%s) =\n%+v, want\n%+v", c.payload, got, c.want)
			}
		})
	}
}

// refusals are broken payloads for bearing, with the reason they are refused for.
var refusals = []struct {
	name, payload string
	want          Reason
}{
	{"empty", "", Empty},
	{"blank", " \n\t", Empty},
	{"not JSON", "rms=1", Malformed},
	{"half", `{"features":[1,2`, Malformed},
	{"two documents", `[1,2,3][1,2,3]`, Malformed},
	{"trailing comma", `[1,2,3,]`, Malformed},
	{"invalid UTF-8", "{\"rms\":1,\"kurtosis\":2,\"peak_hz\":3,\"id\":\"\xff\"}", Malformed},
	{"text", `"hello"`, Malformed},
	{"number", `7`, Malformed},
	{"null", `null`, Malformed},
	{"deep arrays", strings.Repeat("[", 20000) + strings.Repeat("]", 20000), Malformed},
	{"deep objects", strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000), Malformed},
	{"unclosed and deep", strings.Repeat("[", 60000), Malformed},
	{"leading zero", `[01,2,3]`, Malformed},
	{"plus sign", `[+1,2,3]`, Malformed},
	{"hexadecimal", `[0x1,2,3]`, Malformed},
	{"too large", `[1,2,3` + strings.Repeat(" ", 70000) + `]`, TooLarge},
	{"ten megabytes", `{"id":"` + strings.Repeat("a", 10<<20) + `"}`, TooLarge},
	{"NaN", `{"features":{"rms":NaN,"kurtosis":1,"peak_hz":1}}`, NotANumber},
	{"Infinity", `[1,2,-Infinity]`, NotANumber},
	{"1e999", `[1,2,1e999]`, NotANumber},
	{"-1e999 by name", `{"rms":-1e999,"kurtosis":1,"peak_hz":1}`, NotANumber},
	{"null feature", `{"features":[1,null,3]}`, NotANumber},
	{"text feature", `{"rms":"1","kurtosis":1,"peak_hz":1}`, NotANumber},
	{"text NaN", `["NaN",1,2]`, NotANumber},
	{"true", `[1,2,true]`, NotANumber},
	{"object for a number", `[1,2,{}]`, NotANumber},
	{"array for a number", `[1,2,[3]]`, NotANumber},
	{"features is a text", `{"features":"1,2,3"}`, NotANumber},
	{"features is null", `{"features":null}`, NotANumber},
	{"too few", `[1,2]`, WrongDimension},
	{"none", `[]`, WrongDimension},
	{"too many", `{"features":[1,2,3,4]}`, WrongDimension},
	{"missing feature", `{"rms":1,"kurtosis":2}`, MissingFeature},
	{"missing named feature", `{"features":{"rms":1,"kurtosis":2}}`, MissingFeature},
	{"empty object", `{}`, MissingFeature},
	{"empty features", `{"features":{},"id":"a","label":"ok"}`, MissingFeature},
	{"id alone", `{"id":"a"}`, MissingFeature},
	{"unknown feature", `{"features":{"rms":1,"kurtosis":2,"peak_hz":3,"peek_hz":3}}`, UnknownFeature},
	{"unknown flat feature", `{"rms":1,"kurtosis":2,"peak_hz":3,"battery":97}`, UnknownFeature},
	{"key beside features", `{"features":[1,2,3],"lable":"ok"}`, UnknownFeature},
	{"key beside batch", `{"batch":[[1,2,3]],"label":"ok"}`, UnknownFeature},
	{"late label with a typo", `{"id":"a","label":"ok","rsm":1}`, UnknownFeature},
	{"repeated feature", `{"rms":1,"rms":1,"kurtosis":2,"peak_hz":3}`, Repeated},
	{"repeated escaped feature", `{"features":{"rms":1,"\u0072ms":1,"kurtosis":2,"peak_hz":3}}`, Repeated},
	{"repeated label", `{"features":[1,2,3],"label":"ok","label":"worn"}`, Repeated},
	{"repeated key in a batch", `{"batch":[{"id":"a","id":"b","features":[1,2,3]}]}`, Repeated},
	{"label with a fraction", `{"features":[1,2,3],"label":0.5}`, BadLabel},
	{"object label", `{"features":[1,2,3],"label":{"name":"ok"}}`, BadLabel},
	{"array label", `{"features":[1,2,3],"label":["ok"]}`, BadLabel},
	{"empty label", `{"features":[1,2,3],"label":""}`, BadLabel},
	{"long label", `{"features":[1,2,3],"label":"` + strings.Repeat("a", 257) + `"}`, BadLabel},
	{"label with a line break", `{"features":[1,2,3],"label":"a\nb"}`, BadLabel},
	{"weight 0", `{"features":[1,2,3],"label":"ok","weight":0}`, BadWeight},
	{"weight of a late label", `{"id":"a","label":"ok","weight":1e3}`, BadWeight},
	{"null weight", `{"features":[1,2,3],"label":"ok","weight":null}`, BadWeight},
	{"object id", `{"features":[1,2,3],"id":{}}`, BadID},
	{"boolean id", `{"features":[1,2,3],"id":false}`, BadID},
	{"empty id", `{"features":[1,2,3],"id":""}`, BadID},
	{"long id", `{"features":[1,2,3],"id":"` + strings.Repeat("a", 129) + `"}`, BadID},
	{"label without id", `{"label":"ok"}`, BadID},
	{"batch is an object", `{"batch":{}}`, Malformed},
	{"empty batch", `{"batch":[]}`, Empty},
	{"batch of numbers", `{"batch":[1,2,3]}`, Malformed},
	{"bad entry", `{"batch":[[1,2,3],[1,2]]}`, WrongDimension},
	{"array in an array of objects", `[{"features":[1,2,3]},[{"rms":1}]]`, NotANumber},
	{"array in an array of arrays", `[[1,2,3],[1,2,[3]]]`, NotANumber},
	{"empty array in an array", `[[]]`, WrongDimension},
	{"bad object of an array", `[{"rms":1,"kurtosis":2,"peak_hz":3},{"rms":1}]`, MissingFeature},
	{"batch in a batch", `{"batch":[{"batch":[[1,2,3]]}]}`, MissingFeature},
	{"long batch", `{"batch":[` + strings.Repeat(`[1,2,3],`, 1000) + `[1,2,3]]}`, TooLarge},
}

func TestDecodeRefuses(t *testing.T) {
	d := mustDecoder(t, bearing())
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			got, err := d.Decode([]byte(c.payload))
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("Decode(%.80s) = %+v, %v, want a refusal: %s", c.payload, got, err, c.want)
			}
			if r.Reason != c.want || r.Err == nil || len(r.Err.Error()) > 300 {
				t.Errorf("Decode(%.80s) refused with %s: %v, want %s and short words", c.payload, r.Reason, r.Err, c.want)
			}
		})
	}
}

func TestDecodeNestedRefuses(t *testing.T) {
	d := mustDecoder(t, nested())
	for payload, want := range map[string]Reason{
		`{"spectrum":{"rms":1,"peaks":[]},"stat.k":1}`:                   MissingFeature,
		`{"spectrum":{"rms":"1","peaks":[{"hz":1}]},"stat.k":1}`:         NotANumber,
		`{"spectrum":{"rms":1,"rms":2,"peaks":[{"hz":1}]},"stat.k":1}`:   Repeated,
		`{"spectrum":{"rms":1,"peaks":[{"hz":1}]},"stat":{"k":1},"x":1}`: MissingFeature,
		`{"spectrum":{},"meta":{"label":3.5}}`:                           BadLabel,
		`{"meta":{"label":"ok"}}`:                                        BadID,
	} {
		_, err := d.Decode([]byte(payload))
		if refusalOf(err).Reason != want {
			t.Errorf("Decode(%s) = %v, want %s", payload, err, want)
		}
	}
}

func TestDecodeLabels(t *testing.T) {
	l := DefaultLabels()
	l.ID = "sample.id"
	d := NewLabelDecoder(l)
	got, err := d.Decode([]byte(`{"batch":[{"sample":{"id":7},"label":"ok","_msgid":"x"},{"sample":{"id":"8"},"label":"worn"}]}`))
	want := []Reading{{ID: "7", Label: "ok", RawID: "7"}, {ID: "8", Label: "worn", RawID: `"8"`}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Decode = %+v, %v, want %+v", got, err, want)
	}
	got, err = d.Decode([]byte(`[{"sample":{"id":7},"label":"ok"},{"sample":{"id":"8"},"label":"worn"}]`))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Decode of an array = %+v, %v, want %+v", got, err, want)
	}
	for payload, want := range map[string]Reason{
		`{"sample":{"id":7}}`:              BadLabel,
		`{"label":"ok"}`:                   BadID,
		`["ok"]`:                           Malformed,
		`worn`:                             Malformed,
		`{"sample":{"id":[]},"label":"a"}`: BadID,
	} {
		_, err := d.Decode([]byte(payload))
		if refusalOf(err).Reason != want {
			t.Errorf("Decode(%s) = %v, want %s", payload, err, want)
		}
	}
}

// An accepted payload is finite, complete, and equal to the result of encoding/json.
func FuzzDecodeJSON(f *testing.F) {
	for _, c := range refusals {
		if len(c.payload) < 1000 {
			f.Add([]byte(c.payload))
		}
	}
	f.Add([]byte(`{"id":"p7","ts":1,"features":{"rms":0.82,"kurtosis":3.9e-2,"peak_hz":118.5},"label":"ok"}`))
	f.Add([]byte(`{"batch":[{"rms":1,"kurtosis":-0,"peak_hz":5e-324},[1,2,3]]}`))
	f.Add([]byte(`{"spectrum":{"rms":1,"peaks":[{"hz":2}]},"stat.k":3,"meta":{"id":"a"}}`))
	flat, paths := mustDecoder(f, bearing()), mustDecoder(f, nested())
	for _, label := range []string{"1", "1.0", "-0", "1e3", "0.5", "true", "false", "null", `"ON"`, "9007199254740993"} {
		f.Add([]byte(`{"features":[1,2,3],"label":` + label + `}`))
		f.Add([]byte(label))
	}
	f.Add([]byte("ON"))
	labels := NewLabelDecoder(DefaultLabels())
	bare := DefaultLabels()
	bare.Last, bare.Map = true, map[string]string{"ON": "running", "0": "idle"}
	last := NewLabelDecoder(bare)
	f.Fuzz(func(t *testing.T, payload []byte) {
		if readings, err := last.Decode(payload); err == nil {
			for _, r := range readings {
				if r.Label != "running" && r.Label != "idle" || r.ID == "" {
					t.Fatalf("Decode(%q) = %+v, which the map does not have", payload, readings)
				}
			}
		}
		for _, d := range []*Decoder{flat, paths, labels} {
			readings, err := d.Decode(payload)
			if err != nil {
				var r *Refusal
				if !errors.As(err, &r) || !slices.Contains(Reasons(), r.Reason) {
					t.Fatalf("Decode(%q) = %v: not a refusal with a known reason", payload, err)
				}
				continue
			}
			var entries []any
			if !json.Valid(payload) {
				t.Fatalf("Decode accepts %q, encoding/json does not", payload)
			}
			if d != paths {
				entries = oracleEntries(t, payload)
				if len(entries) != len(readings) {
					t.Fatalf("Decode(%q) = %d readings, encoding/json sees %d", payload, len(readings), len(entries))
				}
			}
			for i, r := range readings {
				if r.X == nil && (r.Label == "" || r.ID == "") {
					t.Fatalf("Decode(%q) accepts neither a sample nor a label: %+v", payload, r)
				}
				if r.X != nil && len(r.X) != len(d.names) {
					t.Fatalf("Decode(%q) has %d features, want %d", payload, len(r.X), len(d.names))
				}
				for _, raw := range []string{r.RawID, r.RawTime} {
					if raw != "" && !json.Valid([]byte(raw)) {
						t.Fatalf("Decode(%q) passes on %q, which is not JSON", payload, raw)
					}
				}
				for j, v := range r.X {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("Decode(%q) accepts %g", payload, v)
					}
					if d != flat {
						continue
					}
					if want := oracleFeature(entries[i], d.names[j], j); v != want {
						t.Fatalf("Decode(%q): feature %s = %v, encoding/json reads %v", payload, d.names[j], v, want)
					}
				}
			}
		}
	})
}

// The scanner and the general decoder read a payload in the same way, and the scanner
// reads the payloads of most senders.
func FuzzScan(f *testing.F) {
	ordinary := []string{
		`[1,2.5,-3e2]`, ` [ 0.1 , -0 , 1e-300 ] `, `{"features":[1,2,3],"label":"ok"}`, `{"id":"a-1","ts":"2026-11-20T20:29:45.120Z","features":[1,2,3]}`,
		`{"rms":0.82,"kurtosis":3.9,"peak_hz":118.5}`, `{"peak_hz":1,"rms":2,"kurtosis":3,"ts":1732}`, `{"features":{"peak_hz":118.5,"rms":0.82,"kurtosis":3.9},"id":"p"}`,
		`{"ts":1732e3,"features":[123456789012345678901234567890,0.1234567890123456789,9007199254740993]}`, `[0.000000000000000000000001,1.7976931348623157e308,5e-324]`,
	}
	s := DefaultStream()
	s.Topics, s.Features = []string{"a"}, []string{"rms", "kurtosis", "peak_hz"}
	d := mustDecoder(f, s)
	c := d.codec.(jsonCodec)
	for _, text := range ordinary {
		if _, ok := c.scan([]byte(text), nil); !ok {
			f.Errorf("scan(%s) leaves it to the decoder", text)
		}
		f.Add([]byte(text))
	}
	for _, text := range []string{
		``, `[1,2]`, `[1,2,3,4]`, `[1,2,3]x`, `[01,2,3]`, `[1.,2,3]`, `[.5,2,3]`, `[+1,2,3]`, `[1e999,2,3]`, `[1,2,3`, `{"features":[1,2,3],}`, `[-,1,2]`, `[1,2,3,]`,
		`{"features":[1,2,3],"features":[1,2,3]}`, `{"rms":1,"rms":2,"kurtosis":3,"peak_hz":4}`, `{"rms":1,"kurtosis":3,"peak_hz":4,"features":[1,2,3]}`,
		`{"id":5,"features":[1,2,3]}`, `{"id":"","features":[1,2,3]}`, `{"label":"","features":[1,2,3]}`, `{"label":"a","id":"b"}`, `{"id":"\u0041","features":[1,2,3]}`,
		`{"features":[1,2,3],"x":1}`, `{"batch":[[1,2,3]]}`, `{"features":{"rms":1,"kurtosis":2}}`, `{"id":null,"features":[1,2,3]}`, `{"weight":2,"label":"a","features":[1,2,3]}`,
		`{"source":"me","label":"a","features":[1,2,3]}`, `{"ts":"` + strings.Repeat("9", 70) + `","features":[1,2,3]}`, `{"id":"` + strings.Repeat("9", 200) + `","features":[1,2,3]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, ok := c.scan(payload, []float64{9, 9, 9, 9})
		if !ok {
			return
		}
		want, err := c.decode(payload)
		if err != nil || len(want) != 1 || !reflect.DeepEqual(got, want[0]) {
			t.Errorf("scan(%q) = %+v, the decoder says %+v, %v", payload, got, want, err)
		}
		for i, v := range got.X {
			if math.Signbit(v) != math.Signbit(want[0].X[i]) {
				t.Errorf("scan(%q): feature %d is %v, the decoder says %v", payload, i, v, want[0].X[i])
			}
		}
	})
}

// oracleEntries are the entries of a payload as encoding/json sees them.
func oracleEntries(t *testing.T, payload []byte) []any {
	var v any
	numbers := json.NewDecoder(bytes.NewReader(payload))
	numbers.UseNumber()
	if err := numbers.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if object, ok := v.(map[string]any); ok {
		if batch, ok := object["batch"].([]any); ok {
			return batch
		}
	}
	if list, ok := v.([]any); ok {
		switch list[0].(type) {
		case map[string]any, []any:
			return list
		}
	}
	return []any{v}
}

func oracleFeature(entry any, name string, at int) float64 {
	if object, ok := entry.(map[string]any); ok {
		if f, ok := object["features"]; ok {
			entry = f
		}
	}
	switch v := entry.(type) {
	case map[string]any:
		entry = v[name]
	case []any:
		entry = v[at]
	}
	number, ok := entry.(json.Number)
	f, err := number.Float64()
	if !ok || err != nil {
		return math.NaN()
	}
	return f
}

func BenchmarkDecodeJSON(b *testing.B) {
	for _, n := range []int{3, 128} {
		s := DefaultStream()
		s.Topics, s.Dimension = []string{"a"}, n
		d := mustDecoder(b, s)
		var array, object []string
		for i := range n {
			array = append(array, fmt.Sprint(float64(i)*1.618033988749895))
			object = append(object, fmt.Sprintf(`"f%d":%v`, i, float64(i)*1.618033988749895))
		}
		for shape, payload := range map[string]string{
			"array":  `{"id":"p7-000123","features":[` + strings.Join(array, ",") + `]}`,
			"object": `{"id":"p7-000123","features":{` + strings.Join(object, ",") + `}}`,
		} {
			b.Run(fmt.Sprintf("%s/D=%d", shape, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := d.Decode([]byte(payload)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}
