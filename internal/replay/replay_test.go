package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/test/harness"
)

func TestSampleMessages(t *testing.T) {
	p := Player{Features: []string{"a b", "c"}}
	for _, tc := range []struct {
		named bool
		label string
		want  string
	}{
		{false, "", `{"id":"r-1","features":[0.1,1e+21]}`},
		{false, `wo"rn`, `{"id":"r-1","features":[0.1,1e+21],"label":"wo\"rn"}`},
		{true, "ok", `{"id":"r-1","features":{"a b":0.1,"c":1e+21},"label":"ok"}`},
	} {
		p.Named = tc.named
		got := string(p.Sample("r-1", []float64{0.1, 1e21}, tc.label))
		if got != tc.want || !json.Valid([]byte(got)) {
			t.Errorf("named %v, label %q: %s, want %s", tc.named, tc.label, got, tc.want)
		}
	}
	gaps := Player{Features: []string{"a", "b"}, Named: true}
	if got := string(gaps.Sample("r-1", []float64{math.NaN(), 2}, "")); got != `{"id":"r-1","features":{"a":null,"b":2}}` {
		t.Errorf("published as %s", got)
	}
}

func TestPacerStopsWithItsContext(t *testing.T) {
	for _, rate := range []float64{1e-3, 1e-12, math.SmallestNonzeroFloat64} { // of a time that no duration holds
		ctx, cancel := context.WithCancel(t.Context())
		p := pacer{rate: rate}
		if err := p.wait(ctx); err != nil {
			t.Fatalf("the first event waits: %v", err)
		}
		if wait := time.Until(p.next); wait < time.Minute {
			t.Errorf("rate %g: the second event waits %v", rate, wait)
		}
		cancel()
		if err := p.wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("rate %g: the second event, after the end: %v", rate, err)
		}
	}
}

// Rows keep the distances of their times from the first one on, which may have waited for a daemon.
func TestClockBeginsWithTheFirstRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock{speed: 2, first: -1}
		time.Sleep(time.Minute) // for a daemon
		var sent []time.Duration
		for began, at := time.Now(), time.Duration(0); at <= 4*time.Second; at += 2 * time.Second {
			if err := c.waitFor(t.Context(), int64(time.Hour+at)); err != nil {
				t.Fatal(err)
			}
			sent = append(sent, time.Since(began))
		}
		if want := []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(sent, want) {
			t.Errorf("rows 2s apart are sent after %v, want %v", sent, want)
		}
	})
}

// A replay that is interrupted while it reads the file for the first time reads no further.
func TestReplayEndsWithinTheFirstReading(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	signals := routed(t, `topics: [lab/rows], signals: [x]`)
	for name, tc := range map[string]struct {
		text string
		cfg  *config.Config
	}{
		"samples": {"x,label\n1,a\nword,a\n", nil},
		"signals": {"ts,x,label\n1,1,a\n2,word,a\n", signals},
	} {
		src := &Source{Path: tableOf(t, tc.text)}
		if reports, err := File(ended, src, &Player{Labels: "inline", Fraction: 1}, mqtt.Config{}, tc.cfg, io.Discard); reports != nil || err != nil {
			t.Errorf("%s: %v, %v: the second row was read", name, reports, err)
		}
	}
}

// A loop whose file is gone, or has become another, ends with an error.
func TestLoopOfAFileThatChanges(t *testing.T) {
	for _, text := range []string{"", "a file without a column\n"} {
		path := tableOf(t, "x,label\n1,a\n")
		rows := &fileRows{path: path, loop: true}
		if err := rows.open(); err != nil {
			t.Fatal(err)
		}
		var row dataset.Row
		for n := 1; n <= 2; n++ {
			if err := rows.Next(&row); err != nil || row.Number != n {
				t.Fatalf("row %d: %d, %v", n, row.Number, err)
			}
		}
		err := os.Remove(path)
		if text != "" {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := rows.Next(&row); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
		if err := rows.file.Close(); err != nil {
			t.Errorf("%q: the file in use before is closed: %v", text, err)
		}
	}
}

// A replay reads its file twice, and so refuses standard input and pipes.
func TestReplayOfAPipe(t *testing.T) {
	for _, config := range []*config.Config{nil, harness.Parsed(t, harness.Minimal)} {
		_, err := File(t.Context(), &Source{Path: "-"}, &Player{Labels: "inline", Topic: "factory/p7/vibration"}, mqtt.Config{}, config, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "standard input is no file, and is read twice: write it to a file first") {
			t.Errorf("error %v", err)
		}
	}
}

// Topics on which nothing can be published are refused, or replaced where they are the file's name:
// a broker would end the connection without end.
func TestTopicsWithWildcards(t *testing.T) {
	src := &Source{Path: tableOf(t, "x,label\n1,a\n")}
	ended, cancel := context.WithCancel(t.Context()) // before it connects
	cancel()
	for _, topic := range []string{"lab/+", "lab/#", "lab/\x00"} {
		_, err := File(ended, src, &Player{Labels: "inline", Fraction: 1, Topic: topic}, mqtt.Config{}, nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "--topic ") {
			t.Errorf("%q: error %v", topic, err)
		}
	}
	if got, err := topicOf("a+b#c", nil); got != "sensors/a-b-c" || err != nil {
		t.Errorf("topic %s, %v", got, err)
	}
}

// Rows go to a topic of a stream of the configuration, or replay refuses to start.
func TestTopicOfAReplay(t *testing.T) {
	stream := func(topics string) *config.Config {
		return harness.Parsed(t, strings.Replace(harness.Minimal, "topics: [factory/+/vibration]", "topics: "+topics, 1))
	}
	for name, tc := range map[string]struct {
		cfg        *config.Config
		want, fail string
	}{
		"no configuration":     {nil, "sensors/gas", ""},
		"a stream takes it":    {stream("[lab/gas, sensors/+]"), "sensors/gas", ""},
		"shared subscription":  {stream("[$share/g/sensors/#]"), "sensors/gas", ""},
		"the only one":         {stream("[lab/gas]"), "lab/gas", ""},
		"one of several":       {stream("[lab/gas, lab/air]"), "", "takes sensors/gas: give --topic one that matches lab/gas or lab/air"},
		"of an input":          {harness.Parsed(t, strings.Replace(harness.Minimal, "topics: [factory/+/vibration], features: [rms, kurtosis, peak_hz]", "inputs: {a: {topics: [lab/+/a], signals: [x]}, b: {topics: [lab/+/b], signals: [y]}}, window: {length: 2}", 1)), "", "give --topic one that matches lab/+/a or lab/+/b"},
		"only with a wildcard": {stream("[lab/+/gas]"), "", "give --topic one that matches lab/+/gas"},
	} {
		got, err := topicOf("gas", tc.cfg)
		if got != tc.want || (err == nil) != (tc.fail == "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
			t.Errorf("%s: %q, %v; want %q, %s", name, got, err, tc.want, tc.fail)
		}
	}
}

// Delayed labels go to topics that the configuration takes, or replay refuses to start.
func TestLabelTopicsOfAReplay(t *testing.T) {
	const row, recording = "rms,kurtosis,peak_hz,state\n1,2,3,a\n", "t,x,label\n1,1,a\n2,2,a\n"
	signals := strings.Replace(harness.Minimal, "topics: [factory/+/vibration], features: [rms, kurtosis, peak_hz]", "topics: [factory/+/x], topic_template: 'factory/{device}/x', signals: [x], window: {length: 2}", 1)
	for name, tc := range map[string]struct {
		text, config string
		want         string // in place of the topics that lack; "": labels are taken
	}{
		"no labels":               {row, harness.Minimal, "takes no labels on factory/p7/vibration/label: add"},
		"other topics":            {row, harness.Minimal + "labels: [{topics: [factory/+/label]}]\n", "takes no labels on factory/p7/vibration/label"},
		"their topic":             {row, harness.Minimal + "labels: [{topics: [factory/+/vibration/label]}]\n", ""},
		"a shared subscription":   {row, harness.Minimal + "labels: [{topics: ['$share/g/factory/#']}]\n", ""},
		"for the newest sample":   {row, harness.Minimal + "labels: [{topics: [factory/+/vibration/label], last: true, id: ''}]\n", "takes no labels on factory/p7/vibration/label"},
		"a stream without ids":    {row, strings.NewReplacer("factory/+/vibration", "'factory/#'", "peak_hz]", "peak_hz], id: ''").Replace(harness.Minimal), "takes no labels on factory/p7/vibration/label"},
		"the stream's":            {row, strings.Replace(harness.Minimal, "factory/+/vibration", "'factory/#'", 1), ""},
		"signals, no labels":      {recording, signals, "takes no labels on factory/+/x/label"},
		"signals, a state":        {recording, signals + "labels: [{topics: [factory/+/x/label], sticky: true}]\n", "takes no labels on factory/+/x/label"},
		"signals, of all devices": {recording, signals + "labels: [{topics: [factory/+/x/label]}]\n", ""},
		"signals, of one device":  {recording, signals + "labels: [{topics: [factory/p7/x/label]}]\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, src := harness.Parsed(t, tc.config), &Source{Path: tableOf(t, tc.text)}
			p := &Player{Labels: "delayed"}
			if tc.text == row {
				p.Topic = "factory/p7/vibration"
			}
			ended, cancel := context.WithCancel(t.Context()) // before it connects
			cancel()
			_, err := File(ended, src, p, cfg.MQTT, cfg, io.Discard)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// The predictions are judged by the classes that a daemon makes of the labels, which are sent as they are.
func TestClassesOfAReplay(t *testing.T) {
	const row = "rms,kurtosis,peak_hz,state\n1,2,3,1\n1,2,3,2\n1,2,3,\n"
	inline := func(words string) string {
		return strings.Replace(harness.Minimal, "peak_hz]", "peak_hz], label_map: {"+words+"}", 1)
	}
	for name, tc := range map[string]struct{ config, labels, want string }{
		"no map":        {harness.Minimal, "inline", "1 2"},
		"of the stream": {inline("1: ok, 2: ''"), "inline", "ok "},
		"of the topic":  {inline("1: ok, 2: worn") + "labels: [{topics: ['factory/+/vibration/label'], map: {1: a, 2: b}}]\n", "delayed", "a b"},
		"lacks one":     {inline("1: ok"), "inline", `the label "2" is not in the map of labels, which has 1, ok`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, src := harness.Parsed(t, tc.config), &Source{Path: tableOf(t, row)}
			cfg.MQTT.Servers = []string{"mqtt://127.0.0.1:0"} // where nothing listens
			p := &Player{Labels: tc.labels, Topic: "factory/p7/vibration", Fraction: 1}
			_, err := File(t.Context(), src, p, cfg.MQTT, cfg, io.Discard)
			got := p.class("1") + " " + p.class("2") + p.class("")
			if err == nil || !strings.Contains(err.Error(), "127.0.0.1:0") {
				got = fmt.Sprint(err)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Labels that topics under labels have other words for are sent as the classes.
func TestWordsOfAReplay(t *testing.T) {
	const words = "labels: [{topics: [t/state], map: {1: ok, 2: worn}}]\n"
	cfg, src := harness.Parsed(t, harness.Minimal+words), &Source{Path: tableOf(t, "rms,kurtosis,peak_hz,state\n1,2,3,1\n1,2,3,2\n")}
	format, _, err := formatOn(src, cfg, "factory/p7/vibration")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := dataset.Summarize(t.Context(), src.Path, format); err != nil || strings.Join(s.Classes, " ") != "ok worn" {
		t.Errorf("classes %q, %v", s.Classes, err)
	}
	cfg = harness.Parsed(t, strings.Replace(harness.Minimal, "features: [rms, kurtosis, peak_hz]", "signals: [rms], window: {length: message, max_gap: 1s}", 1)+words)
	src.Path = tableOf(t, "t,rms,label\n1,2,1\n9,2,2\n")
	raw, err := openRaw(src, cfg, "factory/p7/vibration")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.File.Close()
	if s, err := dataset.Summarize(t.Context(), src.Path, raw.format); err != nil || strings.Join(s.Classes, " ") != "ok worn" {
		t.Errorf("classes %q, %v", s.Classes, err)
	}
}

// A map that swaps two names is applied once to delayed labels: by the daemon.
func TestSwappedNamesOfAReplay(t *testing.T) {
	const swapped = "labels: [{topics: ['factory/+/vibration/label'], map: {ok: worn, worn: ok}}, {topics: [t/state], map: {2: ok}}]\n"
	cfg, src := harness.Parsed(t, harness.Minimal+swapped), &Source{Path: tableOf(t, "rms,kurtosis,peak_hz,state\n1,2,3,ok\n1,2,3,2\n1,2,3,ok\n")}
	format, _, err := formatOn(src, cfg, "factory/p7/vibration")
	if err != nil {
		t.Fatal(err)
	}
	p := &Player{}
	if err := p.takeLabels(cfg, "factory/p7/vibration/label"); err != nil {
		t.Fatal(err)
	}
	p.leaveWords(format)
	if s, err := dataset.Summarize(t.Context(), src.Path, format); err != nil || strings.Join(s.Classes, " ") != "ok" || p.class("ok") != "worn" {
		t.Errorf("sends %q, of which the daemon makes %q, %v", s.Classes, p.class("ok"), err)
	}
}

// Samples have the shape that their stream reads; one that cannot be written, or would teach
// nothing, is refused before the first.
func TestShapeOfAReplay(t *testing.T) {
	of := func(keys string) string {
		return strings.Replace(harness.Minimal, "peak_hz]", "peak_hz], on_missing: impute, "+keys, 1)
	}
	for name, tc := range map[string]struct {
		config, labels string
		ahead          int
		want           string // payload; "": read back alone
		fail           string
	}{
		"as it is":              {of("qos: 1"), "inline", 1, `{"id":"r-000001","features":[0.1,null,3],"label":"a"}`, ""},
		"paths of the features": {of("fields: {rms: a.rms, kurtosis: a.k}"), "inline", 1, `{"a":{"k":null,"rms":0.1},"id":"r-000001","label":"a","peak_hz":3}`, ""},
		"paths of the id":       {of("id: i"), "inline", 1, `{"i":"r-000001","kurtosis":null,"label":"a","peak_hz":3,"rms":0.1}`, ""},
		"paths of the label":    {of("label: meta.state"), "inline", 1, `{"id":"r-000001","kurtosis":null,"meta":{"state":"a"},"peak_hz":3,"rms":0.1}`, ""},
		"cbor":                  {of("format: cbor"), "inline", 1, "", ""},
		"csv":                   {of("format: csv, columns: [label, '', id, peak_hz, rms, kurtosis]"), "inline", 1, "a,,r-000001,3,0.1,\n", ""},
		"csv, delayed":          {of("format: csv, columns: [label, id, peak_hz, rms, kurtosis]") + "labels: [{topics: [factory/p7/vibration/label], id: of.id, label: class}]\n", "delayed", 1, "", ""},
		"csv without an id":     {of("format: csv, columns: [label, peak_hz, rms, kurtosis]"), "inline", 1, "", "have no ids, so that its predictions and labels are not found by them: give --ahead 0"},
		"the same, not awaited": {of("format: csv, columns: [label, peak_hz, rms, kurtosis]"), "inline", 0, "a,3,0.1,\n", ""},
		"csv without a label":   {of("format: csv, columns: [id, peak_hz, rms, kurtosis]"), "inline", 1, "", "stream vibration have no labels, so that those of the file would teach nothing: give --labels none"},
		"raw numbers":           {of("format: float32"), "none", 0, "", ""},
		"raw numbers, labels":   {of("format: float64"), "inline", 0, "", "have no labels"},
		"no ids":                {of("id: ''"), "delayed", 0, "", "have no ids"},
		"line protocol":         {of("format: influx"), "inline", 1, "", "format influx are not written: give the model a stream with format: json"},
		"values":                {strings.Replace(of("format: value, topic_template: 'factory/{feature}/vibration'"), "on_missing: impute, ", "", 1), "inline", 0, "", "format value, one for each feature, are not written: give"},
		"compressed":            {of("compression: zstd"), "inline", 1, "", "compression zstd are not written: a stream with compression: auto"},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Parsed(t, tc.config).Streams["vibration"]
			p := &Player{Labels: tc.labels, Ahead: tc.ahead, Prefix: "r"}
			if err := p.writeFor("vibration", s, true); tc.fail != "" || err != nil {
				if tc.fail == "" || err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Errorf("%v, want %q", err, tc.fail)
				}
				return
			}
			payload, err := p.payload(p.id(1), []float64{0.1, math.NaN(), 3}, "a")
			if err != nil || tc.want != "" && string(payload) != tc.want {
				t.Fatalf("published as %s, %v; want %s", payload, err, tc.want)
			}
			d, err := codec.NewDecoder(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode(payload)
			if err != nil || len(got) != 1 || math.Abs(got[0].X[0]-0.1) > 1e-7 || !math.IsNaN(got[0].X[1]) || got[0].X[2] != 3 {
				t.Fatalf("%q is read as %+v, %v", payload, got, err)
			}
			if raw := tc.labels == "none"; !raw && got[0].Label != "a" || !raw && tc.ahead > 0 && got[0].ID != "r-000001" {
				t.Errorf("%q has the id %q and the label %q", payload, got[0].ID, got[0].Label)
			}
		})
	}
}

// Delayed labels have the paths of the entry, or of the stream, that takes them.
func TestShapeOfDelayedLabels(t *testing.T) {
	const topic = "factory/p7/vibration/label"
	stream, rest, _ := strings.Cut(strings.Replace(harness.Minimal, "factory/+/vibration", "'factory/#'", 1), "}}\n")
	rest = "}}\n" + rest
	for config, want := range map[string]string{
		harness.Minimal + "labels: [{topics: ['" + topic + "']}]\n":                          `{"id":"r-1","label":"a"}`,
		harness.Minimal + "labels: [{topics: ['" + topic + "'], id: of.id, label: class}]\n": `{"class":"a","of":{"id":"r-1"}}`,
		stream + ", id: i" + rest: `{"i":"r-1","label":"a"}`,
		stream + ", format: csv, columns: [id, rms, kurtosis, peak_hz, label]" + rest: "r-1,,,,a\n",
	} {
		p := &Player{}
		if err := p.takeLabels(harness.Parsed(t, config), topic); err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		if got, err := p.labels.Sample("r-1", nil, "a"); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", config, got, err, want)
		}
	}
}

// The columns of a file are the features of the stream that takes its rows, found by name,
// as eval finds them. A file without them is refused: in another order its rows would teach
// the wrong features.
func TestColumnsOfAReplay(t *testing.T) {
	const vibration = "factory/p7/vibration"
	two := strings.Replace(harness.Minimal, "streams: {", "streams: {other: {topics: ['factory/#'], features: [x]}, ", 1)
	for name, tc := range map[string]struct {
		text, config, topic string
		columns             []string
		want, fail          string
	}{
		"the same order":     {"rms,kurtosis,peak_hz,state\n1,2,3,a\n", harness.Minimal, vibration, nil, "[1 2 3]", ""},
		"another order":      {"peak_hz,note,kurtosis,rms,state\n3,x,2,1,a\n", harness.Minimal, vibration, nil, "[1 2 3]", ""},
		"another name":       {"kurtosis,rms,peak,state\n2,1,3,a\n", harness.Minimal, vibration, nil, "", "features that are no columns of the file: peak_hz; the columns are kurtosis, rms, peak"},
		"fewer columns":      {"rms,kurtosis,state\n1,2,a\n", harness.Minimal, vibration, nil, "", "features that are no columns of the file: peak_hz"},
		"given columns":      {"kurtosis,rms,peak,state\n2,1,3,a\n", harness.Minimal, vibration, []string{"rms", "kurtosis", "peak"}, "[1 2 3]", ""},
		"no header":          {"1,2,3,a\n1,2,3,b\n", harness.Minimal, vibration, nil, "[1 2 3]", ""},
		"no header, fewer":   {"1,2,a\n1,2,b\n", harness.Minimal, vibration, nil, "", "there are 2 where the model has 3 features"},
		"the second stream":  {"kurtosis,rms,peak_hz,state\n2,1,3,a\n", two, vibration, nil, "[1 2 3]", ""},
		"samples of signals": {"x.mean,x.max,state\n1,2,a\n", strings.Replace(harness.Minimal, "features: [rms, kurtosis, peak_hz]", "signals: [x], window: {length: 4}", 1), vibration, nil, "", "stream vibration, which takes factory/p7/vibration, makes its samples of rows of signals: want a file that has a column for each"},
		"another topic":      {"kurtosis,rms,peak,state\n2,1,3,a\n", harness.Minimal, "lab/x", nil, "[2 1 3]", ""},
		"no configuration":   {"kurtosis,rms,peak,state\n2,1,3,a\n", "", vibration, nil, "[2 1 3]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg *config.Config
			if tc.config != "" {
				cfg = harness.Parsed(t, tc.config)
			}
			src := &Source{Path: tableOf(t, tc.text)}
			src.Data.Columns = tc.columns
			format, _, err := formatOn(src, cfg, tc.topic)
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Errorf("%v, want %s", err, tc.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := dataset.Open(src.Path, format)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			var row dataset.Row
			if err := d.Next(&row); err != nil || fmt.Sprint(row.X) != tc.want {
				t.Errorf("the first row is %v (%v), want %s", row.X, err, tc.want)
			}
		})
	}
}
