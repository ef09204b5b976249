package codec

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/stream/signal"
)

// A row has the same reading as a payload of each format as it has as a row of a table.
func TestEncoderMatchesDecoder(t *testing.T) {
	const at = 1300876758_031_000_001
	for name, tc := range map[string]struct {
		set   func(*Stream)
		cells []string
		label string // of the reading
	}{
		"json":          {func(s *Stream) {}, []string{"1.25", "ON", "heat"}, "ok"},
		"absent":        {func(s *Stream) {}, []string{"", "ON", ""}, "ok"},
		"missing":       {func(s *Stream) {}, []string{"null", "off", "off"}, "ok"},
		"nested fields": {func(s *Stream) { s.Fields = map[string]string{"a": "in.a", "b": `in.b\.c`} }, []string{"-3e5", "true", "heat"}, "ok"},
		"cbor":          {func(s *Stream) { s.Format = FormatCBOR }, []string{"0.1", "closed", "off"}, "ok"},
		"csv":           {func(s *Stream) { s.Format = formatCSV }, []string{"0.1", "closed", "off"}, ""},
		"csv columns":   {func(s *Stream) { s.Format, s.Columns = formatCSV, []string{"ts", "", "c", "a", "b", "label"} }, []string{"0.1", "closed", "off"}, "ok"},
		"float64": {func(s *Stream) {
			s.Format, s.Stage.Signals, s.Raw.Values = formatFloat64, []string{"a", "b"}, nil
		}, []string{"0.1", "7"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultStream()
			s.Topics, s.Stage.Signals, s.OnMissing = []string{"t"}, []string{"a", "b", "c"}, OnMissingMarginalise
			s.Raw.Values = map[string]Value{"a": {Scale: 2}, "c": {OneHot: []string{"off", "heat"}, Scale: 1}}
			tc.set(&s)
			d, e := bothWays(t, s)
			payloads, err := e.Row(tc.cells, at, tc.label)
			if err != nil || len(payloads) != 1 {
				t.Fatalf("%d payloads, %v", len(payloads), err)
			}
			got, err := d.Decode(payloads[0].Data)
			if err != nil {
				t.Fatalf("%s: %v", payloads[0].Data, err)
			}
			want, err := d.Row(tc.cells, tc.label)
			if err != nil {
				t.Fatal(err)
			}
			same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
			if !slices.EqualFunc(got[0].X, want.X, same) || got[0].Label != tc.label || want.Label != tc.label || !slices.Equal(got[0].Absent, want.Absent) {
				t.Errorf("%s gives %+v, the row %+v", payloads[0].Data, got[0], want)
			}
			if ns, ok := signal.ParseTime(got[0].RawTime, time.UTC); tc.label != "" && (!ok || ns != at) {
				t.Errorf("%s has the time %q", payloads[0].Data, got[0].RawTime)
			}
		})
	}
}

// Records, and members of an object, are written as their stream reads them; where the paths
// contradict each other, that is told.
func TestEncoderOfRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*Stream)
		want string
	}{
		"senml": {func(s *Stream) {
			s.Fields, s.Time, s.Label = map[string]string{"a": "[n=a].v", "b": "[n=b].v"}, "0.bt", ""
		}, `[{"bt":7,"n":"a","v":1.5},{"n":"b","v":2}]`},
		"kepware": {func(s *Stream) {
			s.Fields, s.Label = map[string]string{"a": "values.[id=L1.a].v", "b": "values.[id=L1.b].v"}, "values.[id=L1.state].v"
		}, `{"time":7,"values":[{"id":"L1.a","v":1.5},{"id":"L1.b","v":2},{"id":"L1.state","v":"ok"}]}`},
		"two of a record":         {func(s *Stream) { s.Fields = map[string]string{"a": "r.[n=x].v", "b": "r.[n=x].w"} }, `{"label":"ok","r":[{"n":"x","v":1.5,"w":2}],"time":7}`},
		"a path in a selection":   {func(s *Stream) { s.Fields = map[string]string{"a": "r.[of.n=x].v"} }, `{"b":2,"label":"ok","r":[{"of":{"n":"x"},"v":1.5}],"time":7}`},
		"members":                 {func(s *Stream) { s.Entries.Batch = Every }, `{"entry":{"a":1.5,"b":2,"label":"ok","time":7}}`},
		"members of a key":        {func(s *Stream) { s.Entries.Batch = "of.*" }, `{"of":{"entry":{"a":1.5,"b":2,"label":"ok","time":7}}}`},
		"members by their device": {func(s *Stream) { s.Entries.Batch, s.Entries.Device.Path = Every, Every }, `{"p 7":{"a":1.5,"b":2,"label":"ok","time":7}}`},
		"a key beside records":    {func(s *Stream) { s.Fields = map[string]string{"a": "[n=a].v", "b": "b"} }, "b is within a value, or in an array: give"},
	} {
		for _, format := range []string{FormatJSON, FormatCBOR} {
			s := DefaultStream()
			s.Topics, s.Format, s.Stage.Signals, s.Time = []string{"t"}, format, []string{"a", "b"}, "time"
			tc.set(&s)
			if errs := s.Validate(); errs != nil {
				t.Fatalf("%s: %v", name, errs)
			}
			d, e := bothWays(t, s)
			e.SetDevice([]string{"p%207"}[:len(e.device)])
			payloads, err := e.Row([]string{"1.5", "2"}, 7e9, "ok")
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if text := string(payloads[0].Data); format == FormatJSON && text != tc.want {
				t.Errorf("%s: %s, want %s", name, text, tc.want)
			}
			got, err := d.Decode(payloads[0].Data)
			if err != nil || len(got) != 1 || !slices.Equal(got[0].X, []float64{1.5, 2}) || got[0].Label != "ok" && s.Label != "" || strings.Trim(got[0].RawTime, `"`) != "7" {
				t.Errorf("%s as %s is read as %+v, %v", name, format, got, err)
			}
		}
	}
}

// A row whose label is null ends the label that is held, in every format with labels; an empty
// label leaves it.
func TestEncoderOfNoLabel(t *testing.T) {
	for _, format := range []string{FormatJSON, FormatCBOR, formatCSV} {
		s := DefaultStream()
		s.Topics, s.Format, s.Stage.Signals = []string{"t"}, format, []string{"a"}
		if format == formatCSV {
			s.Columns = []string{"a", "label"}
		}
		d, e := bothWays(t, s)
		for label, null := range map[string]bool{NoLabel: true, "": false} {
			payloads, err := e.Row([]string{"1"}, -1, label)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode(payloads[0].Data)
			if err != nil || got[0].Null != null || got[0].Label != "" {
				t.Errorf("%s of label %q: %+v, %v", payloads[0].Data, label, got, err)
			}
		}
	}
}

// The word null is no label in a cell of CSV, unless the map of labels has it.
func TestNullInACell(t *testing.T) {
	for want, of := range map[string]map[string]string{"": nil, "off": {"null": "off"}} {
		s := DefaultStream()
		s.Topics, s.Format, s.Features, s.Columns, s.LabelMap = []string{"t"}, formatCSV, []string{"a"}, []string{"a", "label"}, of
		d, err := NewDecoder(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Decode([]byte("1,null"))
		if err != nil || got[0].Label != want || len(got[0].X) != 1 {
			t.Errorf("with the map %v: %+v, %v", of, got, err)
		}
	}
}

// A value has a payload of its own.
func TestEncoderOfValues(t *testing.T) {
	s := DefaultStream()
	s.Topics, s.TopicTemplate, s.Format = []string{"t/+"}, "t/{signal}", FormatValue
	s.Stage.Signals, s.Stage.Hold.On = []string{"a", "b"}, []string{HoldAny}
	d, e := bothWays(t, s)
	payloads, err := e.Row([]string{"ON", "12.5"}, 1, "x")
	if err != nil || len(payloads) != 2 {
		t.Fatalf("%d payloads, %v", len(payloads), err)
	}
	for i, want := range []float64{1, 12.5} {
		got, err := d.DecodeMessage(new(Scratch), "t/"+payloads[i].Signal, payloads[i].Data)
		if err != nil || got[0].X[i] != want {
			t.Errorf("%s: %+v, %v", payloads[i].Data, got, err)
		}
	}
	s.Format = formatInflux
	if _, err := NewEncoder(s); err == nil {
		t.Error("influx is written")
	}
}

// Several rows are one message of arrays.
func TestEncoderOfRows(t *testing.T) {
	for _, format := range []string{FormatJSON, FormatCBOR, formatFloat32, formatCSV} {
		s := DefaultStream()
		s.Topics, s.Format, s.Stage.Signals, s.Stage.Window.Length = []string{"t"}, format, []string{"a", "b"}, signal.Span{Message: true}
		d, e := bothWays(t, s)
		payload, err := e.Rows([][]string{{"1", "2.5"}, {"3", "4"}, {"5", "-6"}}, 2e9, "ok")
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		got, err := d.Decode(payload)
		if err != nil || len(got) != 3 {
			t.Fatalf("%s: %q gives %d rows, %v", format, payload, len(got), err)
		}
		for i, want := range [][]float64{{1, 2.5}, {3, 4}, {5, -6}} {
			if !slices.Equal(got[i].X, want) {
				t.Errorf("%s: row %d is %v, want %v", format, i, got[i].X, want)
			}
		}
		if ns, _ := signal.ParseTime(got[2].RawTime, time.UTC); format == FormatJSON && (ns != 2e9 || got[0].Label != "ok") {
			t.Errorf("time %q, label %q", got[2].RawTime, got[0].Label)
		}
	}
}

// bothWays returns the decoder and the encoder of a stream.
func bothWays(t *testing.T, s Stream) (*Decoder, *Encoder) {
	t.Helper()
	d, err := NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(s)
	if err != nil {
		t.Fatal(err)
	}
	return d, e
}
