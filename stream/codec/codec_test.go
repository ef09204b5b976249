package codec

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"edge/stream/field"
)

// plane is a stream of two features without names of their own.
func plane() Stream {
	s := DefaultStream()
	s.Topics, s.Dimension = []string{"a"}, 2
	return s
}

// asCBOR writes a JSON text as CBOR; whole numbers stay whole.
func asCBOR(t testing.TB, text string) string {
	t.Helper()
	numbers := json.NewDecoder(strings.NewReader(text))
	numbers.UseNumber()
	var v any
	if err := numbers.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var plain func(v any) any
	plain = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			if n, err := v.Int64(); err == nil {
				return n
			}
			f, err := v.Float64()
			if err != nil {
				f = math.Inf(1)
			}
			return f
		case []any:
			for i := range v {
				v[i] = plain(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = plain(v[k])
			}
		}
		return v
	}
	out, err := cbor.Marshal(plain(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// raw writes numbers in little-endian order.
func raw[T float32 | float64](numbers ...T) string {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, numbers); err != nil {
		panic(err) // numbers can be written
	}
	return b.String()
}

// inEveryFormat is one content in each format; "" if a format cannot express it. CBOR
// has the members of JSON. The streams are those of conforming.
type inEveryFormat struct {
	name                                string
	json, float32, float64, influx, csv string
	want                                []Reading
	refused                             Reason
}

var conformance = []inEveryFormat{
	{name: "sample", json: `[0.5,4,118.5]`, float32: raw[float32](0.5, 4, 118.5), float64: raw(0.5, 4, 118.5),
		influx: "vibration rms=0.5,kurtosis=4i,peak_hz=118.5", csv: ",,0.5,4,118.5,,,\n",
		want: []Reading{{X: []float64{0.5, 4, 118.5}}}},
	{name: "all digits", json: `{"rms":0.1,"kurtosis":1.7976931348623157e308,"peak_hz":-5e-324}`, float64: raw(0.1, math.MaxFloat64, -math.SmallestNonzeroFloat64),
		influx: "v rms=0.1,kurtosis=1.7976931348623157e308,peak_hz=-5e-324", csv: ",,0.1,1.7976931348623157e308,-5e-324,,,",
		want: []Reading{{X: []float64{0.1, math.MaxFloat64, -math.SmallestNonzeroFloat64}}}},
	{name: "everything", json: `{"id":"p7-1","ts":"2026-11-20T20:29:45Z","rms":1,"kurtosis":2,"peak_hz":3,"label":"ok","source":"operator","weight":1}`,
		influx: `vibration,host=gw,label=ok,source=operator id="p7-1",rms=1,kurtosis=2u,peak_hz=3,weight=1i 1795206585000000000`,
		csv:    "p7-1,2026-11-20T20:29:45Z,1,2,3,ok,operator,1\r\n",
		want:   []Reading{{ID: "p7-1", X: []float64{1, 2, 3}, Label: "ok", Source: "operator"}}},
	{name: "numeric id", json: `{"id":17,"features":[1,2,3]}`, influx: "v id=17i,rms=1,kurtosis=2,peak_hz=3", csv: "17,,1,2,3,,,",
		want: []Reading{{ID: "17", X: []float64{1, 2, 3}}}},
	{name: "late label", json: `{"id":"p7-1","label":"worn","source":"operator"}`, influx: `v id="p7-1",label="worn",source="operator"`,
		csv: "p7-1,,,,,worn,operator,", want: []Reading{{ID: "p7-1", Label: "worn", Source: "operator"}}},
	{name: "batch", json: `{"batch":[{"id":"a","features":[1,2,3]},[3,2,1]]}`, influx: "v id=\"a\",rms=1,kurtosis=2,peak_hz=3\n# comment\n\nv rms=3,kurtosis=2,peak_hz=1 17\n",
		csv: "a,,1,2,3,,,\n\n,,3,2,1,,,\n", want: []Reading{{ID: "a", X: []float64{1, 2, 3}}, {X: []float64{3, 2, 1}}}},
	{name: "two samples", json: `{"batch":[[1,2,3],[3,2,1]]}`, float32: raw[float32](1, 2, 3, 3, 2, 1), float64: raw[float64](1, 2, 3, 3, 2, 1),
		influx: "v rms=1,kurtosis=2,peak_hz=3\nv rms=3,kurtosis=2,peak_hz=1", csv: ",,1,2,3,,,\n,,3,2,1,,,",
		want: []Reading{{X: []float64{1, 2, 3}}, {X: []float64{3, 2, 1}}}},
	{name: "strange texts", json: `{"id":"a,\"b\" =c","features":[1,2,3],"label":"ä, ö"}`, influx: `v,label=ä\,\ ö id="a,\"b\" =c",rms=1,kurtosis=2,peak_hz=3`,
		csv: `"a,""b"" =c",,1,2,3,"ä, ö",,`, want: []Reading{{ID: `a,"b" =c`, X: []float64{1, 2, 3}, Label: "ä, ö"}}},
	{name: "byte order mark", json: "\ufeff[1,2,3]", influx: "\ufeffv rms=1,kurtosis=2,peak_hz=3", csv: "\ufeff,,1,2,3,,,",
		want: []Reading{{X: []float64{1, 2, 3}}}},
	{name: "byte order mark alone", json: "\ufeff", influx: "\ufeff", csv: "\ufeff\n", refused: Empty},

	{name: "weight", json: `{"features":[1,2,3],"label":"ok","weight":0.5}`, influx: `v rms=1,kurtosis=2,peak_hz=3,label="ok",weight=0.5`, csv: ",,1,2,3,ok,,0.5",
		want: []Reading{{X: []float64{1, 2, 3}, Label: "ok", Weight: 0.5}}},
	{name: "weight of no label", json: `{"features":[1,2,3],"weight":1e9}`, influx: `v rms=1,kurtosis=2,peak_hz=3,weight=1e9`, csv: ",,1,2,3,,,1e9",
		want: []Reading{{X: []float64{1, 2, 3}}}},

	{name: "nothing", refused: Empty},
	{name: "blank", json: " \n", influx: " \n", csv: " \n", refused: Empty},
	{name: "broken", json: `{"rms"`, influx: "v rms=", csv: `"`, refused: Malformed},
	{name: "invalid UTF-8", json: "{\"id\":\"\xff\",\"features\":[1,2,3]}", influx: "v id=\"\xff\",rms=1,kurtosis=2,peak_hz=3", csv: "\xff,,1,2,3,,,", refused: Malformed},
	{name: "too few", json: `[1,2]`, float32: raw[float32](1, 2), float64: raw[float64](1, 2), csv: ",,1,2", refused: WrongDimension},
	{name: "a bit too much", json: `[1,2,3,4]`, float32: raw[float32](1, 2, 3) + "x", float64: raw[float64](1, 2, 3, 4), csv: ",,1,2,3,,,,4", refused: WrongDimension},
	{name: "missing feature", json: `{"rms":1,"peak_hz":2}`, influx: "v rms=1,peak_hz=2", csv: ",,1,,2,,,", refused: MissingFeature},
	{name: "no feature", json: `{"id":"a"}`, influx: `v id="a"`, csv: "a,,,,,,,", refused: MissingFeature},
	{name: "unknown feature", json: `{"rms":1,"kurtosis":2,"peak_hz":3,"rsm":4}`, influx: "v rms=1,kurtosis=2,peak_hz=3,rsm=4", refused: UnknownFeature},
	{name: "repeated feature", json: `{"rms":1,"rms":1,"kurtosis":2,"peak_hz":3}`, influx: "v rms=1,rms=1,kurtosis=2,peak_hz=3", refused: Repeated},
	{name: "repeated tag", influx: `v,id=a,id=b rms=1,kurtosis=2,peak_hz=3`, refused: Repeated},
	{name: "repeated label", json: `{"label":"a","features":[1,2,3],"label":"b"}`, influx: `v,label=a rms=1,kurtosis=2,peak_hz=3,label="b"`, refused: Repeated},
	{name: "not a number", json: `{"rms":"x","kurtosis":2,"peak_hz":3}`, influx: `v rms="1",kurtosis=2,peak_hz=3`, csv: ",,x,2,3,,,", refused: NotANumber},
	{name: "true", json: `{"rms":true,"kurtosis":2,"peak_hz":3}`, influx: `v rms=true,kurtosis=2,peak_hz=3`, csv: ",,true,2,3,,,", refused: NotANumber},
	{name: "NaN", json: `[NaN,2,3]`, float32: raw(float32(math.NaN()), 2, 3), float64: raw(math.NaN(), 2, 3), csv: ",,NaN,2,3,,,", refused: NotANumber},
	{name: "infinite", json: `[1,2,-1e999]`, float32: raw(1, 2, float32(math.Inf(-1))), float64: raw(1, 2, math.Inf(-1)),
		influx: "v rms=1,kurtosis=2,peak_hz=-1e999", csv: ",,1,2,-1e999,,,", refused: NotANumber},
	{name: "hexadecimal", csv: ",,0x1p4,2,3,,,", refused: NotANumber},
	{name: "numeric label", json: `{"features":[1,2,3],"label":3}`, influx: "v rms=1,kurtosis=2,peak_hz=3,label=3i", csv: ",,1,2,3,3,,",
		want: []Reading{{X: []float64{1, 2, 3}, Label: "3"}}},
	{name: "numeric label as a float", json: `{"features":[1,2,3],"label":3.0}`, influx: "v rms=1,kurtosis=2,peak_hz=3,label=3", csv: ",,1,2,3,3,,",
		want: []Reading{{X: []float64{1, 2, 3}, Label: "3"}}},
	{name: "boolean label", json: `{"features":[1,2,3],"label":true}`, influx: "v rms=1,kurtosis=2,peak_hz=3,label=T", csv: ",,1,2,3,true,,",
		want: []Reading{{X: []float64{1, 2, 3}, Label: "true"}}},
	{name: "label with a fraction", json: `{"features":[1,2,3],"label":0.5}`, influx: "v rms=1,kurtosis=2,peak_hz=3,label=0.5", refused: BadLabel},
	{name: "long label", json: `{"features":[1,2,3],"label":"` + strings.Repeat("a", 257) + `"}`, influx: "v rms=1,kurtosis=2,peak_hz=3,label=\"" + strings.Repeat("a", 257) + `"`,
		csv: ",,1,2,3," + strings.Repeat("a", 257) + ",,", refused: BadLabel},
	{name: "label with a line break", json: `{"features":[1,2,3],"label":"a\nb"}`, influx: "v rms=1,kurtosis=2,peak_hz=3,label=\"a\nb\"", csv: ",,1,2,3,\"a\nb\",,", refused: BadLabel},
	{name: "weight below 0", json: `{"features":[1,2,3],"label":"ok","weight":-0.5}`, influx: `v rms=1,kurtosis=2,peak_hz=3,label="ok",weight=-0.5`, csv: ",,1,2,3,ok,,-0.5", refused: BadWeight},
	{name: "weight too large", json: `{"features":[1,2,3],"label":"ok","weight":101}`, influx: `v rms=1,kurtosis=2,peak_hz=3,label="ok",weight=101`, csv: ",,1,2,3,ok,,101", refused: BadWeight},
	{name: "weight is no number", json: `{"features":[1,2,3],"label":"ok","weight":"2"}`, influx: `v rms=1,kurtosis=2,peak_hz=3,label="ok",weight="two"`, csv: ",,1,2,3,ok,,two", refused: BadWeight},
	{name: "id is no text", json: `{"id":true,"features":[1,2,3]}`, influx: "v id=true,rms=1,kurtosis=2,peak_hz=3", refused: BadID},
	{name: "long id", json: `{"id":"` + strings.Repeat("a", 129) + `","features":[1,2,3]}`, influx: "v id=\"" + strings.Repeat("a", 129) + `",rms=1,kurtosis=2,peak_hz=3`,
		csv: strings.Repeat("a", 129) + ",,1,2,3,,,", refused: BadID},
	{name: "label without id", json: `{"label":"ok"}`, influx: `v label="ok"`, csv: ",,,,,ok,,", refused: BadID},
	{name: "one bad entry", json: `{"batch":[[1,2,3],{"rms":1,"kurtosis":2}]}`, influx: "v rms=1,kurtosis=2,peak_hz=3\nv rms=1,kurtosis=2", csv: ",,1,2,3,,,\n,,1,2,,,,", refused: MissingFeature},
	{name: "long batch", json: `{"batch":[` + strings.Repeat(`[1,2,3],`, 1000) + `[1,2,3]]}`, float32: strings.Repeat(raw[float32](1, 2, 3), 1001),
		float64: strings.Repeat(raw[float64](1, 2, 3), 1001), influx: strings.Repeat("v rms=1,kurtosis=2,peak_hz=3\n", 1001), csv: strings.Repeat(",,1,2,3,,,\n", 1001), refused: TooLarge},
	{name: "too large", json: "[1,2,3" + strings.Repeat(" ", 70000) + "]", float32: strings.Repeat("\x00", 70000), float64: strings.Repeat("\x00", 70000),
		influx: "#" + strings.Repeat(" ", 70000), csv: strings.Repeat(" ", 70000), refused: TooLarge},
}

// payloads returns a case in each format that can express it.
func (c *inEveryFormat) payloads(t testing.TB) map[string]string {
	all := map[string]string{FormatJSON: c.json, formatFloat32: c.float32, formatFloat64: c.float64, formatInflux: c.influx, formatCSV: c.csv}
	if c.name == "nothing" {
		all[FormatCBOR] = ""
		return all
	}
	for format, payload := range all {
		if payload == "" {
			delete(all, format)
		}
	}
	if json.Valid([]byte(c.json)) && utf8.ValidString(c.json) && c.refused != Repeated && c.refused != TooLarge {
		all[FormatCBOR] = asCBOR(t, c.json)
	}
	return all
}

// conforming is bearing in one of the formats.
func conforming(format string) Stream {
	s := bearing()
	if s.Format = format; format == formatCSV {
		s.Columns = []string{"id", "ts", "rms", "kurtosis", "peak_hz", "label", "source", "weight"}
	}
	return s
}

// compressed returns a payload in each compression.
func compressed(t testing.TB, payload string) map[string]string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(payload)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return map[string]string{compressionNone: payload, compressionGzip: b.String(), compressionZstd: string(e.EncodeAll([]byte(payload), nil))}
}

// Every format has the same readings and refusals, compressed or not.
func TestConformance(t *testing.T) {
	for _, c := range conformance {
		for format, payload := range c.payloads(t) {
			for how, packed := range compressed(t, payload) {
				for _, told := range []string{how, compressionAuto} {
					s := conforming(format)
					if s.Compression = told; told == compressionAuto && s.raw() {
						continue
					}
					got, err := mustDecoder(t, s).Decode([]byte(packed))
					where := fmt.Sprintf("%s: %s, %s as %s: Decode(%.80q)", c.name, format, how, told, payload)
					if c.refused != "" {
						if refusalOf(err).Reason != c.refused || len(refusalOf(err).Err.Error()) > 300 {
							t.Errorf("%s = %+v, %v, want a refusal for %s", where, got, err, c.refused)
						}
						continue
					}
					if err != nil {
						t.Errorf("%s = %v", where, err)
						continue
					}
					for i := range got { // which are as they came, and so differ
						got[i].RawID, got[i].RawTime = "", ""
					}
					if !reflect.DeepEqual(got, c.want) {
						t.Errorf("%s =\n%+v, want\n%+v", where, got, c.want)
					}
				}
			}
		}
	}
}

// CBOR is refused for the same contents as JSON.
func TestCBORRefusesWhatJSONRefuses(t *testing.T) {
	d := mustDecoder(t, conforming(FormatCBOR))
	compared := 0
	for _, c := range refusals {
		if !json.Valid([]byte(c.payload)) || !utf8.ValidString(c.payload) || len(c.payload) > int(d.maxPayload) || c.want == Repeated || strings.HasPrefix(c.name, "deep") {
			continue
		}
		compared++
		_, err := d.Decode([]byte(asCBOR(t, c.payload)))
		if refusalOf(err).Reason != c.want {
			t.Errorf("%s: Decode(CBOR of %.80s) = %v, want %s", c.name, c.payload, err, c.want)
		}
	}
	if compared < 35 {
		t.Errorf("only %d cases were compared", compared)
	}
}

func TestDecodeCBOR(t *testing.T) {
	d := mustDecoder(t, conforming(FormatCBOR))
	x := []float64{1, 2, 3}
	for name, c := range map[string]struct {
		payload string
		want    Reading
		refused Reason
	}{
		"float32 array":            {"\xd8\x55\x4c" + raw[float32](1, 2, 3), Reading{X: x}, ""},
		"float64 array, big end":   {"\xd8\x52\x58\x18" + "\x3f\xf0\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x40\x08\x00\x00\x00\x00\x00\x00", Reading{X: x}, ""},
		"bytes":                    {"\xd8\x40\x43\x01\x02\x03", Reading{X: x}, ""},
		"whole numbers":            {"\xd8\x4e\x4c\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00", Reading{X: x}, ""},
		"floats of 128 bits":       {"\xa1\x68features\xd8\x53\x50" + strings.Repeat("\x00", 16), Reading{}, Malformed},
		"an array in an array":     {"\xd8\x55\x83\x01\x02\x03", Reading{}, Malformed},
		"half, single and integer": {"\x83\xf9\x3c\x00\xfa\x40\x00\x00\x00\x03", Reading{X: x}, ""},
		"indefinite array":         {"\x9f\x01\x02\x03\xff", Reading{X: x}, ""},
		"time with a tag":          {"\xa2\x62ts\xc1\x1a\x65\x53\xf1\x00\x68features\x83\x01\x02\x03", Reading{X: x, RawTime: `"2023-11-14T22:13:20Z"`}, ""},
		"bytes for an id":          {"\xa2\x62id\x43\x01\x02\x03\x68features\x83\x01\x02\x03", Reading{ID: "AQID", X: x, RawID: `"AQID"`}, ""},
		"large number":             {"\x83\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02\x03", Reading{X: []float64{1 << 64, 2, 3}}, ""},
		"decimal fraction":         {"\x83\xc4\x82\x21\x19\x08\x65\x02\x03", Reading{X: []float64{21.49, 2, 3}}, ""},
		"negative bigfloat":        {"\x83\xc5\x82\x20\x22\x02\x03", Reading{X: []float64{-1.5, 2, 3}}, ""},
		"decimal of many digits":   {"\x83\xc4\x82\x01\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02\x03", Reading{X: []float64{1 << 64 * 10, 2, 3}}, ""},
		"number of 60 kB":          {"\x83\xc2\x59\xea\x60" + strings.Repeat("\xff", 60000) + "\x02\x03", Reading{}, NotANumber},
		"decimal of 60 kB":         {"\x83\xc4\x82\x39\xff\xff\xc2\x59\xea\x60" + strings.Repeat("\xff", 60000) + "\x02\x03", Reading{}, Malformed},
		"decimal beyond float64":   {"\x83\xc4\x82\x19\x01\x90\x01\x02\x03", Reading{}, NotANumber},
		"bigfloat beyond float64":  {"\x83\xc5\x82\x19\x13\x88\x01\x02\x03", Reading{}, NotANumber},
		"decimal without exponent": {"\x83\xc4\x81\x01\x02\x03", Reading{}, Malformed},
		"exponent with a fraction": {"\x83\xc4\x82\xf9\x3c\x00\x01\x02\x03", Reading{}, Malformed},
		"exponent without end":     {"\x83\xc5\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03", Reading{}, Malformed},
		"a byte too few":           {"\xd8\x55\x4b" + raw[float32](1, 2, 3)[1:], Reading{}, Malformed},
		"NaN":                      {"\x83\xf9\x7e\x00\x02\x03", Reading{}, NotANumber},
		"undefined":                {"\x83\xf7\x02\x03", Reading{}, NotANumber},
		"repeated key":             {"\xa2\x63rms\x01\x63rms\x01", Reading{}, Repeated},
		"repeated number as key":   {"\xa2\x01\x01\x611\x01", Reading{}, Repeated},
		"key that is an array":     {"\xa1\x81\x01\x01", Reading{}, Malformed},
		"key that is a fraction":   {"\xa1\xf9\x3c\x00\x01", Reading{}, Malformed},
		"two items":                {"\x83\x01\x02\x03\x01", Reading{}, Malformed},
		"cut":                      {"\x83\x01\x02", Reading{}, Malformed},
		"length that lies":         {"\x9a\xff\xff\xff\xff\x01", Reading{}, Malformed},
		"deep":                     {strings.Repeat("\x81", 60000) + "\x01", Reading{}, Malformed},
		"invalid UTF-8":            {"\xa1\x62id\x61\xff", Reading{}, Malformed},
		"JSON":                     {`{"rms":1}`, Reading{}, Malformed},
	} {
		got, err := d.Decode([]byte(c.payload))
		var r *Refusal
		switch {
		case errors.As(err, &r):
			if r.Reason != c.refused {
				t.Errorf("%s: Decode(%.40q) refused with %v, want %s", name, c.payload, err, c.refused)
			}
		case c.refused != "" || !reflect.DeepEqual(got, []Reading{c.want}):
			t.Errorf("%s: Decode(%.40q) = %+v, want %+v%s", name, c.payload, got, c.want, c.refused)
		}
	}
}

// Names of cells, as fields and columns give them.
func TestDecodeRenamed(t *testing.T) {
	influx := conforming(formatInflux)
	influx.Fields, influx.ID = map[string]string{"rms": `cpu\.total`}, "machine"
	csv := conforming(formatCSV)
	csv.Columns, csv.Fields, csv.Label = []string{"", "k", "kurtosis", "peak_hz", "class"}, map[string]string{"rms": "k"}, "class"
	bare := conforming(formatCSV)
	bare.Columns = nil
	for name, c := range map[string]struct {
		stream  Stream
		payload string
		want    Reading
	}{
		"influx": {influx, `cpu,machine=p7,rack=3 cpu.total=1,kurtosis=2,peak_hz=3,idle=97,rms="x" 17`, Reading{ID: "p7", X: []float64{1, 2, 3}, RawTime: "17"}},
		"csv":    {csv, "whatever,1, 2 ,3,ok", Reading{X: []float64{1, 2, 3}, Label: "ok"}},
		"bare":   {bare, "1,2,3", Reading{X: []float64{1, 2, 3}}},
	} {
		got, err := mustDecoder(t, c.stream).Decode([]byte(c.payload))
		if err != nil || !reflect.DeepEqual(got, []Reading{c.want}) {
			t.Errorf("%s: Decode(%s) = %+v, %v, want %+v", name, c.payload, got, err, c.want)
		}
	}
}

func TestDecodeValue(t *testing.T) {
	s := plane()
	s.Format, s.TopicTemplate = FormatValue, "{feature}"
	s.Topics = []string{"+"}
	d := mustDecoder(t, s)
	for payload, want := range map[string]float64{"21.5": 21.5, "\ufeff21.5": 21.5, " -3\n": -3, "1e3": 1000} {
		got, err := d.Decode([]byte(payload))
		if err != nil || !reflect.DeepEqual(got, []Reading{{X: []float64{want}}}) {
			t.Errorf("Decode(%q) = %+v, %v, want %v", payload, got, err, want)
		}
	}
	for payload, want := range map[string]Reason{"": Empty, " ": Empty, "ON": NotANumber, "nan": NotANumber, "21,5": NotANumber, "1e999": NotANumber, "[1]": NotANumber, "1 2": NotANumber} {
		_, err := d.Decode([]byte(payload))
		if refusalOf(err).Reason != want {
			t.Errorf("Decode(%q) = %v, want %s", payload, err, want)
		}
	}
}

// A payload that decompresses to more than the limit is refused before it is
// decompressed.
func TestCompressionBombs(t *testing.T) {
	s := bearing()
	s.Compression, s.MaxPayload = compressionAuto, 4*field.KiB
	d := mustDecoder(t, s)
	bombs := compressed(t, "["+strings.Repeat(" ", 2<<20)+"1,2,3]")
	packed := bombs[compressionGzip]
	if len(packed) > 4<<10 {
		t.Fatalf("the bomb has %d bytes: the limit for what is packed would refuse it", len(packed))
	}
	// A stream of unknown length, as a pipe through zstd has it.
	var b bytes.Buffer
	e, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	e.Write([]byte("[1,2,"))
	e.Flush()
	e.Write([]byte("3]"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Decode(b.Bytes()); err != nil || !reflect.DeepEqual(got, []Reading{{X: []float64{1, 2, 3}}}) {
		t.Errorf("a zstd frame of unknown length: %+v, %v", got, err)
	}
	e.Reset(&b)
	b.Reset()
	for range 1000 {
		e.Write(bytes.Repeat([]byte(" "), 64<<10))
	}
	e.Close()
	for name, payload := range map[string]string{
		"gzip": bombs[compressionGzip], "zstd": bombs[compressionZstd], "zstd of unknown length": b.String(),
		"two members": strings.Repeat(compressed(t, strings.Repeat(" ", 4000))[compressionGzip], 2),
		"two frames":  strings.Repeat(compressed(t, strings.Repeat(" ", 4000))[compressionZstd], 2),
	} {
		_, err := d.Decode([]byte(payload))
		if refusalOf(err).Reason != TooLarge {
			t.Errorf("%s, %d bytes: %v, want too_large", name, len(payload), err)
		}
	}
	for name, c := range map[string]struct{ compression, payload string }{
		"cut gzip":    {compressionGzip, packed[:len(packed)-1]},
		"cut zstd":    {compressionZstd, compressed(t, "[1,2,3]")[compressionZstd][:9]},
		"plain":       {compressionGzip, "[1,2,3]"},
		"other one":   {compressionZstd, compressed(t, "[1,2,3]")[compressionGzip]},
		"twice":       {compressionGzip, compressed(t, compressed(t, "[1,2,3]")[compressionGzip])[compressionGzip]},
		"wrong check": {compressionGzip, compressed(t, "[1,2,3]")[compressionGzip][:20] + "\x00\x00\x00\x00\x07\x00\x00\x00"},
	} {
		s := bearing()
		s.Compression = c.compression
		s.MaxPayload = 16 * field.MiB
		_, err := mustDecoder(t, s).Decode([]byte(c.payload))
		if refusalOf(err).Reason != Malformed {
			t.Errorf("%s: %v, want malformed", name, err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	const n = 32
	numbers := make([]float64, n)
	var fields, cells, objects []string
	for i := range numbers {
		numbers[i] = float64(i) * 1.618033988749895
		cells = append(cells, fmt.Sprint(numbers[i]))
		fields = append(fields, fmt.Sprintf("f%d=%v", i, numbers[i]))
		objects = append(objects, fmt.Sprintf(`"f%d":%v`, i, numbers[i]))
	}
	object := "{" + strings.Join(objects, ",") + "}"
	for format, payload := range map[string]string{
		FormatJSON: object, FormatCBOR: asCBOR(b, object), formatFloat64: raw(numbers...),
		formatInflux: "v " + strings.Join(fields, ","), formatCSV: strings.Join(cells, ","),
	} {
		for how, packed := range compressed(b, payload) {
			b.Run(fmt.Sprintf("%s/%s", format, how), func(b *testing.B) {
				s := DefaultStream()
				s.Topics, s.Dimension, s.Format, s.Compression = []string{"a"}, n, format, how
				d := mustDecoder(b, s)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := d.Decode([]byte(packed)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}
