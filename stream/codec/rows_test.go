package codec

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/stream/signal"
)

// accelerometer is a stream of three numeric signals.
func accelerometer(format string) Stream {
	s := DefaultStream()
	s.Topics, s.Stage.Signals, s.Format, s.Time = []string{"a"}, []string{"x", "y", "z"}, format, "t"
	return s
}

var nan = math.NaN()

// sameReadings compares readings, NaN being equal to NaN.
func sameReadings(a, b []Reading) bool {
	return slices.EqualFunc(a, b, func(a, b Reading) bool {
		x := slices.EqualFunc(a.X, b.X, func(v, w float64) bool { return v == w || v != v && w != w })
		a.X, b.X = nil, nil
		return x && reflect.DeepEqual(a, b)
	})
}

// inEveryShape is one content of several rows of the accelerometer in each format.
var inEveryShape = []struct {
	name    string
	format  string
	rate    Rate
	payload string
	want    []Reading
	refused Reason
	cause   string // part of the refusal
}{
	{name: "object", format: FormatJSON, payload: `{"x":1,"y":2,"z":3,"battery":97}`, want: rowsOf(1, 2, 3)},
	{name: "everything beside it", format: FormatJSON, payload: `{"id":"dev-1","t":17,"weight":"x","source":5,"label":"ok","z":3,"x":1,"y":2,"update":{"a":[1]}}`,
		want: []Reading{{X: []float64{1, 2, 3}, RawTime: "17", Label: "ok"}}},
	{name: "numeric label", format: FormatJSON, payload: `{"x":1,"y":2,"z":3,"label":3.0}`, want: []Reading{{X: []float64{1, 2, 3}, Label: "3"}}},
	{name: "array", format: FormatJSON, payload: `[1,"2",true]`, want: rowsOf(1, 2, 1)},
	{name: "arrays", format: FormatJSON, payload: `[[1,2,3],[4,5,6]]`, want: rowsOf(1, 2, 3, 4, 5, 6)},
	{name: "objects", format: FormatJSON, payload: `[{"x":1,"y":2,"z":3},{"x":4,"y":5,"z":6}]`, want: rowsOf(1, 2, 3, 4, 5, 6)},
	{name: "array a signal", format: FormatJSON, payload: `{"x":[1,4],"y":[2,5],"z":[3,6]}`, want: rowsOf(1, 2, 3, 4, 5, 6)},
	{name: "one value for every row", format: FormatJSON, payload: `{"x":[1,4],"y":2,"z":[3,6]}`, want: rowsOf(1, 2, 3, 4, 2, 6)},
	{name: "features", format: FormatJSON, payload: `{"features":[[1,2,3],[4,5,6]]}`, want: rowsOf(1, 2, 3, 4, 5, 6)},
	{name: "features by name", format: FormatJSON, payload: `{"features":{"x":[1,4],"y":[2,5],"z":[3,6]},"x":9}`, want: rowsOf(1, 2, 3, 4, 5, 6)},
	{name: "batch", format: FormatJSON, payload: `{"batch":[[1,2,3],{"x":[4,7],"y":[5,8],"z":[6,9]}],"label":"ok"}`,
		want: []Reading{{X: []float64{1, 2, 3}, Label: "ok"}, {X: []float64{4, 5, 6}, Label: "ok"}, {X: []float64{7, 8, 9}, Label: "ok"}}},
	{name: "no label", format: FormatJSON, payload: `{"batch":[[1,2,3],{"x":[4,7],"y":[5,8],"z":[6,9],"label":null},{"x":1,"y":2,"z":3,"label":"b"}],"label":"ok"}`,
		want: []Reading{{X: []float64{1, 2, 3}, Label: "ok"}, {X: []float64{4, 5, 6}, Null: true}, {X: []float64{7, 8, 9}, Null: true}, {X: []float64{1, 2, 3}, Label: "b"}}},
	{name: "no label for all", format: FormatJSON, payload: `{"batch":[[1,2,3]],"label":null}`, want: []Reading{{X: []float64{1, 2, 3}, Null: true}}},
	{name: "rate", format: FormatJSON, rate: Rate{Hz: 32}, payload: `{"t":17,"x":[1,4,7],"y":[2,5,8],"z":[3,6,9]}`,
		want: []Reading{{X: []float64{1, 2, 3}, RawTime: "17", Back: 62500000}, {X: []float64{4, 5, 6}, RawTime: "17", Back: 31250000}, {X: []float64{7, 8, 9}, RawTime: "17"}}},
	{name: "rate of arrivals", format: FormatJSON, rate: Rate{Hz: 4}, payload: `[[1,2,3],[4,5,6]]`, want: []Reading{{X: []float64{1, 2, 3}, Back: 25e7}, {X: []float64{4, 5, 6}}}},
	{name: "rate in the payload", format: FormatJSON, rate: Rate{Path: "meta.fs"}, payload: `{"meta":{"fs":10},"x":[1,4],"y":[2,5],"z":[3,6]}`,
		want: []Reading{{X: []float64{1, 2, 3}, Back: 1e8}, {X: []float64{4, 5, 6}}}},
	{name: "rate of one row", format: FormatJSON, rate: Rate{Path: "fs"}, payload: `{"x":1,"y":2,"z":3}`, want: rowsOf(1, 2, 3)},
	{name: "times of rows", format: FormatJSON, rate: Rate{Hz: 4}, payload: `{"t":[17,18],"x":[1,4],"y":[2,5],"z":[3,6]}`,
		want: []Reading{{X: []float64{1, 2, 3}, RawTime: "17"}, {X: []float64{4, 5, 6}, RawTime: "18"}}},
	{name: "times of entries", format: FormatJSON, rate: Rate{Hz: 4}, payload: `{"t":20,"batch":[{"t":17,"x":[1,4],"y":[2,5],"z":[3,6]},[7,8,9],[1,1,1]]}`,
		want: []Reading{{X: []float64{1, 2, 3}, RawTime: "17", Back: 25e7}, {X: []float64{4, 5, 6}, RawTime: "17"}, {X: []float64{7, 8, 9}, RawTime: "20", Back: 25e7}, {X: []float64{1, 1, 1}, RawTime: "20"}}},
	{name: "time that is none", format: FormatJSON, payload: `{"t":true,"x":1,"y":2,"z":3}`, want: []Reading{{X: []float64{1, 2, 3}, RawTime: "true"}}},
	{name: "time that is an object", format: FormatJSON, payload: `{"t":{},"batch":[[1,2,3]]}`, want: []Reading{{X: []float64{1, 2, 3}, RawTime: "{}"}}},
	{name: "long time", format: FormatJSON, payload: `{"t":"` + strings.Repeat("1", 64) + `","x":1,"y":2,"z":3}`, want: []Reading{{X: []float64{1, 2, 3}, RawTime: `"` + strings.Repeat("1", 64) + `"`}}},
	{name: "no time", format: FormatJSON, payload: `{"t":null,"x":1,"y":2,"z":3}`, want: rowsOf(1, 2, 3)},
	{name: "decimal fraction", format: FormatCBOR, payload: "\xa3\x61x\xc4\x82\x21\x19\x08\x65\x61y\x02\x61z\x03", want: rowsOf(21.49, 2, 3)},
	{name: "typed arrays", format: FormatCBOR, payload: "\xa3\x61x\xd8\x55\x48" + raw[float32](1, 4) + "\x61y\xd8\x41\x44\x00\x02\x00\x05" + "\x61z\xd8\x4e\x48\x03\x00\x00\x00\xfa\xff\xff\xff", want: rowsOf(1, 2, 3, 4, 5, -6)},
	{name: "more typed arrays", format: FormatCBOR, payload: "\xa3\x61x\xd8\x40\x42\x01\xff" + "\x61y\xd8\x48\x42\x02\xff" + "\x61z\xd8\x52\x50\x3f\xf0\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00", want: rowsOf(1, 2, 1, 255, -1, 2)},
	{name: "typed arrays of 8 bytes", format: FormatCBOR, payload: "\xa3\x61x\xd8\x43\x48\x00\x00\x00\x00\x00\x00\x01\x00" + "\x61y\xd8\x4f\x48\xff\xff\xff\xff\xff\xff\xff\xff" + "\x61z\xd8\x4a\x44\xff\xff\xff\xfe", want: rowsOf(256, -1, -2)},
	{name: "typed arrays of 2 bytes", format: FormatCBOR, payload: "\xa3\x61x\xd8\x45\x42\x01\x02" + "\x61y\xd8\x4d\x42\xff\xff" + "\x61z\xd8\x47\x48\x00\x01\x00\x00\x00\x00\x00\x00", want: rowsOf(513, -1, 256)},
	{name: "typed arrays of halves", format: FormatCBOR, payload: "\xa3\x61x\xd8\x50\x44\x3c\x00\xc1\x00" + "\x61y\xd8\x54\x44\x00\x03\xff\x7b" + "\x61z\xd8\x50\x44\x00\x01\xbc\x00", want: rowsOf(1, math.Ldexp(768, -24), 0x1p-24, -2.5, 65504, -1)},
	{name: "infinite half", format: FormatCBOR, payload: "\xd8\x54\x46\x00\x3c\x00\x7c\x00\x3c", refused: NotANumber, cause: "beyond the range"},
	{name: "float32", format: formatFloat32, rate: Rate{Hz: 1000}, payload: raw[float32](1, 2, 3, 4, 5, 6), want: []Reading{{X: []float64{1, 2, 3}, Back: 1e6}, {X: []float64{4, 5, 6}}}},
	{name: "float64", format: formatFloat64, payload: raw[float64](1, 2, 3, 4, 5, 6), want: rowsOf(1, 2, 3, 4, 5, 6)},
	{name: "csv", format: formatCSV, payload: "1,2,3\n4,5,ON\n", want: rowsOf(1, 2, 3, 4, 5, 1)},
	{name: "influx", format: formatInflux, payload: "cpu,host=a x=1,y=2i,z=t,idle=97 17\nmem used=5i 18\ncpu x=4,y=\"5\",z=6 19\n",
		want: []Reading{{X: []float64{1, 2, 1}, RawTime: "17"}, {X: []float64{4, 5, 6}, RawTime: "19"}}},

	{name: "arrays of other lengths", format: FormatJSON, payload: `{"x":[1,4],"y":[2],"z":[3,6]}`, refused: WrongDimension, cause: `signal "y" has 1 values, "x" has 2: want arrays of one length`},
	{name: "empty arrays", format: FormatJSON, payload: `{"x":[],"y":[],"z":[]}`, refused: Empty},
	{name: "no array", format: FormatJSON, payload: `[]`, refused: WrongDimension},
	{name: "short array", format: FormatJSON, payload: `[1,2]`, refused: WrongDimension, cause: "2 values, want 3"},
	{name: "short row", format: FormatJSON, payload: `[[1,2,3],[1,2]]`, refused: WrongDimension, cause: "entry 1: 2 values, want 3"},
	{name: "row of another kind", format: FormatJSON, payload: `[[1,2,3],7]`, refused: Malformed, cause: "entry 1: want an object or an array, not the number 7"},
	{name: "deeper arrays", format: FormatJSON, payload: `[[[1,2,3]]]`, refused: NotANumber, cause: `entry 0: signal "x" is an array`},
	{name: "other times", format: FormatJSON, payload: `{"t":[17],"x":[1,4],"y":[2,5],"z":[3,6]}`, refused: WrongDimension, cause: "1 times at t, want 2"},
	{name: "no rate", format: FormatJSON, rate: Rate{Path: "fs"}, payload: `{"x":[1,4],"y":[2,5],"z":[3,6]}`, refused: MissingFeature, cause: "2 rows without a rate, which should be at fs"},
	{name: "rate 0", format: FormatJSON, rate: Rate{Path: "fs"}, payload: `{"fs":0,"x":1,"y":2,"z":3}`, refused: NotANumber, cause: "the rate at fs is the number 0"},
	{name: "rate below a row a year", format: FormatJSON, rate: Rate{Path: "fs"}, payload: `{"fs":1e-9,"x":[1,4],"y":[2,5],"z":[3,6]}`, refused: NotANumber, cause: "longer than a year"},
	{name: "missing", format: FormatJSON, payload: `{"x":1,"y":2}`, refused: MissingFeature, cause: `signal "z" is missing; hold keeps last values, and on_missing: marginalise`},
	{name: "null", format: FormatJSON, payload: `{"x":1,"y":2,"z":null}`, refused: MissingFeature},
	{name: "unavailable", format: formatInflux, payload: `v x=1,y=2,z="unavailable"`, refused: MissingFeature},
	{name: "none", format: FormatJSON, payload: `{"temperature":21,"battery":97}`, refused: MissingFeature, cause: "no signal is in the payload: it has temperature, battery; a path in fields finds a signal under another key"},
	{name: "label alone", format: FormatJSON, payload: `{"label":"ok"}`, refused: MissingFeature},
	{name: "other lines", format: formatInflux, payload: "mem used=5i 18", refused: MissingFeature, cause: "no line has the field of a signal"},
	{name: "twice", format: FormatJSON, payload: `{"x":1,"y":2,"z":3,"n":1,"n":2}`, refused: Repeated},
	{name: "part of a row", format: formatFloat32, payload: raw[float32](1, 2), refused: WrongDimension},
	{name: "raw infinity", format: formatFloat64, payload: raw(1, 2, math.Inf(1)), refused: NotANumber},
	{name: "too many rows", format: FormatJSON, payload: `[` + strings.Repeat(`[1,2,3],`, 1000) + `[1,2,3]]`, refused: TooLarge, cause: "more than 1000 rows"},
	{name: "too many values", format: FormatJSON, payload: `{"x":[` + strings.Repeat(`1,`, 1000) + `1],"y":2,"z":3}`, refused: TooLarge},
	{name: "word", format: FormatJSON, payload: `"on"`, refused: Malformed},
}

// rowsOf returns rows of three signals.
func rowsOf(x ...float64) []Reading {
	var all []Reading
	for row := range slices.Chunk(x, 3) {
		all = append(all, Reading{X: row})
	}
	return all
}

func TestRows(t *testing.T) {
	for _, c := range inEveryShape {
		formats := map[string]string{c.format: c.payload}
		if c.format == FormatJSON && json.Valid([]byte(c.payload)) && c.refused != Repeated {
			formats[FormatCBOR] = asCBOR(t, c.payload)
		}
		for format, payload := range formats {
			s := accelerometer(format)
			s.Raw.Rate = c.rate
			got, err := mustDecoder(t, s).Decode([]byte(payload))
			if c.refused != "" {
				if refusalOf(err).Reason != c.refused || format == FormatJSON && !strings.Contains(err.Error(), c.cause) {
					t.Errorf("%s as %s: %+v, %v, want %s: %s", c.name, format, got, err, c.refused, c.cause)
				}
				continue
			}
			if err != nil || !sameReadings(got, c.want) {
				t.Errorf("%s as %s:\n%+v, %v, want\n%+v", c.name, format, got, err, c.want)
			}
		}
	}
}

// Without hold a missing signal is refused or, by on_missing, NaN; with hold an absent one
// is marked.
func TestRowsMissing(t *testing.T) {
	for _, c := range []struct {
		name, format, payload string
		x                     []float64 // nil: refused even so
		absent                []bool
	}{
		{"absent", FormatJSON, `{"x":1,"z":3}`, []float64{1, nan, 3}, []bool{false, true, false}},
		{"null", FormatJSON, `{"x":1,"y":null,"z":3}`, []float64{1, nan, 3}, nil},
		{"null and absent", FormatJSON, `{"y":"unknown","z":3}`, []float64{nan, nan, 3}, []bool{true, false, false}},
		{"array", FormatJSON, `[1,"",3]`, []float64{1, nan, 3}, nil},
		{"none", FormatJSON, `{"w":1}`, nil, nil},
		{"NaN", formatFloat64, raw(1, nan, 3), []float64{1, nan, 3}, nil},
		{"empty cell", formatCSV, "1,,3", []float64{1, nan, 3}, []bool{false, true, false}},
		{"word in a cell", formatCSV, "1,unavailable,3", []float64{1, nan, 3}, nil},
		{"field", formatInflux, "v x=1,z=3", []float64{1, nan, 3}, []bool{false, true, false}},
	} {
		for _, mode := range []string{"reject", "marginalise", "hold"} {
			s := accelerometer(c.format)
			switch mode {
			case "hold":
				s.Stage.Hold.Every = time.Second
			default:
				s.OnMissing = mode
			}
			got, err := mustDecoder(t, s).Decode([]byte(c.payload))
			if c.x == nil || mode == "reject" {
				if refusalOf(err).Reason != MissingFeature {
					t.Errorf("%s, %s: %+v, %v, want a refusal", c.name, mode, got, err)
				}
				continue
			}
			if want := []Reading{{X: c.x, Absent: c.absent}}; err != nil || !sameReadings(got, want) {
				t.Errorf("%s, %s: %+v, %v, want %+v", c.name, mode, got, err, want)
			}
		}
	}
	all := accelerometer(FormatJSON)
	all.OnMissing = OnMissingMarginalise
	if got, err := mustDecoder(t, all).Decode([]byte(`[null,null,null]`)); err == nil {
		t.Errorf("a row without a value: %+v", got)
	}
	all.Stage.Hold.Every = time.Second
	if got, err := mustDecoder(t, all).Decode([]byte(`[null,null,null]`)); err != nil || !sameReadings(got, []Reading{{X: []float64{nan, nan, nan}}}) {
		t.Errorf("a row of missing values that is held: %+v, %v", got, err)
	}
}

// The only signal of a stream has a row for each number of an array.
func TestRowsOfOneSignal(t *testing.T) {
	s := accelerometer(FormatJSON)
	s.Stage.Signals, s.Raw.Rate = []string{"a"}, Rate{Hz: 2}
	got, err := mustDecoder(t, s).Decode([]byte(`[1,"2",3]`))
	want := []Reading{{X: []float64{1}, Back: 1e9}, {X: []float64{2}, Back: 5e8}, {X: []float64{3}}}
	if err != nil || !sameReadings(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	s.Format, s.Raw.Rate = FormatValue, Rate{}
	if got, err := mustDecoder(t, s).Decode([]byte("ON")); err != nil || !sameReadings(got, []Reading{{X: []float64{1}}}) {
		t.Errorf("a value: %+v, %v", got, err)
	}
}

// The rows of an input have the signals of all of them.
func TestRowsOfInputs(t *testing.T) {
	s := DefaultStream()
	s.Raw.Inputs = Inputs{
		{Name: "motion", Topics: []string{"z/motion"}, Fields: Paths{{"motion", "occupancy"}, {"lux", "illuminance"}}},
		{Name: "mode", Topics: []string{"m"}, Values: map[string]Value{"mode": {OneHot: []string{"off", "on"}, Scale: 1}}},
		{Name: "room", Topics: []string{"esp/+/state"}, TopicTemplate: "esp/{signal}/state", Format: FormatValue, Signals: []string{"voc", "co2"}},
	}
	s.Stage.Hold.On = []string{HoldAny}
	for i := range s.Raw.Inputs {
		in := DefaultInput()
		of := &s.Raw.Inputs[i]
		of.Compression, of.Time, of.MaxPayload, of.AllowRetained = in.Compression, in.Time, in.MaxPayload, in.AllowRetained
		if of.Format == "" {
			of.Format = in.Format
		}
	}
	d := mustDecoder(t, s)
	if want := []string{"motion", "lux", "mode.off", "mode.on", "voc", "co2"}; !reflect.DeepEqual(d.signals.names, want) || !reflect.DeepEqual(d.Inputs()[1].signals.names, want) {
		t.Errorf("signals %q, want %q", d.signals.names, want)
	}
	if got, err := d.Decode([]byte(`{"occupancy":true}`)); refusalOf(err).Reason != Unrouted {
		t.Errorf("a message of no input: %+v, %v", got, err)
	}
	for _, c := range []struct {
		input          int
		topic, payload string
		x              []float64
		absent         []bool
	}{
		{0, "z/motion", `{"occupancy":true,"illuminance":12,"battery":9}`, []float64{1, 12, nan, nan, nan, nan}, []bool{false, false, true, true, true, true}},
		{0, "z/motion", `{"illuminance":12}`, []float64{nan, 12, nan, nan, nan, nan}, []bool{true, false, true, true, true, true}},
		{1, "m", `{"mode":"on"}`, []float64{nan, nan, 0, 1, nan, nan}, []bool{true, true, false, false, true, true}},
		{2, "esp/co2/state", "415 ", []float64{nan, nan, nan, nan, nan, 415}, []bool{true, true, true, true, true, false}},
	} {
		got, err := d.Inputs()[c.input].DecodeMessage(new(Scratch), c.topic, []byte(c.payload))
		if err != nil || !sameReadings(got, []Reading{{X: c.x, Absent: c.absent}}) {
			t.Errorf("%s %s: %+v, %v, want %v %v", c.topic, c.payload, got, err, c.x, c.absent)
		}
	}
	if got, err := d.Inputs()[2].DecodeMessage(new(Scratch), "esp/pm/state", []byte("5")); refusalOf(err).Reason != UnknownFeature {
		t.Errorf("a value of no signal: %+v, %v", got, err)
	}
}

// A row of numbers allocates nothing.
func TestRowsAllocateNothing(t *testing.T) {
	scaled := accelerometer(FormatJSON)
	scaled.Raw.Values = map[string]Value{"x": {Scale: 2}}
	for name, c := range map[string]struct {
		stream  Stream
		payload string
	}{
		"object": {accelerometer(FormatJSON), `{"x":0.12,"y":-9.81,"z":1e2,"battery":97,"state":"ON","fault":null}`},
		"scaled": {scaled, `{"x":0.12,"y":-9.81,"z":1e2}`},
		"array":  {accelerometer(FormatJSON), `[0.12,-9.81,100]`},
	} {
		d, s, payload := mustDecoder(t, c.stream), new(Scratch), []byte(c.payload)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := d.DecodeMessage(s, "a", payload); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// The scanner reads a row as the general decoder does.
func FuzzScanRow(f *testing.F) {
	s := accelerometer(FormatJSON)
	s.Raw.Values = map[string]Value{"y": {Scale: 0.5, Offset: 1}, "z": {Unit: "m", Scale: 1}}
	d := mustDecoder(f, s)
	c := d.codec.(jsonCodec)
	for _, text := range []string{`{"x":1,"y":2,"z":3}`, `{"t":17.5,"z":1,"a":"b","x":-2e3,"n":true,"y":0.1,"label":"ok","m":null}`, `[1,2,3]`, ` { "t":"2026-11-22T17:00:00" , "x":1,"y":2,"z":3 } `} {
		if _, ok := c.scan([]byte(text), nil); !ok {
			f.Errorf("scan(%s) leaves it to the decoder", text)
		}
		f.Add([]byte(text))
	}
	for _, shape := range inEveryShape {
		if shape.format == FormatJSON && len(shape.payload) < 1000 {
			f.Add([]byte(shape.payload))
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, ok := c.scan(payload, []float64{9, 9, 9, 9})
		if !ok {
			return
		}
		want, err := c.decode(payload)
		if err != nil || !sameReadings(want, []Reading{got}) {
			t.Errorf("scan(%q) = %+v, the decoder says %+v, %v", payload, got, want, err)
		}
	})
}

// FuzzRows looks for payloads of any format whose rows are not complete.
func FuzzRows(f *testing.F) {
	all := []string{FormatJSON, FormatCBOR, formatFloat32, formatFloat64, formatInflux, formatCSV, FormatValue}
	for _, c := range inEveryShape {
		if len(c.payload) < 1000 {
			f.Add(uint8(slices.Index(all, c.format)), []byte(c.payload))
		}
		if c.format == FormatJSON && json.Valid([]byte(c.payload)) && len(c.payload) < 1000 {
			f.Add(uint8(1), []byte(asCBOR(f, c.payload)))
		}
	}
	var decoders []*Decoder
	for _, format := range all {
		for _, s := range []Stream{accelerometer(format), home(format)} {
			s.Raw.Rate.Hz, s.Stage.Signals = 50, slices.Clone(s.Stage.Signals)
			if s.raw() {
				s.Raw.Values = nil
			}
			if format == FormatValue {
				s.Topics, s.TopicTemplate = []string{"+"}, SignalLevel
			}
			decoders = append(decoders, mustDecoder(f, s))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, payload []byte) {
		d := decoders[int(which)%len(decoders)]
		topic := d.names[int(which)%len(d.names)]
		readings, err := d.DecodeMessage(new(Scratch), topic, payload)
		if err != nil {
			checkRefusal(t, payload, err)
			return
		}
		again, err := d.DecodeMessage(new(Scratch), topic, slices.Clone(payload))
		if err != nil || !sameReadings(again, readings) {
			t.Fatalf("Decode(%q) = %+v, then %+v, %v", payload, readings, again, err)
		}
		if len(readings) == 0 || len(readings) > d.maxBatch {
			t.Fatalf("Decode(%q) has %d rows", payload, len(readings))
		}
		for _, r := range readings {
			checkRow(t, payload, r, d)
		}
	})
}

// checkRow fails if a row is not of S numbers, each finite or missing, or has no signal.
func checkRow(t *testing.T, payload []byte, r Reading, d *Decoder) {
	t.Helper()
	if len(r.X) != len(d.signals.names) || r.Absent != nil && len(r.Absent) != len(r.X) || r.Back < 0 || r.ID != "" {
		t.Fatalf("Decode(%q) = %+v", payload, r)
	}
	present := 0
	for i, v := range r.X {
		absent := r.Absent != nil && r.Absent[i]
		if math.IsInf(v, 0) || absent && v == v {
			t.Fatalf("Decode(%q): signal %d is %v, absent %t", payload, i, v, absent)
		}
		if !absent {
			present++
		}
	}
	if present == 0 {
		t.Fatalf("Decode(%q) = %+v: no signal", payload, r)
	}
	if r.RawTime != "" && !json.Valid([]byte(r.RawTime)) {
		t.Fatalf("Decode(%q) passes on %q, which is not JSON", payload, r.RawTime)
	}
}

func BenchmarkRows(b *testing.B) {
	var columns []string
	for _, name := range []string{"x", "y", "z"} {
		columns = append(columns, `"`+name+`":[`+strings.Repeat("-9.8125,", 255)+"1]")
	}
	for name, payload := range map[string]string{
		"row": `{"x":0.12,"y":-9.81,"z":1.5,"battery":97}`, "time": `{"t":1795348800.5,"x":0.12,"y":-9.81,"z":1.5}`,
		"nested": `{"x":0.12,"y":-9.81,"z":1.5,"update":{"state":"idle"}}`, "rows=256": "{" + strings.Join(columns, ",") + "}",
	} {
		b.Run(name, func(b *testing.B) {
			d, s := mustDecoder(b, accelerometer(FormatJSON)), new(Scratch)
			n, payload := 0, []byte(payload)
			b.ReportAllocs()
			for b.Loop() {
				readings, err := d.DecodeTo(s, payload)
				if err != nil {
					b.Fatal(err)
				}
				n += len(readings)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// Retained messages are taken as configured, and by default as values that never get too old.
func TestRetained(t *testing.T) {
	for _, tc := range []struct {
		allow Switch
		hold  signal.Hold
		want  bool
	}{
		{"auto", signal.Hold{}, false},
		{"true", signal.Hold{}, true},
		{"auto", signal.Hold{On: []string{HoldAny}}, true},
		{"false", signal.Hold{On: []string{HoldAny}}, false},
		{"auto", signal.Hold{On: []string{HoldAny}, MaxAge: time.Hour}, false},
		{"true", signal.Hold{On: []string{HoldAny}, MaxAge: time.Hour}, true},
	} {
		s, in := DefaultStream(), DefaultInput()
		s.AllowRetained, in.AllowRetained, s.Stage.Hold = tc.allow, tc.allow, tc.hold
		if got := s.AcceptsRetained(); got != tc.want {
			t.Errorf("%+v: own topics: %v", tc, got)
		}
		if got := s.From(in).AcceptsRetained(); got != tc.want {
			t.Errorf("%+v: an input's topics: %v", tc, got)
		}
	}
}

// An empty message is a value that is missing, where the message is the value.
func TestEmptyValue(t *testing.T) {
	s := DefaultStream()
	s.Topics, s.TopicTemplate, s.Format, s.Stage.Signals, s.Stage.Hold.Every = []string{"a/+"}, "a/{signal}", FormatValue, []string{"x", "y"}, time.Second
	for _, payload := range []string{"", " \r\n", "\x00"} {
		got, err := mustDecoder(t, s).DecodeMessage(new(Scratch), "a/y", []byte(payload))
		if err != nil || len(got) != 1 || !math.IsNaN(got[0].X[1]) || !got[0].Absent[0] || got[0].Absent[1] {
			t.Errorf("%q: %+v, %v, want y missing", payload, got, err)
		}
	}
	s.Raw.Values = map[string]Value{"y": {Map: map[string]float64{"": 3, "on": 4}, Scale: 1}}
	if got, err := mustDecoder(t, s).DecodeMessage(new(Scratch), "a/y", nil); err != nil || got[0].X[1] != 3 {
		t.Errorf("with a map that has it: %+v, %v, want 3", got, err)
	}
	s.Stage.Hold.Every = 0
	if got, err := mustDecoder(t, s).DecodeMessage(new(Scratch), "a/x", nil); err == nil || !strings.Contains(err.Error(), "hold keeps last values") {
		t.Errorf("without hold: %+v, %v", got, err)
	}
}
