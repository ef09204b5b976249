package replay

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/embedded"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/test/files"
	"edge/test/harness"
)

// routed returns the configuration of a stream with these keys.
func routed(t *testing.T, keys string) *config.Config {
	t.Helper()
	return harness.Parsed(t, "mqtt: {servers: [mqtt://broker.lan]}\nstreams: {s: {"+keys+"}}\nmodels: {m: {streams: [s]}}\n")
}

// A row goes to the topics that the stream's template names.
func TestRoutesOfSignals(t *testing.T) {
	for name, tc := range map[string]struct {
		keys, given, device, signal string
		want                        string // topics of the inputs, or an error
	}{
		"a template":           {`topics: [lab/+/x], topic_template: "lab/{device}/x", signals: [x]`, "", "p7", "", "lab/p7/x"},
		"two levels":           {`topics: ["+/+/x"], topic_template: "{site}/{device}/x", signals: [x]`, "", "hall/p7", "", "hall/p7/x"},
		"one topic":            {`topics: [lab/x], signals: [x]`, "", "p7", "", "lab/x"},
		"a shared one":         {`topics: ["$share/g/lab/x"], signals: [x]`, "", "", "", "lab/x"},
		"a given topic":        {`topics: ["lab/#"], signals: [x]`, "lab/{device}", "p7", "", "lab/p7"},
		"values":               {`topics: ["lab/+/+"], topic_template: "lab/{device}/{signal}", format: value, signals: [x, y], hold: {on: any}`, "", "p7", "y", "lab/p7/y"},
		"values with filters":  {`topics: ["lab/#"], format: value, signals: [x, y], fields: {x: lab/a, y: lab/b}, hold: {on: any}`, "", "", "y", "lab/b"},
		"inputs":               {`inputs: {a: {topics: [lab/a]}, b: {topics: [lab/b]}}, hold: {on: any}`, "", "", "", "lab/a lab/b"},
		"wildcards":            {`topics: ["lab/#"], signals: [x]`, "", "p7", "", "do not say where rows of a device go: give --topic, such as lab/{device}/rows"},
		"a device of a level":  {`topics: ["+/+/x"], topic_template: "{site}/{device}/x", signals: [x]`, "", "p7", "", `device "p7" has 1 levels of the topic {device}/{device}/x, which has 2`},
		"a device that is +":   {`topics: [lab/+/x], topic_template: "lab/{device}/x", signals: [x]`, "", "p+", "", `device "p+" cannot be a part of a topic`},
		"inputs and a topic":   {`inputs: {a: {topics: [lab/a]}}, hold: {on: any}`, "lab/x", "", "", "--topic is for streams without inputs"},
		"a topic of others":    {`topics: [lab/+/x, "$share/g/hall/x"], signals: [x]`, "lab/x", "", "", "it does not take lab/x: give --topic one that matches lab/+/x or $share/g/hall/x"},
		"a format that is not": {`topics: [lab/x], signals: [x], format: influx`, "", "", "", "payloads of format influx are not written"},
	} {
		t.Run(name, func(t *testing.T) {
			routes, err := routesOf(routed(t, tc.keys).Streams["s"], tc.given)
			var got []string
			for i := range routes {
				var one string
				if one, err = routes[i].topic(strings.Split(tc.device, "/"), tc.signal); err != nil {
					break
				}
				got = append(got, one)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %s", err, tc.want)
				}
			} else if strings.Join(got, " ") != tc.want {
				t.Errorf("topics %v, want %s", got, tc.want)
			}
		})
	}
}

// The stream is found whose signals a file has.
func TestOpenRaw(t *testing.T) {
	cfg := harness.Parsed(t, `
mqtt: {servers: [mqtt://broker.lan]}
streams:
  a: {topics: [lab/a], signals: [x, y]}
  b: {topics: [lab/b], signals: [u, v], window: {length: 2}}
models: {m: {streams: [a]}, n: {streams: [b]}}
`)
	path := tableOf(t, "t,u,v,label\n1,1,1,ok\n2,2,2,ok\n")
	raw, err := openRaw(&Source{Path: path}, cfg, "")
	if err != nil || raw == nil {
		t.Fatal(raw, err)
	}
	defer raw.File.Close()
	if raw.File.Of().Name != "b" || raw.routes[0].template != "lab/b" {
		t.Errorf("stream %s, topic %s", raw.File.Of().Name, raw.routes[0].template)
	}
	if raw, err := openRaw(&Source{Path: tableOf(t, "f,g,label\n1,2,ok\n")}, cfg, ""); raw != nil || err != nil {
		t.Errorf("a file of samples gives %v, %v", raw, err)
	}
	src := &Source{Path: path, Data: dataset.Options{Stream: "a"}}
	if _, err := openRaw(src, cfg, ""); err == nil || !strings.Contains(err.Error(), "no column: x, y") {
		t.Errorf("another stream gives %v", err)
	}
}

// The ids of a file's samples begin with the device that the daemon knows their rows by.
func TestDevicesOfSignals(t *testing.T) {
	const template = `topics: [lab/+/x], topic_template: "lab/{device}/x", signals: [x]`
	for name, tc := range map[string]struct{ keys, given, text, want string }{
		"a column":                    {template, "", "t,device,x\n1,p7,1\n", "p7#1000"},
		"a column, and a topic of it": {template, "lab/{device}/x", "t,device,x\n1,p7,1\n", "p7#1000"},
		"a topic":                     {template, "lab/p8/x", "t,x\n1,1\n", "p8#1000"},
		"a topic in place of it":      {template, "lab/p8/x", "t,device,x\n1,p7,1\n", "p8#1000"},
		"a topic of two levels":       {`topics: ["+/+/x"], topic_template: "{site}/{device}/x", signals: [x]`, "hall/p8/x", "t,x\n1,1\n", "hall/p8#1000"},
		"a topic of a signal":         {`topics: [lab/+/+], topic_template: "lab/{device}/{signal}", signals: [x], format: value`, "lab/p8/{signal}", "t,x\n1,1\n", "p8#1000"},
		"a topic without a device":    {`topics: [lab/x], signals: [x]`, "", "t,device,x\n1,p7,1\n", "#1000"},
		"inputs without a device":     {`inputs: {a: {topics: [lab/x], signals: [x]}}, hold: {on: any}`, "", "t,device,x\n1,p7,1\n", "#1000"},
		"a payload with the device":   {`topics: [lab/x], device: mac, signals: [x]`, "lab/x", "t,device,x\n1,p7,1\n", "p7#1000"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := openRaw(&Source{Path: tableOf(t, tc.text)}, routed(t, tc.keys), tc.given)
			if err != nil || raw == nil {
				t.Fatal(raw, err)
			}
			defer raw.File.Close()
			var row dataset.Row
			if err := raw.File.Next(&row); err != nil || raw.File.Origin().ID != tc.want {
				t.Errorf("the sample is %s, %v; want %s", raw.File.Origin().ID, err, tc.want)
			}
		})
	}
}

// Rows whose payloads have no time become samples with ids that only the daemon knows.
func TestReplayWithoutTimes(t *testing.T) {
	const timed, untimed = "t,device,x,label\n1,p7,1,a\n2,p7,2,a\n", "device,x,label\np7,1,a\np7,2,a\n"
	for name, tc := range map[string]struct {
		keys, text, labels string
		ahead              int
		refused            bool
	}{
		"json":                  {"format: json", timed, "inline", 1, false},
		"times are ignored":     {"time: ''", timed, "inline", 1, true},
		"a file without times":  {"format: json", untimed, "inline", 1, true},
		"csv":                   {"format: csv, columns: [ts, x, label]", timed, "inline", 1, false},
		"csv, no time":          {"format: csv", timed, "inline", 1, true},
		"raw numbers":           {"format: float32", timed, "inline", 1, true},
		"values":                {"format: value, hold: {on: any}", timed, "inline", 1, true},
		"values, not awaited":   {"format: value, hold: {on: any}", timed, "none", 0, false},
		"values, labels by ids": {"format: value, hold: {on: any}", timed, "delayed", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := routed(t, `topics: [lab/+/x], topic_template: "lab/{device}/x", signals: [x], `+tc.keys+"}, l: {topics: [lab/+/x/label], features: [y]")
			src := &Source{Path: tableOf(t, tc.text)}
			ended, cancel := context.WithCancel(t.Context()) // before it connects
			cancel()
			_, err := File(ended, src, &Player{Labels: tc.labels, Ahead: tc.ahead, Fraction: 1}, cfg.MQTT, cfg, io.Discard)
			if refused := err != nil && strings.Contains(err.Error(), "the payloads have no times"); refused != tc.refused || err != nil && !refused {
				t.Errorf("error %v, want one: %v", err, tc.refused)
			}
		})
	}
}

// Labels of a file that no payload has would be left out without a word.
func TestReplayWithoutLabels(t *testing.T) {
	const labelled, plain = "t,device,x,label\n1,p7,1,a\n2,p7,2,\n", "t,device,x,label\n1,p7,1,\n2,p7,2,\n"
	const state = "inputs: {i: {topics: [lab/+/x], topic_template: 'lab/{device}/x', signals: [x]%s}}, hold: {on: any}"
	row := `topics: [lab/+/x], topic_template: "lab/{device}/x", signals: [x]`
	b, err := embedded.Start("127.0.0.1:0", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for name, tc := range map[string]struct {
		stream, text, labels string
		refused              bool
	}{
		"in the payload":       {row, labelled, "inline", false},
		"ignored there":        {row + ", label: ''", labelled, "inline", true},
		"as delayed ones":      {row + ", label: ''", labelled, "delayed", false},
		"none are sent":        {row + ", label: ''", labelled, "none", false},
		"none in the file":     {row + ", label: ''", plain, "inline", false},
		"inputs without":       {fmt.Sprintf(state, ""), labelled, "inline", true},
		"an input with labels": {fmt.Sprintf(state, ", label: state"), labelled, "inline", false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := routed(t, tc.stream+"}, l: {topics: [lab/+/x/label], features: [y]")
			cfg.MQTT.Servers = []string{b.URL()}
			src := &Source{Path: tableOf(t, tc.text)}
			_, err := File(t.Context(), src, &Player{Labels: tc.labels, Fraction: 1}, cfg.MQTT, cfg, io.Discard)
			if refused := err != nil && strings.Contains(err.Error(), "give --labels delayed"); refused != tc.refused || err != nil && !refused {
				t.Errorf("error %v, want one: %v", err, tc.refused)
			}
		})
	}
}

// A label goes to the topic of an input beside which the configuration takes labels.
func TestTopicOfDelayedLabels(t *testing.T) {
	b, err := embedded.Start("127.0.0.1:0", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for name, tc := range map[string]struct{ inputs, labels, text, want string }{
		"the first of two": {"a: {topics: [lab/+/a], topic_template: 'lab/{device}/a', signals: [x]}, b: {topics: [lab/+/b], topic_template: 'lab/{device}/b', signals: [y]}",
			"lab/+/a/label", "t,device,x,y,label\n1,p7,1,2,a\n2,p7,2,3,a\n", "lab/p7/a/label"},
		"one without a value": {"a: {topics: [lab/+/a], topic_template: 'lab/{device}/a', signals: [x]}, b: {topics: [lab/+/b], topic_template: 'lab/{device}/b', signals: [y]}",
			"lab/+/a/label", "t,device,x,y,label\n1,p7,1,2,a\n2,p7,,3,a\n", "lab/p7/a/label"},
	} {
		cfg := harness.Parsed(t, "mqtt: {servers: ['"+b.URL()+"']}\nstreams: {s: {inputs: {"+tc.inputs+"}, hold: {on: any}}}\nlabels: [{topics: ["+tc.labels+"]}]\nmodels: {m: {streams: [s]}}\n")
		var mu sync.Mutex
		topics, end := map[string]bool{}, make(chan struct{})
		c, err := broker.Connect(t.Context(), cfg.MQTT, broker.Options{Receive: func(m broker.Message) {
			mu.Lock()
			defer mu.Unlock()
			if topics[m.Topic] = strings.HasSuffix(m.Topic, "/label"); m.Topic == "lab/end" {
				close(end)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Subscribe(t.Context(), "lab/#", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := File(t.Context(), &Source{Path: tableOf(t, tc.text)}, &Player{Labels: "delayed", Fraction: 1}, cfg.MQTT, cfg, io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Publish(t.Context(), "lab/end", 1, false, []byte("1")); err != nil { // it comes after the labels
			t.Fatal(err)
		}
		select {
		case <-end:
		case <-time.After(time.Minute):
			t.Fatal("the last message has not come")
		}
		c.Close()
		mu.Lock()
		maps.DeleteFunc(topics, func(_ string, label bool) bool { return !label })
		if got := slices.Sorted(maps.Keys(topics)); !slices.Equal(got, []string{tc.want}) {
			t.Errorf("%s: labels on %q, want %s", name, got, tc.want)
		}
		mu.Unlock()
	}
}

// The numbers of samples are found by their ids, the oldest are forgotten.
func TestFollowerOfStageIDs(t *testing.T) {
	f := newProgress("edge", "file", nil)
	for n := 1; n <= keptRows+5; n++ {
		f.expect(fmt.Sprintf("p#%d", 10*n), n)
	}
	for id, want := range map[string]int{"p#10": 0, "p#50": 0, "p#60": 6, fmt.Sprintf("p#%d", 10*(keptRows+5)): keptRows + 5, "file-000007": 0} {
		if row, ok := f.rowOf(id); row != want || ok != (want > 0) {
			t.Errorf("%s is sample %d, %v; want %d", id, row, ok, want)
		}
	}
	if id := f.idOf(7); id != "p#70" {
		t.Errorf("sample 7 is %s", id)
	}
}

func tableOf(t *testing.T, text string) string {
	t.Helper()
	return files.Write(t, "rows.csv", text)
}

// A daemon that predicts nothing may not subscribe to the topic; one that has had rows of signals
// before drops them. Both reasons are told.
func TestNothingIsPredicted(t *testing.T) {
	for _, c := range []struct {
		raw       *RawSource
		predicted bool
		want      bool
	}{{&RawSource{}, false, true}, {&RawSource{}, true, false}, {nil, false, false}} {
		progress := newProgress("edge", "f", nil)
		progress.receive("edge/n/state", []byte("online"), false)
		progress.receive("edge/n/info", []byte("{}"), false)
		if c.predicted {
			progress.receive("edge/n/m/prediction", []byte(`{"v":1,"id":"f-000003","model":"m","seq":1,"version":0}`), false)
		}
		reason := ""
		p := &Player{Raw: c.raw, Topic: "lab/x", Ahead: 5, Waiting: func(r string) { reason = r }}
		if err := (&playback{Player: p, progress: progress}).await(t.Context(), 10, 0); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(reason, "going on slowly") || strings.Contains(reason, "count as late") != c.want || strings.Contains(reason, "--topic gives another one") == c.predicted {
			t.Errorf("signals %v, predicted %v: %q", c.raw != nil, c.predicted, reason)
		}
	}
}
