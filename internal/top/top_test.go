package top

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/fxamacker/cbor/v2"
	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/daemon"
	"edge/internal/replay"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/stream/mqtt"
	"edge/test/harness"
)

// receivedState returns the state of a node with two models.
func receivedState(t testing.TB) *nodeState {
	t.Helper()
	b := newNodeState("edge", "hall")
	for _, m := range [][2]string{
		{"state", "online"},
		{"info", `{"v":1,"version":"v1.2.3","arch":"linux/arm64","started":"2026-11-20T20:00:00.000Z","control":true,"models":[{"name":"bearing","classes":["ok","worn"]},{"name":"pump","classes":[]}]}`},
		{"bearing/metrics", `{"n":120,"error":0.25,"log_loss":0.5,"ece":0.03,"window":{"n":100,"error":0.2,"log_loss":0.4},"classes":["ok","worn"],"confusion":[[70,10],[20,20]],"pending":7,"beats_baselines":false,"learning":true,"warmed_up":true,"version":110}`},
		{"pump/metrics", `{"n":0,"error":null,"log_loss":null,"window":{"n":0,"error":null,"log_loss":null},"classes":[],"confusion":[],"pending":0,"learning":false,"warmed_up":false}`},
		{"bearing/latest", `{"v":1,"id":"p7-8","seq":8,"class":"ok","confidence":0.9,"probs":{"ok":0.9,"worn":0.1},"novelty":0.25}`},
		{"bearing/prediction", `{"v":1,"id":12345678901234567890,"seq":9,"class":"worn","confidence":0.75,"probs":{"ok":0.25,"worn":0.75},"novelty":0.5,"learned":true}`},
		{"bearing/prediction/press/7", `{"v":1,"id":null,"device":"press/7","seq":10,"class":null,"confidence":null,"probs":{},"novelty":1}`},
		{"bearing/query", `{"v":1,"id":"p7-8","reason":"margin","class":"ok","features":{"rms":null}}`},
		{"bearing/query", `{"v":1,"id":"p7-8","device":"another","reason":"entropy"}`},
		{"bearing/query", `{"v":1,"id":"gone","reason":"entropy"}`},
		{"bearing/reject", `{"reason":"malformed","error":"not JSON"}`},
		{"event", `{"ts":"2026-11-20T20:00:01.000Z","event":"class_added","model":"bearing","detail":"worn"}`},
		{"health", `{"status":"ok","received":500,"learned":120,"rejected":{"malformed":2,"duplicate":1},"dropped":{"in":1,"frozen":9},"queues":{"in":1,"out":2},"rss_bytes":30000000}`},
	} {
		b.receive("edge/hall/"+m[0], []byte(m[1]), false)
	}
	return b
}

// A model whose scores have not come, as at a broker that keeps them from wildcards, shows none.
func TestModelWithoutScores(t *testing.T) {
	n := newNodeState("edge", "pi4")
	if m := n.model("bearing"); !math.IsNaN(float64(m.Error+m.LogLoss)) || !math.IsNaN(float64(m.Window.Error+m.Window.LogLoss)) {
		t.Errorf("scores are %+v", m)
	}
}

func TestStateReceives(t *testing.T) {
	b := receivedState(t)
	v := b.snapshot(true)
	if v.State != "online" || v.Version != "v1.2.3" || !v.Control || !v.Connected || len(v.Models) != 2 {
		t.Fatalf("the state is %+v", v)
	}
	m, empty := &v.Models[0], &v.Models[1]
	if m.N != 120 || m.Error != 0.25 || m.Window.LogLoss != 0.4 || m.Pending != 7 || m.ECE != 0.03 || m.Confusion[1][0] != 20 || !m.Learning {
		t.Errorf("scores are %+v", m)
	}
	if want := (report.CoursePoint{N: 120, Error: 0.25, LogLoss: 0.5, WindowError: 0.2, WindowLogLoss: 0.4, Time: m.Course[0].Time}); len(m.Course) != 1 || m.Course[0] != want || want.Time.IsZero() {
		t.Errorf("course is %v, want %v", m.Course, want)
	}
	if !math.IsNaN(float64(empty.Error)) || empty.Learning || len(empty.Samples) != 0 {
		t.Errorf("a model without samples is %+v", empty)
	}
	var ids []string
	for _, s := range m.Samples {
		ids = append(ids, s.idText())
	}
	if want := []string{"#10", "12345678901234567890", "p7-8"}; !slices.Equal(ids, want) {
		t.Errorf("samples are %q, want %q", ids, want)
	}
	if m.Samples[2].Asked != "margin" || m.Samples[1].Asked != "" || m.Samples[0].Asked != "" {
		t.Errorf("asked for are %+v, want p7-8 alone", m.Samples)
	}
	if s := m.Samples[0]; s.Device != "press/7" || s.Class != "" || s.Confidence != 0 {
		t.Errorf("a sample without a class is %+v", s)
	}
	if len(v.Events) != 2 || v.Events[0].Event != "class_added" || v.Events[1].Detail != "malformed: not JSON" {
		t.Errorf("events are %+v", v.Events)
	}
	if v.Health.Received != 500 || v.Health.Dropped["in"] != 1 {
		t.Errorf("health is %+v", v.Health)
	}
}

func TestStateReadsCBOR(t *testing.T) {
	b := newNodeState("edge", "hall")
	payload, err := cbor.Marshal(map[string]any{"v": 1, "id": uint64(7), "seq": 3, "class": "ok", "confidence": 0.5, "probs": map[string]float64{"ok": 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	b.receive("edge/hall/bearing/prediction", payload, false)
	s := b.snapshot(true).Models[0].Samples
	if len(s) != 1 || s[0].idText() != "7" || s[0].Class != "ok" || s[0].Confidence != 0.5 {
		t.Errorf("CBOR is read as %+v", s)
	}
}

// The state follows a node that starts again and counts from 1.
func TestStateFollowsARestart(t *testing.T) {
	b := newNodeState("edge", "hall")
	predict := func(seq int, kind string) {
		b.receive("edge/hall/bearing/"+kind, fmt.Appendf(nil, `{"seq":%d,"class":"ok","confidence":1,"probs":{"ok":1}}`, seq), false)
	}
	start := time.Unix(1000, 0)
	predict(100, "prediction")
	b.tick(start)
	predict(140, "prediction")
	predict(139, "latest") // late, and label already
	b.tick(start.Add(2 * time.Second))
	if m := b.snapshot(true).Models[0]; m.Rate != 20 || len(m.Samples) != 2 {
		t.Errorf("rate %v with %d samples, want 20 a second and 2", m.Rate, len(m.Samples))
	}
	predict(1, "prediction")
	predict(2, "prediction")
	b.tick(start.Add(3 * time.Second))
	predict(5, "prediction")
	b.tick(start.Add(4 * time.Second))
	if m := b.snapshot(true).Models[0]; m.Rate != 3 || len(m.Samples) != 3 || m.Samples[0].Seq != 5 {
		t.Errorf("after a restart: rate %v, samples %+v", m.Rate, m.Samples)
	}
}

// The time since the start is that of the node's health, whatever its clock says. Another start has another one.
func TestUptime(t *testing.T) {
	b := newNodeState("edge", "hall")
	title := func() string { return strings.Join((&layout{width: plainWidth}).lines(b.snapshot(true)), "\n") }
	start := func(after time.Duration) {
		b.receive("edge/hall/info", fmt.Appendf(nil, `{"started":%q}`, time.Now().Add(after).UTC().Format(time.RFC3339)), true)
	}
	b.receive("edge/hall/state", []byte("online"), true)
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { start(-time.Hour) }, "up 1h 0m"},
		{func() { start(2 * time.Hour) }, "its clock is ahead"},
		{func() { b.receive("edge/hall/health", []byte(`{"uptime_s":7320}`), false) }, "up 2h 2m"},
		{func() { b.receive("edge/hall/event", []byte(`{}`), false) }, "up 2h 2m"},
		{func() { b.receive("edge/hall/state", []byte("online"), false) }, "its clock is ahead"},
	} {
		step.do()
		if got := title(); !strings.Contains(got, step.want) {
			t.Errorf("no %q in\n%s", step.want, got)
		}
	}
}

// Messages that the broker keeps of a model which the node has no more show no model, whenever they come.
func TestFormerModels(t *testing.T) {
	b := newNodeState("edge", "hall")
	for range 2 {
		b.receive("edge/hall/former/metrics", []byte(`{"n":7}`), true)
		b.receive("edge/hall/info", []byte(`{"models":[{"name":"bearing"}]}`), true)
		b.receive("edge/hall/former/latest", []byte(`{"seq":3,"class":"ok","confidence":1}`), true)
		if v := b.snapshot(true); len(v.Models) != 1 || v.Models[0].Model != "bearing" {
			t.Errorf("models %+v", v.Models)
		}
	}
	b.receive("edge/hall/info", []byte(`{"models":[{"name":"bearing"},{"name":"former"}]}`), false)
	if v := b.snapshot(true); len(v.Models) != 2 {
		t.Errorf("with a new model: %+v", v.Models)
	}
}

// Names of classes cannot control the terminal, neither as text nor as JSON.
func TestPrintedNamesAreEscaped(t *testing.T) {
	b := newNodeState("edge", "hall")
	b.receive("edge/hall/bearing/prediction", []byte(`{"seq":1,"id":"\u2066x","class":"\u009b31mred","confidence":1,"probs":{"\u009b31mred":1}}`), false)
	b.receive("edge/hall/bearing/metrics", []byte(`{"n":1,"classes":["\u009b31mred","\u202elaw"]}`), false)
	for _, asJSON := range []bool{false, true} {
		var out strings.Builder
		if err := (&Viewer{AsJSON: asJSON}).printView(b.snapshot(true), &out, true); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("\n", "").Replace(out.String())
		if !strings.Contains(text, `\u009b31mred`) || terminal.Escaped(text) != text {
			t.Errorf("JSON %v: it prints %q", asJSON, text)
		}
	}
}

// A client that publishes below the node's topic can neither fill the memory nor send
// control characters to the terminal.
func TestStateIsBounded(t *testing.T) {
	b := newNodeState("edge", "hall")
	for i := range 10 * maxModels {
		b.receive(fmt.Sprintf("edge/hall/m%d/metrics", i), []byte(`{"n":1}`), true)
	}
	long := strings.Repeat("x", 1<<16)
	for i := range 2 * keptSamples {
		b.receive("edge/hall/m0/prediction", fmt.Appendf(nil, `{"id":"%s","seq":%d,"class":"\u001b[31m%s","confidence":1}`, long, i+1, long), false)
		b.receive("edge/hall/m0/metrics", fmt.Appendf(nil, `{"n":%d,"error":0.1,"log_loss":0.1,"window":{"n":1,"error":0.1,"log_loss":0.1}}`, i+1), false)
		b.receive("edge/hall/event", []byte(`{"event":"`+long+`","detail":"\u001b]0;title\u0007"}`), false)
	}
	v := b.snapshot(true)
	if len(v.Models) != maxModels || len(v.Models[0].Samples) != keptSamples || len(v.Models[0].Course) > report.CoursePoints || len(v.Events) != keptEvents {
		t.Errorf("it remembers %d models, %d samples, %d points, %d events", len(v.Models), len(v.Models[0].Samples), len(v.Models[0].Course), len(v.Events))
	}
	for _, line := range append((&layout{width: 120}).lines(v), v.Models[0].Samples[0].idText(), v.Events[0].Event) {
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) || len(line) > 1024 {
			t.Errorf("a line has control characters, or is too long: %.200q", line)
		}
	}
	b.receive("edge/hall/info", []byte(`{"models":[{"name":"m3"}]}`), true)
	if v := b.snapshot(true); len(v.Models) != 1 || v.Models[0].Model != "m3" {
		t.Errorf("after the node's info there are %d models, want m3 alone", len(v.Models))
	}
}

func FuzzState(f *testing.F) {
	f.Add("bearing/metrics", []byte(`{"n":3,"classes":["a"],"confusion":[[1]],"window":{"n":2,"error":null,"log_loss":1e308}}`))
	f.Add("bearing/metrics", []byte(`{"n":121,"error":0.1,"log_loss":0.1,"window":{"n":2,"error":-1,"log_loss":-1}}`))
	f.Add("bearing/prediction/d", []byte(`{"id":{"a":[]},"seq":1,"class":"ok","confidence":0.5,"probs":{"ok":0.5}}`))
	f.Add("info", []byte(`{"models":[{"name":"bearing","classes":["a","b"]}]}`))
	f.Add("health", []byte(`{"rejected":{"x":1}}`))
	f.Add("x/prediction", []byte{0xa1, 0x63, 's', 'e', 'q', 0x01})
	f.Fuzz(func(t *testing.T, topic string, payload []byte) {
		b := receivedState(t)
		b.receive("edge/hall/"+topic, payload, false)
		b.tick(time.Now())
		v := b.snapshot(true)
		for i := range v.Models {
			p := layout{width: 80, height: 24, model: i}
			checkLayout(t, &p, p.lines(v))
		}
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("the view of %q has no JSON: %v", payload, err)
		}
	})
}

// checkLayout fails unless lines fill the layout and no more.
func checkLayout(t *testing.T, p *layout, lines []string) {
	t.Helper()
	if p.height > 0 && len(lines) != p.height {
		t.Errorf("%d×%d: %d lines", p.width, p.height, len(lines))
	}
	for _, line := range lines {
		if lipgloss.Width(line) > p.width {
			t.Errorf("%d×%d: a line is %d wide: %q", p.width, p.height, lipgloss.Width(line), line)
		}
	}
}

func TestLayout(t *testing.T) {
	v := receivedState(t).snapshot(true)
	v.Models[0].Classes = []string{"ok", "磨耗した軸受け"} // wide characters
	keys := []string{"note", "keys"}
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 60}, {80, 0}, {60, 6}} {
		for i := range v.Models {
			p := layout{width: size[0], height: size[1], model: i, selected: 8, last: keys}
			lines := p.lines(v)
			checkLayout(t, &p, lines)
			if got := lines[len(lines)-2:]; !slices.Equal(got, keys) {
				t.Errorf("%v: the last lines are %q", size, got)
			}
		}
	}
	p := layout{width: 100, height: 24, selected: 8, last: keys}
	text := strings.Join(p.lines(v), "\n")
	for _, want := range []string{
		"hall  online", "[bearing]  pump  no better than a baseline", "120 samples judged", "7 wait for a label", "error     0.250   last 100: 0.200",
		"log loss  0.500   last 100: 0.400", "500 received", "3 refused", "1 dropped", "press/7", "#10", "none yet", "came with it", "is asked for", ">",
		"    70", "    10", "class_added bearing worn", "refused bearing malformed: not",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the layout lacks %q:\n%s", want, text)
		}
	}
	nothing := newNodeState("edge", "hall").snapshot(false)
	p.width = 120
	if text := strings.Join(p.lines(nothing), "\n"); !strings.Contains(text, "no connection to the broker") || !strings.Contains(text, "no message of its models yet") {
		t.Errorf("an empty state shows:\n%s", text)
	}
}

func TestFit(t *testing.T) {
	for _, tc := range []struct {
		text  string
		width int
		want  string
	}{
		{"bearing", 7, "bearing"}, {"bearing", 6, "beari…"}, {"bearing", 1, "…"}, {"bearing", 0, ""},
		{"軸受け", 6, "軸受け"}, {"軸受け", 5, "軸受…"}, {"軸受け", 4, "軸…"}, {"", 0, ""},
	} {
		if got := fit(tc.text, tc.width); got != tc.want {
			t.Errorf("fit(%q, %d) = %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

// The state that top shows equals what the daemon publishes, and a label from top
// is learnt.
func TestTop(t *testing.T) {
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		path, _ := harness.WaveformConfig(t, b.URL())
		appendTo(t, path, "control: {enabled: true}\n")
		cfg, err := config.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		startDaemon(t, cfg)
		replayUnlabelled(t, harness.WaveformFile(t, 40), cfg)

		// It finds the only node and shows the retained messages.
		var v gjson.Result
		out, err := topOnce(t, cfg.MQTT, Viewer{AsJSON: true}, func(out string) bool {
			v = gjson.Parse(out)
			return v.Get("state").String() == "online" && v.Get("models.0.samples.0.id").Exists()
		})
		if err != nil {
			t.Fatal(err)
		}
		node := v.Get("node").String()
		metrics := brokertest.Retained(t, b.URL(), "edge/"+node+"/"+v.Get("models.0.model").String()+"/metrics")
		if v.Get("state").String() != "online" || !v.Get("control").Bool() || v.Get("models.0.pending").Int() != gjson.Get(metrics, "pending").Int() {
			t.Errorf("top shows %s; the metrics are %s", out, metrics)
		}

		w := newClient(t, b, node)
		model := v.Get("models.0.model").String()
		sample := sampleView{ID: v.Get("models.0.samples.0.id").String(), Seq: 1}
		if err := w.label(t.Context(), model, sample, "1"); err != nil {
			t.Fatal(err)
		}
		if !brokertest.Eventually(func() bool {
			v := w.snapshot()
			return len(v.Models) == 1 && v.Models[0].N == 1
		}) {
			t.Errorf("the label is not learnt: %+v", w.snapshot())
		}
		if err := w.learn(t.Context(), model, false); err != nil {
			t.Fatal(err)
		}
		if !brokertest.Eventually(func() bool { return !w.snapshot().Models[0].Learning }) {
			t.Error("learning was not switched off")
		}

		want := []string{node + "  online", "learning is off", "confusion"}
		lacks := func(out string) bool {
			return slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(out, w) })
		}
		if out, err = topOnce(t, cfg.MQTT, Viewer{}, func(out string) bool { return !lacks(out) }); err != nil || lacks(out) {
			t.Errorf("top --once: %v, want all of %q:\n%s", err, want, out)
		}
		absent := Viewer{Node: "absent", Once: true, Interval: 200 * time.Millisecond}
		if err := absent.Run(t.Context(), cfg.MQTT, strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), "no message came from node absent") {
			t.Errorf("top of an absent node: %v", err)
		}
		absent.Node, absent.Model = node, "absent"
		if !brokertest.Eventually(func() bool {
			err = absent.Run(t.Context(), cfg.MQTT, strings.NewReader(""), io.Discard)
			return err != nil && strings.Contains(err.Error(), `no message came from a model "absent"`)
		}) {
			t.Errorf("top of an absent model: %v", err)
		}
	})
}

// startDaemon runs a daemon in this process until the test ends.
func startDaemon(t *testing.T, cfg *config.Config) {
	t.Helper()
	d, err := daemon.New(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
	})
}

// replayUnlabelled publishes the rows of a file without their labels.
func replayUnlabelled(t *testing.T, path string, cfg *config.Config) {
	t.Helper()
	src := &replay.Source{Path: path}
	if err := src.Data.Check(); err != nil {
		t.Fatal(err)
	}
	p := &replay.Player{Labels: "none", Fraction: 1, Ahead: 100}
	if _, err := replay.File(t.Context(), src, p, cfg.MQTT, cfg, io.Discard); err != nil {
		t.Fatal(err)
	}
}

// topOnce runs top --once with longer intervals until the output is good.
func topOnce(t *testing.T, mqtt mqtt.Config, v Viewer, good func(out string) bool) (string, error) {
	t.Helper()
	v.Once = true
	for v.Interval = 500 * time.Millisecond; ; v.Interval *= 4 {
		var out bytes.Buffer
		err := v.Run(t.Context(), mqtt, strings.NewReader(""), &out)
		if err == nil && good(out.String()) || v.Interval > brokertest.Patience {
			return out.String(), err
		}
	}
}

// The label of a sample without an id names its number, so that it reaches no other sample.
func TestLabelNamesTheSample(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := config.Default().MQTT
	cfg.Servers = []string{b.URL()}
	got := make(chan string, 2)
	node, err := broker.NewPublisher(t.Context(), cfg, 1, broker.Listener{Filters: []string{"edge/hall/bearing/label/#"}, Receive: func(topic string, payload []byte, _ bool) {
		got <- topic + " " + string(payload)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	w := newClient(t, b, "hall")
	for _, tc := range []struct {
		sample sampleView
		want   string
	}{
		{sampleView{Seq: 7, Device: "p7"}, `edge/hall/bearing/label/p7 {"label":"ok","seq":7,"source":"edge top"}`},
		{sampleView{Seq: 8, ID: "a"}, `edge/hall/bearing/label {"id":"a","label":"ok","source":"edge top"}`},
	} {
		if err := w.label(t.Context(), "bearing", tc.sample, "ok"); err != nil {
			t.Fatal(err)
		}
		if sent := <-got; sent != tc.want {
			t.Errorf("sent %s, want %s", sent, tc.want)
		}
	}
}

// newClient returns a connected client.
func newClient(t *testing.T, b *brokertest.Broker, node string) *client {
	t.Helper()
	cfg := config.Default().MQTT
	cfg.Servers = []string{b.URL()}
	w := &client{state: newNodeState(cfg.BaseTopic, node)}
	var err error
	if w.publisher, err = broker.NewPublisher(t.Context(), cfg, 1, broker.Listener{Filters: w.state.topics(), Receive: w.state.receive}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.publisher.Close)
	return w
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
