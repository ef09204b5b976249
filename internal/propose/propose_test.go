package propose

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/stream/codec"
	"edge/test/files"
)

// signalFile writes a file of n signals rows, one a second, whose label changes each minute.
// cells returns power and state.
func signalFile(t *testing.T, n int, cells func(i int) (power, state string)) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,power,state,label\n")
	for i := range n {
		power, state := cells(i)
		fmt.Fprintf(&b, "%d,%s,%s,%s\n", 1795717000+i, power, state, []string{"idle", "run"}[i/60%2])
	}
	return files.Write(t, "plug.csv", b.String())
}

// The proposed configuration takes the rows of its file.
func TestProposeTakesTheFile(t *testing.T) {
	power := func(i int) string { return fmt.Sprint((1 + 9*(i/60%2)) * (10 + i*7%5)) }
	for _, c := range []struct {
		name  string
		rows  int
		cells func(i int) (power, state string)
		want  []string // of the configuration
		not   string
		err   string
	}{
		{"complete", 2400, func(i int) (string, string) { return power(i), "1" }, []string{"# error by length: 32 0."}, "missing", ""},
		{"empty cells", 2400, func(i int) (string, string) { return power(i), []string{"", "1", "2", "1"}[i%4] }, []string{"on_missing: marginalise #", "# error by length: 32 0."}, "hold", ""},
		{"words of missing values", 2400, func(i int) (string, string) { return power(i), []string{"unavailable", "1"}[i%2] }, []string{"on_missing: marginalise #", "# error by length: 32 0."}, "hold", ""},
		{"values on change", 2400, func(i int) (string, string) {
			if i%2 == 0 {
				return power(i), ""
			}
			return "", "1"
		}, []string{"hold: {on: any} #", "# error by length: 32 0."}, "on_missing", ""},
		{"words", 2400, func(i int) (string, string) { return power(i), []string{"ON", "off", "Open"}[i%3] }, []string{"# error by length: 32 0."}, "missing", ""},
		{"few windows", 600, func(i int) (string, string) { return power(i), "1" }, []string{"# no length has 50 windows with one label", "window: {length: 32} #"}, "missing", ""},
		{"other words", 2400, func(i int) (string, string) { return power(i), []string{"1", "spinning"}[i%2] }, nil, "", `plug.csv:3:15: the file looks like one of signals, and column "state" has "spinning"`},
	} {
		path := signalFile(t, c.rows, c.cells)
		s, err := streamFor(t.Context(), path, dataset.Options{}, io.Discard)
		if err != nil || s == nil {
			if c.err == "" || err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %+v, %v, want %q", c.name, s, err, c.err)
			}
			continue
		}
		text, err := sample(t.Context(), []string{path}, new(dataset.Options), map[string]*signalStream{path: s}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, text)
			}
		}
		if c.not != "" && strings.Contains(string(text), c.not) || c.err != "" {
			t.Errorf("%s: %q in\n%s", c.name, c.not, text)
		}
		parsed, err := config.Parse("edge.yaml", text, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, text)
			continue
		}
		summary, err := dataset.Summarize(t.Context(), path, dataset.Format{Raw: &dataset.Raw{Stream: parsed.Streams["plug"]}, Unlabeled: true})
		if err != nil || summary.Tally.Refused > 0 {
			t.Errorf("%s: %v, %v", c.name, summary.Tally, err)
		}
	}
}

// A length that most recordings are shorter than is not proposed, although the windows of the others,
// of one label, have no error.
func TestProposeKeepsShortRecordings(t *testing.T) {
	var b strings.Builder
	b.WriteString("time,x,label\n")
	rng, at := rand.New(rand.NewPCG(1, 1)), 1_795_717_000
	for i := range 60 {
		rows, label := 900, i%2
		if i%15 == 0 {
			rows, label = 12000, 0
		}
		for range rows {
			fmt.Fprintf(&b, "%d,%.3f,%s\n", at, rng.NormFloat64()+0.3*float64(label), []string{"idle", "run"}[label])
			at++
		}
		at += 10000
	}
	path := files.Write(t, "plug.csv", b.String())
	s, err := streamFor(t.Context(), path, dataset.Options{}, io.Discard)
	if err != nil || s.Length.Rows > 512 || strings.Contains(s.Reason, "1024") {
		t.Errorf("%+v, %v", s, err)
	}
}

// A column of words is left out by its name, its number, or by names of features, with which
// a row is a sample.
func TestProposeLeavesOut(t *testing.T) {
	path := signalFile(t, 2400, func(i int) (string, string) { return fmt.Sprint(i % 7), "spinning" })
	for _, c := range []struct {
		format dataset.Format
		want   []string // nil: a file of samples
		err    string
	}{
		{dataset.Format{}, nil, `--ignore state leaves the column out`},
		{dataset.Format{Ignore: []string{"state"}}, []string{"power"}, ""},
		{dataset.Format{Ignore: []string{"3"}, Label: "4"}, []string{"power"}, ""},
		{dataset.Format{Ignore: []string{"1"}}, nil, ""},
		{dataset.Format{Columns: []string{"power"}}, nil, ""},
		{dataset.Format{Ignore: []string{"5"}}, nil, "the file has the columns 1 to 4"},
		{dataset.Format{Time: "state"}, nil, `plug.csv:2:14: column "state": "spinning" is no time: want seconds, or 2026-11-22T17:00:00Z; for a file of samples --ignore state leaves the column out`},
	} {
		r, ok, err := dataset.Detect(path, c.format)
		if ok != (c.want != nil) || ok && !slices.Equal(r.Signals, c.want) {
			t.Errorf("%+v: signals %v, %v, want %v", c.format, r.Signals, ok, c.want)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v, want %q", c.format, err, c.err)
		}
	}
}

// Rows that share times count as samples, with a line that says so; with the column of the device they are rows of signals.
func TestProposeSharedTimes(t *testing.T) {
	var b strings.Builder
	b.WriteString("time,machine,x,label\n")
	for i := range 600 {
		fmt.Fprintf(&b, "%d,%d,%d,%d\n", 1_795_717_000+i/2, i%2, i%7, i/300)
	}
	path := files.Write(t, "plug.csv", b.String())
	for device, want := range map[string]string{
		"":        `rows share times in column "time", so that they count as samples: if they are rows of signals of several devices, --device names`,
		"machine": "",
	} {
		var told strings.Builder
		s, err := streamFor(t.Context(), path, dataset.Options{DeviceColumn: device}, &told)
		if (s == nil) != (want != "") || err != nil || (want == "") != (told.Len() == 0) || !strings.Contains(told.String(), want) {
			t.Errorf("--device %q: %+v, %v, %q", device, s, err, told.String())
		}
	}
}

// A column that rises with every row, or that has a number for each class, is no signal, and a last column of measurements no label.
func TestProposeForLoggers(t *testing.T) {
	for name, c := range map[string]struct {
		header   string
		row      func(i int) string
		time     string // flag
		want     []string
		label    string
		warnings string
	}{
		"sensor logger": {"time,seconds_elapsed,z,y", func(i int) string {
			return fmt.Sprintf("%d,%.2f,%.3f,%.3f", 1_795_717_000_000_000_000+10_000_000*int64(i), float64(i)/100, float64(i*7%11)/3, float64(i*5%13)/7)
		}, "", []string{"z", "y"}, "", "seconds_elapsed rises with every row"},
		"decimal commas": {`"Time (s)";x;state`, func(i int) string { return fmt.Sprintf("%d,%02d;%d,5;%d", i/100, i%100, i*7%11, i/500) },
			"Time (s)", []string{"x"}, "state", ""},
		"a number of the row": {"created_at,entry_id,field1,label", func(i int) string {
			return fmt.Sprintf("2026-11-22 17:%02d:%02d UTC,%d,%d,%d", i/60%60, i%60, i+1, i*7%11, i/500)
		}, "", []string{"field1"}, "label", "entry_id rises with every row"},
		"a number of the class": {"t,x,activity_id,label", func(i int) string {
			return fmt.Sprintf("%.2f,%d,%d,%s", 1_795_717_000+float64(i)/50, i*7%11, 12+i/500, []string{"sit", "walk", "run"}[i/500])
		}, "", []string{"x"}, "label", "activity_id rises with every row, as a time or the number of the row does, or is the label in other words, and is no signal here"},
	} {
		var b, told strings.Builder
		fmt.Fprintln(&b, c.header)
		for i := range 1500 {
			fmt.Fprintln(&b, c.row(i))
		}
		s, err := streamFor(t.Context(), files.Write(t, "log.csv", b.String()), dataset.Options{TimeColumn: c.time}, &told)
		if err != nil || s == nil {
			t.Errorf("%s: %+v, %v", name, s, err)
			continue
		}
		if !slices.Equal(s.Signals, c.want) || s.Label != c.label || (c.warnings == "") != (told.Len() == 0) || !strings.Contains(told.String(), c.warnings) {
			t.Errorf("%s: signals %q, label %q, told %q; want %q, %q, %q", name, s.Signals, s.Label, told.String(), c.want, c.label, c.warnings)
		}
	}
}

// The label is the column of that name, or else the last one that has another meaning than the time,
// the device or none.
func TestProposeLabel(t *testing.T) {
	for header, want := range map[string]string{
		"time,x,state":        "state",
		"x,state,time":        "state",
		"time,x,state,device": "state",
		"time,x,state,note":   "state",
		"time,label,x":        "label",
	} {
		var b strings.Builder
		fmt.Fprintln(&b, header)
		cells := map[string]string{"device": "a", "note": "spinning", "state": "1", "label": "1", "x": "2"}
		for i := range 300 {
			cells["time"] = fmt.Sprint(1_795_717_000 + i)
			for j, name := range strings.Split(header, ",") {
				b.WriteString([]string{"", ","}[min(j, 1)] + cells[name])
			}
			b.WriteString("\n")
		}
		path := files.Write(t, "plug.csv", b.String())
		f := dataset.Format{}
		if strings.Contains(header, "note") {
			f.Ignore = []string{"note"}
		}
		if r, ok, err := dataset.Detect(path, f); !ok || err != nil || r.Label != want || r.Labelled || !slices.Equal(r.Signals, []string{"x"}) {
			t.Errorf("%s: %+v, %v, %v: want the label %s", header, r, ok, err, want)
		}
	}
}

// A short recording of each of many devices is a file of signals where its rows come quickly, and
// one of samples where they come each hour.
func TestProposeShortRecordings(t *testing.T) {
	for step, signals := range map[float64]bool{0.02: true, 3600: false} {
		var b strings.Builder
		b.WriteString("at (s),subject,x,label\n")
		for device := range 20 {
			for i := range 128 {
				fmt.Fprintf(&b, "%.2f,s%d,%d,%s\n", 1_795_717_000+float64(device*200+i)*step, device, i%7*(1+device%2), []string{"idle", "run"}[device%2])
			}
		}
		path := files.Write(t, "walk.csv", b.String())
		data := dataset.Options{DeviceColumn: "subject", TimeColumn: "at (s)"}
		s, err := streamFor(t.Context(), path, data, io.Discard)
		if err != nil || (s != nil) != signals {
			t.Errorf("a row each %g s: %+v, %v", step, s, err)
			continue
		}
		text, err := sample(t.Context(), []string{path}, &data, map[string]*signalStream{path: s}, io.Discard)
		if err != nil || strings.Contains(string(text), "sensors/walk/{device}") != signals || !strings.Contains(string(text), "--device subject\n") {
			t.Errorf("a row each %g s: %v\n%s", step, err, text)
		}
		if c, err := config.Parse("edge.yaml", text, nil); err != nil || signals && codec.PlainName(c.Streams["walk"].Time) != "at (s)" {
			t.Errorf("a row each %g s: %v\n%s", step, err, text)
		}
		if _, err = streamFor(t.Context(), path, dataset.Options{TimeColumn: "1"}, io.Discard); signals && (err == nil || !strings.Contains(err.Error(), `column "subject" has "s0": --device subject if it names the device`)) {
			t.Errorf("without --device: %v", err)
		}
	}
}

// Times from the start of a recording may be ms or days, which the proposal says; those of a clock, and
// steps below a second, are what they are.
func TestProposeRelativeTimes(t *testing.T) {
	const ms, days = "count as seconds: if they are ms, divide them by 1000", "count as seconds: if they are days, as in a spreadsheet, multiply them by 86400"
	for _, c := range []struct {
		start, step float64
		says        string
	}{{0, 10, ms}, {0, 0.01, ""}, {1_795_717_000, 10, ""}, {45_123.5, 1. / 8640, days}, {45_123.5, 0.1, ""}, {45_123.5, 10, ms}} {
		var b strings.Builder
		b.WriteString("timestamp,x,label\n")
		for i := range 400 {
			fmt.Fprintf(&b, "%.6f,%d,%s\n", c.start+c.step*float64(i), i%7, []string{"idle", "run"}[i/200])
		}
		path := files.Write(t, "walk.csv", b.String())
		s, err := streamFor(t.Context(), path, dataset.Options{}, io.Discard)
		if err != nil || s == nil {
			t.Fatal(s, err)
		}
		text, err := sample(t.Context(), []string{path}, new(dataset.Options), map[string]*signalStream{path: s}, io.Discard)
		if err != nil || strings.Contains(string(text), "count as seconds") != (c.says != "") || !strings.Contains(string(text), c.says) {
			t.Errorf("from %g in steps of %g: %v\n%s", c.start, c.step, err, text)
		}
	}
}

// Rows that come seldom and irregularly have the lengths that a window may have, and are samples where there is none.
func TestProposeForSeldomRows(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		step      time.Duration
		irregular bool
		want      string // in the configuration; "": a file of samples
	}{
		{12 * time.Minute, true, "6h24m 0."},
		{5 * time.Hour, true, "160h"},
		{6 * time.Hour, true, ""},
		{150 * day, true, ""},
		{day, false, "rate: 1.16e-05"},
		{12 * day, false, ""},
		{150 * day, false, ""},
	} {
		for _, label := range []string{",label", ""} {
			var b strings.Builder
			fmt.Fprintf(&b, "time,y,x%s\n", label)
			at := 0
			for i := range min(6000, int(60_000*day/c.step)) {
				at += int(c.step / time.Second)
				if c.irregular && i%3 == 0 {
					at += int(c.step / time.Second)
				}
				fmt.Fprintf(&b, "%d,%d,%d.5", at, i*7%11, i*997%1009)
				if label != "" {
					fmt.Fprintf(&b, ",%d", i/500%2)
				}
				b.WriteString("\n")
			}
			path := files.Write(t, "room.csv", b.String())
			var data dataset.Options
			s, err := streamFor(t.Context(), path, data, io.Discard)
			if err != nil || (s != nil) != (c.want != "") || s != nil && s.Labelled != (label != "") {
				t.Errorf("a row each %v: %+v, %v", c.step, s, err)
				continue
			}
			if s == nil {
				continue
			}
			text, err := sample(t.Context(), []string{path}, &data, map[string]*signalStream{path: s}, io.Discard)
			if err != nil || label != "" && !strings.Contains(string(text), c.want) {
				t.Errorf("a row each %v: no %q, %v\n%s", c.step, c.want, err, text)
			}
			if _, err := config.Parse("edge.yaml", text, nil); err != nil {
				t.Errorf("a row each %v: %v\n%s", c.step, err, text)
			}
		}
	}
}
