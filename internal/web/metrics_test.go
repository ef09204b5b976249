package web

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream"
	"edge/stream/codec"
)

// A class that is not valid UTF-8 does not break the metrics.
func TestMetricLabel(t *testing.T) {
	for class, want := range map[string]string{"ok": "ok", "größer": "größer", "\xff\xfe": `"\xff\xfe"`} {
		if got := metricLabel(class); got != want {
			t.Errorf("metricLabel(%q) = %q, want %q", class, got, want)
		}
	}
}

// Each kind of event has a counter.
func TestEventsAreCounted(t *testing.T) {
	m := NewMonitor()
	for _, kind := range []string{"overload", "drift", "overload"} {
		m.OnEvent(stream.Event{Kind: kind})
	}
	s := &scrape{observed: m.observations()}
	for _, of := range monitorMetrics() {
		if of.name == "edge_events_total" {
			v := values{metric: &of}
			of.read(s, &v)
			const want = "edge_events_total{event=\"drift\"} 1\nedge_events_total{event=\"overload\"} 2\n"
			if got := string(v.lines); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			return
		}
	}
	t.Error("no metric of events")
}

// A message that its stream refuses over its topic is not counted for stream none as well.
func TestRejectedOnce(t *testing.T) {
	s := &scrape{node: stream.Stats{
		Rejected: map[codec.Reason]uint64{codec.BadTopic: 3, codec.Unrouted: 1, codec.Malformed: 4},
		Streams:  map[string]stream.StreamStats{"pump": {Rejected: map[codec.Reason]uint64{codec.BadTopic: 2, codec.Malformed: 4}}},
	}}
	m := &metric{name: "x", labels: labelled("stream", "reason")}
	v := values{metric: m}
	readRejected(s, &v)
	const want = `x{stream="pump",reason="bad_topic"} 2
x{stream="pump",reason="malformed"} 4
x{stream="none",reason="unrouted"} 1
x{stream="none",reason="bad_topic"} 1
`
	if got := string(v.lines); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Every metric of the dashboard exists, with the labels that it uses.
func TestGrafanaDashboard(t *testing.T) {
	const file = "../../configs/grafana.json"
	dashboard, err := os.ReadFile(file)
	if err != nil || !gjson.ValidBytes(dashboard) {
		t.Fatalf("%s is not JSON: %v", file, err)
	}
	m := NewMonitor()
	known := map[string][]string{}
	for _, f := range newCollector(m).families {
		known[f.name] = f.labels
	}
	used := map[string]bool{}
	use := regexp.MustCompile(`\b((?:edge|go|process)_[a-z0-9_]+)(\{[^}]*\})?`)
	label := regexp.MustCompile(`([a-z]+)=~?"`)
	for _, e := range gjson.GetBytes(dashboard, "panels.#.targets.#.expr|@flatten").Array() {
		for _, match := range use.FindAllStringSubmatch(e.String(), -1) {
			name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(match[1], "_bucket"), "_sum"), "_count")
			labels, ok := known[name]
			if !ok {
				t.Errorf("%s: there is no metric %s", e, match[1])
			}
			used[name] = true
			for _, l := range label.FindAllStringSubmatch(match[2], -1) {
				if !slices.Contains(slices.Concat(labels, []string{"job", "instance", "le"}), l[1]) {
					t.Errorf("%s: %s has no label %s, but %s", e, name, l[1], labels)
				}
			}
		}
	}
	if len(used) < 20 {
		t.Errorf("the dashboard shows %d metrics only: %v", len(used), slices.Sorted(maps.Keys(used)))
	}
}

// Dashboards and alerts depend on the name, the kind and the labels of each metric.
func TestMetricFamilies(t *testing.T) {
	want, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for _, m := range newCollector(NewMonitor()).families {
		got = fmt.Appendf(got, "%s %s %v %s\n", m.name, m.kind, m.labels, m.help)
	}
	if string(got) != string(want) {
		t.Errorf("the metrics are\n%swant\n%s", got, want)
	}
}

// The gauges of a stream that a reload has removed end; its counters go on.
func TestEndedStream(t *testing.T) {
	now := time.Now()
	s := &scrape{now: now, node: stream.Stats{Streams: map[string]stream.StreamStats{
		"old": {Received: 3, Ended: true, Signals: &stream.SignalStats{Rows: 3, Devices: 1}},
		"new": {Received: 4, Signals: &stream.SignalStats{Rows: 4, Devices: 2}},
	}}}
	want := map[string]int{"edge_messages_received_total": 2, "edge_signal_rows_total": 2, "edge_signal_devices": 1, "edge_last_message_timestamp_seconds": 1}
	for _, m := range nodeMetrics() {
		if n, ok := want[m.name]; ok {
			v := values{metric: &m}
			m.read(s, &v)
			if got := string(v.lines); strings.Count(got, "\n") != n || !strings.Contains(got, `stream="new"`) {
				t.Errorf("%s: got\n%swant %d lines", m.name, got, n)
			}
			delete(want, m.name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no metrics %v", want)
	}
}
