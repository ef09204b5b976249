package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/signal"
	"edge/test/files"
)

// rawOf returns a stream of signals for files.
func rawOf(signals []string, set func(*codec.Stream)) *Raw {
	s := codec.DefaultStream()
	s.Topics, s.Stage.Signals, s.Stage.TimeZone = []string{"t"}, signals, "UTC"
	s.Stage.Window.Features = signal.Choice{All: []string{"mean", "min", "max"}}
	s.Stage.Window.Correlations = false
	if set != nil {
		set(&s)
	}
	return &Raw{Name: "s", Stream: s}
}

// samplesOf returns the samples of a text, a line each: id, values, label.
func samplesOf(t *testing.T, text string, f Format) (lines []string, d *File, err error) {
	t.Helper()
	if d, err = newFile(strings.NewReader(text), "data.csv", f); err != nil {
		return nil, nil, err
	}
	var row Row
	for {
		if err := d.Next(&row); err != nil {
			if err.Error() != "EOF" {
				return lines, d, err
			}
			return lines, d, nil
		}
		if d.Origin().Device != "" && !strings.HasPrefix(d.Origin().ID, d.Origin().Device) {
			t.Errorf("id %q of device %q", d.Origin().ID, d.Origin().Device)
		}
		lines = append(lines, fmt.Sprintf("%s %v %s", d.Origin().ID, row.X, row.Label))
	}
}

func byCount(n, hop int) func(*codec.Stream) {
	return func(s *codec.Stream) {
		s.Stage.Window.Length, s.Stage.Window.Hop = signal.Span{Rows: n}, signal.Span{Rows: hop}
	}
}

// A file gives the samples that its stream makes of the rows. Long: a table of cases.
func TestRawFiles(t *testing.T) {
	two := []string{"x"}
	for name, tc := range map[string]struct {
		raw    *Raw
		format Format
		text   string
		want   []string
		tally  string
	}{
		"windows of rows": {
			raw: rawOf(two, byCount(3, 1)), text: "t,device,x,label\n1,p,1,a\n2,p,2,a\n2.5,q,9,b\n3,p,6,a\n4,p,7,b\n",
			want: []string{"p#3000 [3 1 6] a", "p#4000 [5 2 7] "}, tally: "5 rows, 2 devices: 2 windows (0 late, 0 gaps, 0 thin, 1 mixed)",
		},
		"windows of time, late rows, a gap": {
			raw: rawOf(two, func(s *codec.Stream) {
				w := &s.Stage.Window
				w.Length, w.Hop, w.MinRows, w.MaxGap = signal.Span{Time: 2 * time.Second}, signal.Span{Time: 2 * time.Second}, 2, 3*time.Second
			}),
			text: "ts,x,label\n2026-11-22T17:00:00Z,1,a\n2026-11-22T18:00:01+01:00,2,a\n1795366801,9,a\n2026-11-22 17:00:02,3,a\n1795366804000,4,a\n1795366820,5,a\n",
			want: []string{"@1795366802000 [1.5 1 2] a"}, tally: "6 rows, 1 device: 1 window (1 late, 1 gap, 1 thin, 0 mixed)",
		},
		"rows without a window": {
			raw: rawOf([]string{"x", "on"}, nil), text: "time,x,on,label\n1,.5,ON,a\n2,+1,closed,b\n",
			want: []string{"#1000 [0.5 1] a", "#2000 [1 0] b"}, tally: "2 rows, 1 device: 2 samples (0 late, 0 gaps, 0 thin, 0 mixed)",
		},
		"rules of values, and one column of two names": {
			raw: rawOf([]string{"p", "mode"}, func(s *codec.Stream) {
				s.Fields = map[string]string{"p": "ENERGY.Power", "mode": "mode"}
				s.Raw.Values = map[string]codec.Value{"p": {Unit: "W", Scale: 0.5}, "mode": {OneHot: []string{"off", "heat"}, Scale: 1}}
				s.LabelMap = map[string]string{"1": "run", "0": "idle"}
			}),
			text: "t;ENERGY.Power;mode;label\n1;12,5 W;heat;1\n2;7;off;0\n",
			want: []string{"#1000 [6.25 0 1] run", "#2000 [3.5 1 0] idle"},
		},
		"times that rows share": {
			raw: rawOf([]string{"x"}, byCount(2, 2)), text: "t,x,label\n1,1,a\n1,3,a\n2,5,a\n2,7,a\n",
			want: []string{"#2000 [3 1 5] a"}, tally: "4 rows, 1 device: 1 window (2 late, 0 gaps, 0 thin, 0 mixed); late rows are not after the row before of their device: --device names its column; " +
				"a rate in the configuration, with --ignore of the times, spaces rows whose times are too coarse",
		},
		"the same, ignored": {
			raw: rawOf([]string{"x"}, byCount(2, 2)), format: Format{Ignore: []string{"t", "device"}}, text: "t,device,x,label\n2026-11-22 17:00:00,p,1,a\n2026-11-22 17:00:00,p,3,a\n2026-11-22 17:00:01,q,5,a\n",
			want: []string{"#2 [2 1 3] a"}, tally: "3 rows, 1 device: 1 window (0 late, 0 gaps, 0 thin, 0 mixed)",
		},
		"a time of another name": {
			raw: rawOf([]string{"x"}, byCount(2, 2)), format: Format{Time: "Time (s)"}, text: "Time (s),t,x,label\n1.5,9,1,a\n2.5,9,3,a\n",
			want: []string{"#2500 [2 1 3] a"},
		},
		"a decimal comma": {
			raw: rawOf([]string{"x", "y"}, nil), text: "t;x;y;label\n1,5;0,25;1;a\n",
			want: []string{"#1500 [0.25 1] a"},
		},
		"missing values are refused": {
			raw: rawOf([]string{"x", "y"}, nil), text: "t,x,y,label\n1,1,,a\n2,NA,1,a\n3,1,2,a\n",
			want: []string{"#3000 [1 2] a"}, tally: "3 rows, 1 device: 1 sample (0 late, 0 gaps, 0 thin, 0 mixed, 2 refused)",
		},
		"missing values are marginalised": {
			raw: rawOf([]string{"x", "y"}, func(s *codec.Stream) { s.OnMissing = codec.OnMissingMarginalise }), text: "t,x,y,label\n1,1,,a\n2,NA,1,\n",
			want: []string{"#1000 [1 NaN] a", "#2000 [NaN 1] "},
		},
		"values that are held": {
			raw: rawOf([]string{"x", "y"}, func(s *codec.Stream) {
				s.Stage.Hold.Every, s.OnMissing = 10*time.Second, codec.OnMissingMarginalise
			}),
			text: "t,x,y,label\n10,1,,a\n14,,5,\n31,2,,b\n",
			want: []string{"@10000 [1 NaN] a", "@20000 [1 5] a", "@30000 [1 5] a"},
		},
		"columns of entities": {
			raw: rawOf([]string{"sensor.power", "sensor.lux"}, func(s *codec.Stream) {
				s.Stage.Hold.On, s.OnMissing = []string{codec.HoldAny}, codec.OnMissingMarginalise
			}),
			format: Format{Unlabeled: true},
			text:   "last_changed,sensor.power,sensor.lux\n1970-01-01T00:00:01.500Z,412.5,\n1970-01-01T00:00:02Z,,unavailable\n1970-01-01T00:00:03Z,,7\n",
			want:   []string{"#1500 [412.5 NaN] ", "#2000 [412.5 NaN] ", "#3000 [412.5 7] "},
		},
		"rows of ThingSpeak": {
			raw:  rawOf(two, byCount(2, 2)),
			text: "created_at,entry_id,x,label\n1970-01-01 00:00:01 UTC,7,1,a\n1970-01-01 00:00:02 UTC,8,3,a\n",
			want: []string{"#2000 [2 1 3] a"},
		},
		"several inputs": {
			raw: rawOf(nil, func(s *codec.Stream) {
				door, lux := codec.DefaultInput(), codec.DefaultInput()
				door.Name, door.Topics, door.Values = "door", []string{"d"}, map[string]codec.Value{"door": {Map: map[string]float64{"true": 0, "false": 1}, Scale: 1}}
				lux.Name, lux.Topics, lux.MaxAge = "lux", []string{"l"}, codec.Age{Set: true, Time: 15 * time.Second}
				s.Topics, s.Raw.Inputs = nil, codec.Inputs{door, lux}
				s.Stage.Hold.On, s.OnMissing = []string{"lux"}, codec.OnMissingMarginalise
			}),
			text: "t,door,lux,label\n1,false,,a\n2,,7,a\n3,true,8,b\n",
			want: []string{"#2000 [1 7] a", "#3000 [0 8] b"},
		},
		"labels of one input": {
			raw: rawOf(nil, func(s *codec.Stream) {
				door, lux := codec.DefaultInput(), codec.DefaultInput()
				door.Name, door.Topics, door.Label, door.MaxAge = "door", []string{"d"}, "state", codec.Age{Set: true, Time: 15 * time.Second}
				lux.Name, lux.Topics = "lux", []string{"l"}
				s.Topics, s.Raw.Inputs = nil, codec.Inputs{lux, door}
				s.Stage.Hold.On, s.OnMissing = []string{"lux"}, codec.OnMissingMarginalise
			}),
			text: "t,door,lux,state\n1,0,,a\n2,,7,b\n3,1,8,\n20,,9,c\n21,1,,d\n22,,6,\n23,1,6,null\n24,,7,\n",
			want: []string{"#2000 [7 0] a", "#3000 [8 0] a", "#20000 [9 NaN] ", "#22000 [6 1] d", "#23000 [6 1] d", "#24000 [7 1] "},
		},
		"a label that ends": {
			raw:  rawOf([]string{"x"}, func(s *codec.Stream) { s.Stage.Hold.Every = 10 * time.Second }),
			text: "t,x,label\n10,1,a\n14,2,\n23,3,?\n41,4,\n",
			want: []string{"@10000 [1] a", "@20000 [2] a", "@30000 [3] ", "@40000 [3] "},
		},
		"messages": {
			raw: rawOf(two, func(s *codec.Stream) {
				s.Stage.Window.Length, s.Stage.Window.MaxGap, s.Stage.Window.MinRows = signal.Span{Message: true}, time.Second, 1
			}),
			text: "t,device,x,label\n1,p,1,a\n1.5,p,3,a\n1.5,q,5,b\n10,p,4,a\n",
			want: []string{"p#1500 [2 1 3] a", "q#1500 [5 5 5] b", "p#10000 [4 4 4] a"},
		},
		"no times, a rate": {
			raw: rawOf(two, func(s *codec.Stream) {
				byCount(2, 2)(s)
				s.Raw.Rate.Hz = 4
			}),
			text: "x,label\n1,a\n2,a\n3,a\n4,a\n", want: []string{"#500 [1.5 1 2] a", "#1000 [3.5 3 4] a"},
		},
		"keys with special characters": {
			raw: rawOf(two, func(s *codec.Stream) {
				byCount(2, 2)(s)
				s.Time, s.Label = `\@t\.s`, `state\.1 \[k\]`
			}),
			text: "@t.s,x,state.1 [k]\n1,1,a\n2,3,a\n", want: []string{"#2000 [2 1 3] a"},
		},
		"annotations of InfluxDB": {
			raw:  rawOf(two, byCount(2, 2)),
			text: "#group,false,false,false,true,true\n#datatype,string,long,dateTime:RFC3339,double,string\n#default,_result,,,,\n,result,table,_time,x,label\n,,0,1970-01-01T00:00:01Z,1,a\n,,0,1970-01-01T00:00:02Z,3,a\n",
			want: []string{"#2000 [2 1 3] a"},
		},
		"Home Assistant's history of the one entity that is the signal": {
			raw: rawOf(two, func(s *codec.Stream) {
				byCount(2, 2)(s)
				s.Fields = map[string]string{"x": "state"}
			}),
			text: "entity_id,state,last_changed,label\nsensor.x,1,1970-01-01T00:00:01Z,a\nsensor.x,3,1970-01-01T00:00:02Z,a\n",
			want: []string{"#2000 [2 1 3] a"},
		},
		"a date beside a rate": {
			raw: rawOf(two, func(s *codec.Stream) {
				byCount(2, 2)(s)
				s.Raw.Rate.Hz = 4
			}),
			text: "recorded,x,label\n2026-11-22 17:00:00,1,a\n2026-11-22 17:00:00,3,a\n",
			want: []string{"#500 [2 1 3] a"},
		},
		"no label, another device": {
			raw: rawOf(two, byCount(2, 2)), format: Format{Unlabeled: true, Device: "who"},
			text: "t,who,x\n1,p,1\n2,p,3\n", want: []string{"p#2000 [2 1 3] "},
		},
		"features of a model": {
			raw: rawOf(two, byCount(2, 2)), format: Format{Features: []string{"x.max", "x.mean"}},
			text: "t,x,label\n1,1,a\n2,3,a\n", want: []string{"#2000 [3 2] a"},
		},
		"finished samples": {
			raw: rawOf(two, byCount(2, 2)), text: "id,x.max,x.min,x.mean,x,label\nr,3,1,2,8,a\n",
			format: Format{Features: []string{"x.mean", "x.min", "x.max"}}, want: []string{" [2 1 3] a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.format
			f.Raw = tc.raw
			if err := tc.raw.Stream.Validate(); err != nil {
				t.Fatal(err)
			}
			got, d, err := samplesOf(t, tc.text, f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("samples:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
			if tc.tally != "" && d.Tally().String() != tc.tally {
				t.Errorf("tally %s\nwant  %s", d.Tally(), tc.tally)
			}
		})
	}
}

func TestRawFilesAreRefused(t *testing.T) {
	window := rawOf([]string{"x", "y"}, byCount(2, 2))
	timed := rawOf([]string{"x"}, func(s *codec.Stream) { s.Stage.Window.Length = signal.Span{Time: time.Second} })
	flags := *window
	flags.Name = ""
	timedFlags := *timed
	timedFlags.Name = ""
	for name, tc := range map[string]struct {
		raw        *Raw
		format     Format
		text, want string
	}{
		"no such column for flags":   {&flags, Format{}, "t,x,label\n1,1,a\n", "data.csv:1: no column is called y; the columns are t, x, label"},
		"no times for flags":         {&timedFlags, Format{}, "x,label\n1,a\n", "data.csv:1: no column has the time, which windows by time need: want one called "},
		"a column that is not there": {window, Format{}, "t,x,label\n1,1,a\n", "data.csv:1: the file has neither the signals of stream s, of which these have no column: y; nor the features of its samples, of which these have none: x.mean, x.min, x.max, y.mean, y.min, y.max; the columns are t, x, label"},
		"no header":                  {window, Format{}, "1,2,3,a\n2,3,4,a\n", "data.csv: no header line names the columns; signals are found by name: want x, y"},
		"no label":                   {window, Format{}, "t,x,y\n1,1,1\n", "data.csv:1: no column is called label: --label names that of the labels"},
		"another label":              {window, Format{Label: "z"}, "t,x,y\n1,1,1\n", `data.csv:1: no column is called "z"; --label takes one of: t, x, y`},
		"no time":                    {timed, Format{}, "x,label\n1,a\n", "data.csv:1: no column has the time, which stream s needs: want one called t, ts, time, timestamp, Time,"},
		"a time called otherwise":    {window, Format{}, "when,x,y,label\n2026-11-22 17:00,1,1,a\n", `data.csv:2:1: column "when": "2026-11-22 17:00" is a time, and the column is called otherwise than that of the times: give --time when`},
		"a line of units":            {window, Format{}, "t,x,y,label\n,m/s^2,K,\n1,1,1,a\n", `data.csv:2:1: column "t": "" is no time: want seconds, or 2026-11-22T17:00:00Z; sed 2d FILE >FILE.csv leaves the line out, if it belongs to the header`},
		"units without a time":       {window, Format{}, "x,y,label\nm/s^2,K,\n1,1,a\n", `data.csv:2: signal "x" is "m/s^2": want a number, or one of true, false, on, off, open, closed, online, offline; values.x can map it, or have other: missing; sed 2d FILE`},
		"several tables":             {window, Format{}, "_time,x,y,label\n1,1,1,a\n_time,x,y,label\n2,1,1,a\n", `data.csv:3:1: column "_time": the header occurs again: the file has several tables; awk 'NR==1 {h=$0}`},
		"a time that is none":        {window, Format{}, "t,x,y,label\n1,1,1,a\nsoon,1,1,a\n", `data.csv:3:1: column "t": "soon" is no time: want seconds, or 2026-11-22T17:00:00Z`},
		"date and time apart":        {window, Format{}, "Date;Time;x;y;label\n22.11.2026;17:00:00;1;1;a\n", `data.csv:2:12: column "Time": "17:00:00" is no time: want seconds, or 2026-11-22T17:00:00Z; sed -E 's/"?;"?/ /' FILE >FILE.csv makes one column of date and time, and --time 1 names it`},
		"a label with a tab":         {window, Format{}, "t,x,y,label\n1,1,1,a\n2,1,1,a\tb\n", `data.csv:3:7: the label has a control character, which a daemon refuses: "a\tb"`},
		"a Latin-1 label":            {window, Format{}, "t,x,y,label\n1,1,1,a\n2,1,1,a\xe4\n", `data.csv:3:7: the label is "a\xe4", which is not UTF-8: convert the file`},
		"a word":                     {window, Format{}, "t,x,y,label\n1,opne,1,a\n", `data.csv:2: signal "x" is "opne": want a number, or one of true, false, on, off, open, closed, online, offline; did you mean "on"?`},
		"a signal twice":             {window, Format{}, "t,x,y,x,label\n1,1,1,1,a\n", `data.csv:1: two columns are called "x", a signal: rename the one that is none`},
		"a signal that is the label": {window, Format{Label: "y"}, "t,x,y\n1,1,1\n", `data.csv: column "y" is a signal, and the time, the device or the label as well`},
		"messages without an end": {rawOf([]string{"x"}, func(s *codec.Stream) { s.Stage.Window.Length = signal.Span{Message: true} }), Format{}, "t,x,label\n1,1,a\n",
			"data.csv: window.length: message: a file has no messages"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.format
			f.Raw = tc.raw
			if _, _, err := samplesOf(t, tc.text, f); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

// The rows that a replay sends complete the samples that a reader of the file gets.
func TestRawRows(t *testing.T) {
	f := Format{Raw: rawOf([]string{"x"}, byCount(2, 2)), Unlabeled: true}
	d, err := newFile(strings.NewReader("t,device,x,label\n1.5,p,ON,a\n2,p,3,a\n3,p,4,\n"), "data.csv", f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var row RawRow
	for d.NextRaw(&row) == nil {
		got = append(got, fmt.Sprintf("%d %s %d %v %q %v", row.Number, row.Device, row.Time, row.Cells, row.Label, row.Samples))
	}
	want := []string{`1 p 1500000000 [[ON]] "a" []`, `2 p 2000000000 [[3]] "a" [{p#2000 a}]`, `3 p 3000000000 [[4]] "" []`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	f.Raw = rawOf([]string{"x"}, func(s *codec.Stream) {
		s.Stage.Window.Length, s.Stage.Window.MaxGap, s.Stage.Window.MinRows = signal.Span{Message: true}, time.Second, 1
	})
	if d, err = newFile(strings.NewReader("t,device,x,label\n1.5,p,1,a\n2,p,3,a\n9,p,4,b\n"), "data.csv", f); err != nil {
		t.Fatal(err)
	}
	got = nil
	for d.NextRaw(&row) == nil {
		got = append(got, fmt.Sprintf("%d %s %d %v %q %v", row.Number, row.Device, row.Time, row.Rows, row.Label, row.Samples))
	}
	want = []string{`2 p 2000000000 [[1] [3]] "a" [{p#2000 a}]`, `3 p 9000000000 [[4]] "b" [{p#9000 b}]`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("messages:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// sharedFile returns the path of a raw data set, or skips the test.
func sharedFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "raw", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("raw data are missing")
		}
		t.Skipf("needs the raw data in ../shared/data/raw: %s is missing", name)
	}
	return path
}

// The numbers of windows and gaps are those of two other implementations, one vectorised
// and one row by row.
func TestRawGolden(t *testing.T) {
	for _, tc := range []struct {
		file string
		raw  *Raw
		want string
	}{
		{"wrist.csv.gz", rawOf([]string{"x", "y", "z"}, func(s *codec.Stream) {
			byCount(128, 64)(s)
			s.Stage.Window.MaxGap = 200 * time.Millisecond
		}), "359891 rows, 8 devices: 4610 windows (0 late, 669 gaps, 0 thin, 0 mixed)"},
		{"bearing.csv.gz", rawOf([]string{"a"}, func(s *codec.Stream) {
			byCount(1024, 512)(s)
			s.Stage.Window.MaxGap = 10 * time.Millisecond
		}), "600000 rows, 1 device: 1000 windows (0 late, 99 gaps, 0 thin, 0 mixed)"},
		{"power.csv.gz", rawOf([]string{"power"}, func(s *codec.Stream) {
			s.Stage.Derive = signal.Formulas{{Name: "p", Text: "log10(1 + power)"}}
			w := &s.Stage.Window
			w.Length, w.Hop, w.Resample, w.MaxGap = signal.Span{Time: 5 * time.Minute}, signal.Span{Time: 150 * time.Second}, time.Second, time.Minute
		}), "264289 rows, 98 devices: 3689 windows (0 late, 208 gaps, 0 thin, 0 mixed)"},
	} {
		t.Run(tc.file, func(t *testing.T) {
			if testing.Short() {
				t.Skip("reads a whole data set")
			}
			s, err := Summarize(t.Context(), sharedFile(t, tc.file), Format{Raw: tc.raw})
			if err != nil {
				t.Fatal(err)
			}
			if s.Tally.String() != tc.want {
				t.Errorf("%s, want %s", s.Tally, tc.want)
			}
		})
	}
}

// Times that look like days of a spreadsheet are told with the tally; those of a recording with
// a row every few milliseconds are not.
func TestDaysAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		first, step float64 // s
		want        bool
	}{
		"days, a row a second":      {46348.7083, 1.0 / 86400, true},
		"days, 15 minutes":          {46348.7083, 900.0 / 86400 * 0.9, true},
		"seconds since 1970":        {1.8e9, 1, false},
		"seconds from the start":    {0, 0.01, false},
		"a recording of many hours": {46348, 0.02, false},
		"the same time":             {46348, 0, false},
	} {
		const rows = 1000
		if got := areDays(int64(tc.first*1e9), int64((tc.first+(rows-1)*tc.step)*1e9), rows); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The command for times that are no seconds makes seconds of them, with their fractions.
func TestCommandsForOtherTimes(t *testing.T) {
	for name, tc := range map[string]struct {
		time  func(i int) string
		unit  string
		first string // of the samples' times
	}{
		"days": {func(i int) string { return fmt.Sprintf("%.9f", 46348.7083+float64(i)/86400/20) }, "days, as in a spreadsheet", "#17953667975"},
		"decimal comma": {func(i int) string {
			return strings.Replace(fmt.Sprintf("%.9f", 46348.7083+float64(i)/86400/20), ".", ",", 1)
		}, "days, as in a spreadsheet", "#17953667975"},
		"ms":            {func(i int) string { return fmt.Sprint(1_234_560 + 20*i) }, "ms", "#1234740"},
		"seconds":       {func(i int) string { return fmt.Sprint(i) }, "", ""},
		"Unix time, ms": {func(i int) string { return fmt.Sprint(1_795_798_797_000 + 10_000*int64(i)) }, "", ""},
	} {
		var b strings.Builder
		b.WriteString("x;t;label\n")
		for i := range 100 {
			fmt.Fprintf(&b, "%d;%s;a\n", i%7, tc.time(i))
		}
		path := files.Write(t, "data.csv", b.String())
		of := Format{Raw: rawOf([]string{"x"}, byCount(10, 10))}
		s, err := Summarize(t.Context(), path, of)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		command, isCommand := strings.CutPrefix(s.Tally.Times, "the times count as seconds; if they are "+tc.unit+", ")
		if command, _ = strings.CutSuffix(command, " FILE >FILE.csv makes seconds of them"); tc.unit == "" {
			if s.Tally.Times != "" {
				t.Errorf("%s: %s", name, s.Tally.Times)
			}
			continue
		}
		made, err := files.Shell(t, "awk", command+" "+path)
		if err != nil || !isCommand || !strings.HasSuffix(s.Tally.String(), s.Tally.Times) {
			t.Errorf("%s: %s: %v", name, s.Tally, err)
			continue
		}
		table, err := LoadTable(files.Write(t, "made.csv", made), of)
		if err != nil || len(table.Origins) != 10 || table.Tally.Late > 0 || table.Tally.Gaps > 0 || !strings.HasPrefix(table.Origins[0].ID, tc.first) || table.Tally.Times != "" {
			t.Errorf("%s: %v, %v, %+v", name, err, table.Tally, table.Origins)
		}
	}
}

// Where few rows have a label, as those at which it changes, the error has the command that gives it to the others.
func TestLabelsOfFewRows(t *testing.T) {
	var b strings.Builder
	b.WriteString("t;x;label;note\r\n")
	for i := range 300 {
		label := ""
		if i%100 == 0 {
			label = []string{"idle", "run", "idle"}[i/100]
		}
		fmt.Fprintf(&b, "%d;%d,5;%s;\r\n", 1_795_717_000+i, i%7, label)
	}
	path := files.Write(t, "data.csv", b.String())
	of := Format{Raw: rawOf([]string{"x"}, byCount(10, 10))}
	_, err := LoadTable(path, of)
	if err == nil {
		t.Fatal("no error")
	}
	before, command, _ := strings.Cut(err.Error(), "; where a label counts until the next one, ")
	command, _, ok := strings.Cut(command, " FILE >FILE.csv writes it")
	if want := "3 mixed); 3 of 300 rows have a label, and windows need it on 90 % of theirs"; !ok || !strings.Contains(before, want) {
		t.Fatalf("%v, want %q", err, want)
	}
	filled, err := files.Shell(t, "awk", command+" "+path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := LoadTable(files.Write(t, "filled.csv", filled), of)
	if err != nil || len(table.Labels) != 30 || fmt.Sprint(table.Classes) != "[idle run]" {
		t.Errorf("%+v, %v", table, err)
	}
}
