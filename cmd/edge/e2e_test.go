package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/replay"
	"edge/internal/report"
	"edge/stream/mqtt"
)

// daemon is `edge run` in a process of its own.
type daemonProcess struct {
	t   testing.TB
	cmd *exec.Cmd
	end chan error // how the process ended

	mu  sync.Mutex
	log []string // its lines, JSON objects
}

// startDaemon starts `edge run` under a configuration that logs as JSON.
func startDaemon(t testing.TB, config string) *daemonProcess {
	t.Helper()
	return startDaemonWith(t, config, func(*exec.Cmd) {})
}

// startDaemonWith lets prepare change how the process is started.
func startDaemonWith(t testing.TB, config string, prepare func(*exec.Cmd)) *daemonProcess {
	t.Helper()
	d := &daemonProcess{t: t, end: make(chan error, 1)}
	d.cmd = self("run", "-c", config)
	d.cmd.Env = append(os.Environ(), beEdge+"=1", "EDGE_LOG_FORMAT=json")
	prepare(d.cmd)
	pipe, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			d.mu.Lock()
			d.log = append(d.log, lines.Text())
			d.mu.Unlock()
		}
		d.end <- d.cmd.Wait()
	}()
	t.Cleanup(func() { d.cmd.Process.Kill() })
	return d
}

// said returns the first line of the log with this message.
func (d *daemonProcess) said(msg string) (gjson.Result, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.log {
		if gjson.Get(line, "msg").String() == msg {
			return gjson.Parse(line), true
		}
	}
	return gjson.Result{}, false
}

func (d *daemonProcess) wholeLog() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.log, "\n")
}

// await waits until the daemon has logged a message.
func (d *daemonProcess) await(msg string) gjson.Result {
	d.t.Helper()
	if !brokertest.Eventually(func() bool { _, ok := d.said(msg); return ok }) {
		d.t.Fatalf("the daemon never says %q:\n%s", msg, d.wholeLog())
	}
	line, _ := d.said(msg)
	return line
}

// stop ends the daemon as a service manager does, and returns the line with the
// final scores of its only model.
func (d *daemonProcess) stop() gjson.Result {
	d.t.Helper()
	begun := time.Now()
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-d.end:
		if err != nil {
			d.t.Fatalf("the daemon stops with %v:\n%s", err, d.wholeLog())
		}
	case <-time.After(brokertest.Patience):
		d.t.Fatalf("the daemon does not stop:\n%s", d.wholeLog())
	}
	d.t.Logf("stopped within %v", time.Since(begun).Round(time.Millisecond))
	return d.await("model stopped")
}

// kill ends the daemon as a power cut does, as far as the process can tell.
func (d *daemonProcess) kill() {
	d.t.Helper()
	d.cmd.Process.Signal(syscall.SIGKILL)
	<-d.end
}

// waveformFile writes n rows of the demo's sensors.
func waveformFile(t testing.TB, n int) string {
	t.Helper()
	w := dataset.NewWaveform(3)
	var b strings.Builder
	b.WriteString(strings.Join(w.Features(), ",") + ",label\n")
	var row dataset.Row
	for range n {
		w.Next(&row)
		for _, v := range row.X {
			fmt.Fprintf(&b, "%v,", v)
		}
		b.WriteString(row.Label + "\n")
	}
	return writeFile(t, "waveform.csv", b.String())
}

// waveformConfig writes the configuration of a daemon that learns it in
// minibatches closed by count, with checkpoints that are far enough apart for
// the journal to matter.
func waveformConfig(t testing.TB, broker string) (path, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "edge.db")
	return writeFile(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], max_reconnect_interval: 200ms}
streams: {waveform: {topics: [sensors/waveform], features: [%s]}}
labels: [{topics: [sensors/waveform/label]}]
models:
  waveform:
    streams: [waveform]
    inducing: 20
    window: 40
    classes: {names: ["0", "1", "2"]}
    batch: {max_size: 16, max_wait: 0s}
store: {path: "%s", checkpoint: {every: 0s, samples: 150}}
metrics: {every: 1s, samples: 100}
http: {listen: ""}
`, broker, strings.Join(new(dataset.Waveform).Features(), ", "), store)), store
}

// replayed publishes a file in the background; wait returns when the daemon
// has answered it all.
func replayed(t *testing.T, args ...string) (wait func()) {
	t.Helper()
	var errOut bytes.Buffer
	done := make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	go func() {
		done <- execute(ctx, append([]string{"replay"}, args...), strings.NewReader(""), io.Discard, &errOut)
	}()
	return func() {
		t.Helper()
		code := <-done
		if ctx.Err() != nil {
			t.Fatalf("edge replay does not end: %s", &errOut)
		}
		cancel()
		if code != exit.OK {
			t.Fatalf("edge replay exits with %d: %s", code, &errOut)
		}
	}
}

// sameAsEval fails unless a daemon's final scores and state are those of eval.
func sameAsEval(t *testing.T, final gjson.Result, data, config string) {
	t.Helper()
	want := evalJSON(t, data, "-c", config)[0]
	if got := final.Get("samples").Uint(); got != want.Samples {
		t.Errorf("the daemon has learnt %d samples, eval %d", got, want.Samples)
	}
	if got := final.Get("digest").String(); got != want.Digest {
		t.Errorf("the daemon's digest is %s, eval's %s", got, want.Digest)
	}
	if e, n := final.Get("error").Float(), final.Get("nll").Float(); e != want.Error || n != want.NLL {
		t.Errorf("the daemon has error %v and log loss %v, eval %v and %v", e, n, want.Error, want.NLL)
	}
}

// What a daemon has learnt from a stream is, to the last bit, what eval learns
// from the file.
func TestDaemonEqualsEval(t *testing.T) {
	data := waveformFile(t, 500)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, store := waveformConfig(t, b.URL())
		d := startDaemon(t, config)
		replayed(t, data, "--broker", b.URL())()
		awaitSamples(t, b, 500)
		final := d.stop()
		sameAsEval(t, final, data, config)

		code, out, errOut := edge(t, "inspect", store, "--json")
		if code != exit.OK {
			t.Fatalf("edge inspect exits with %d: %s", code, errOut)
		}
		m := gjson.Get(out, "models.0")
		if m.Get("digest").String() != final.Get("digest").String() || m.Get("samples").Uint() != 500 || m.Get("unlearnt").Uint() != 0 {
			t.Errorf("edge inspect shows another state: %s", out)
		}
		if len(m.Get("relevance").Array()) != dataset.WaveformFeatures || m.Get("classes.2.count").Uint() == 0 {
			t.Errorf("edge inspect shows no relevance, or no counts: %s", out)
		}
	})
}

// A daemon that is stopped carries on where it was.
func TestStopAndStart(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		data := waveformFile(t, 600)
		config, _ := waveformConfig(t, b.URL())
		first := startDaemon(t, config)
		first.await("connected to the broker")
		rate := "150"
		if len(emulator) > 0 {
			rate = "30" // it learns no faster beside others
		}
		wait := replayed(t, data, "--broker", b.URL(), "--rate", rate)
		if metrics, ok := brokertest.Await(t, b, "edge/test/waveform/metrics", func(m string) bool { return gjson.Get(m, "n").Int() > 0 }); !ok {
			t.Errorf("nothing is learnt: %s", metrics)
		}
		before := first.stop()
		for late := true; late; { // what a stop leaves to the next start has no digest yet
			if _, late = first.said("the model is still learning what is committed; its final metrics are not published, and it carries on at the next start"); late {
				first = startDaemon(t, config)
				first.await("connected to the broker")
				before = first.stop()
			}
		}
		second := startDaemon(t, config)
		wait()
		awaitSamples(t, b, 600)
		final := second.stop()
		ready := second.await("model ready")
		if n := before.Get("samples").Uint(); n == 0 || n == 600 || ready.Get("samples").Uint() != n {
			t.Errorf("stopped after %d samples of 600, started again with %d", n, ready.Get("samples").Uint())
		}
		if before.Get("digest").String() != ready.Get("digest").String() {
			t.Errorf("stopped with digest %s, started with %s", before.Get("digest"), ready.Get("digest"))
		}
		sameAsEval(t, final, data, config)
	})
}

// However often and whenever a daemon is killed, it learns every sample once,
// in order.
func TestKilledAtRandom(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		kills := brokertest.Brief(20, 3)
		data := waveformFile(t, 200*(kills+1))
		config, _ := waveformConfig(t, b.URL())
		wait := replayed(t, data, "--broker", b.URL(), "--rate", "500")
		for range kills {
			d := startDaemon(t, config)
			d.await("connected to the broker")
			time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
			d.kill()
		}
		last := startDaemon(t, config)
		wait()
		awaitSamples(t, b, 200*(kills+1))
		final := last.stop()
		ready := last.await("model ready")
		t.Logf("last start: %d samples restored, %d records replayed", ready.Get("restored").Uint(), ready.Get("replayed").Uint())
		sameAsEval(t, final, data, config)
	})
}

// A daemon that is killed has what it has acknowledged; what is sent to it
// again teaches nothing.
func TestKilledAndTaughtAgain(t *testing.T) {
	data := waveformFile(t, 400)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := waveformConfig(t, b.URL())
		for _, rows := range []int{90, 200, 330} {
			d := startDaemon(t, config)
			replayed(t, data, "--broker", b.URL(), "--first", fmt.Sprint(rows))()
			awaitSamples(t, b, rows)
			d.kill()
		}
		d := startDaemon(t, config)
		if n := d.await("model ready").Get("samples").Uint(); n != 330 {
			t.Errorf("the last start has %d samples, want 330", n)
		}
		replayed(t, data, "--broker", b.URL())()
		awaitSamples(t, b, 400)
		sameAsEval(t, d.stop(), data, config)
	})
}

// Learning that was switched off stays so, however the daemon ends; switched on
// again, the state is that of a run that never heard what came meanwhile.
func TestLearningStaysOff(t *testing.T) {
	data := waveformFile(t, 200)
	t.Setenv("EDGE_CONTROL_ENABLED", "true")
	t.Setenv("EDGE_MODELS_WAVEFORM_OUTPUT", "cbor")
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := waveformConfig(t, b.URL())
		d := startDaemon(t, config)
		replayed(t, data, "--broker", b.URL(), "--first", "90")()
		request(t, b, "OFF")
		d.kill()
		d = startDaemon(t, config)
		d.await("learning is switched off, as an earlier request asked; labels teach nothing until another switches it on")
		replayed(t, data, "--broker", b.URL())()
		request(t, b, "ON")
		if m := brokertest.Retained(t, b.URL(), "edge/test/waveform/metrics"); gjson.Get(m, "frozen").Uint() != 200 || gjson.Get(m, "n").Uint() != 90 {
			t.Errorf("metrics %s, want 90 samples learnt and 200 frozen", m)
		}
		d.kill()
		d = startDaemon(t, config)
		replayed(t, data, "--broker", b.URL())()
		awaitSamples(t, b, 200)
		sameAsEval(t, d.stop(), data, config)
	})
}

// request asks a daemon to switch learning and waits for its answer.
func request(t *testing.T, b *brokertest.Broker, word string) {
	t.Helper()
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{b.URL()}
	answered := make(chan string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	defer cancel()
	pub, err := broker.NewPublisher(ctx, cfg, 1, []string{"edge/test/response/learning/waveform"}, func(_ string, payload []byte, _ bool) { answered <- string(payload) }, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	if err := pub.Publish(ctx, "edge/test/request/learning/waveform", []byte(word)); err != nil {
		t.Fatal(err)
	}
	select {
	case answer := <-answered:
		if gjson.Get(answer, "status").String() != "ok" {
			t.Fatalf("asked for %s: %s", word, answer)
		}
	case <-ctx.Done():
		t.Fatalf("no answer to %s", word)
	}
}

// A daemon starts without a broker, and survives a broker that is restarted.
func TestBrokerComesAndGoes(t *testing.T) {
	data := waveformFile(t, 300)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		b.Stop()
		config, _ := waveformConfig(t, b.URL())
		d := startDaemon(t, config)
		d.await("cannot connect to the broker; will keep trying")
		b.Stop = b.Start(t, b.Addr)
		replayed(t, data, "--broker", b.URL(), "--first", "150")()
		b.Restart(t)
		replayed(t, data, "--broker", b.URL(), "--prefix", "again")()
		awaitSamples(t, b, 450)
		if n := d.stop().Get("samples").Uint(); n != 450 {
			t.Errorf("%d samples were learnt, want 150 and then 300", n)
		}
	})
}

// Labels that come later, by their id, teach as much as those that come along,
// and what they judge is the prediction of the day.
func TestDelayedLabels(t *testing.T) {
	data := waveformFile(t, 300)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := waveformConfig(t, b.URL())
		d := startDaemon(t, config)
		code, out, errOut := edge(t, "replay", data, "--broker", b.URL(), "--labels", "delayed", "--delay", "20", "--json")
		if code != exit.OK {
			t.Fatalf("replay exits with %d: %s", code, errOut)
		}
		published := gjson.Parse(out)
		// The last labels follow the last row, whose prediction replay awaits.
		awaitSamples(t, b, 300)
		final := d.stop()
		if n, e := final.Get("samples").Uint(), final.Get("error").Float(); n != 300 || published.Get("samples").Uint() != 300 || e != published.Get("error").Float() {
			t.Errorf("%d samples, error %g; what was published has %s", n, e, published.Get("error"))
		}
		if e := published.Get("nll").Float(); math.Abs(e-final.Get("nll").Float()) > 0.1 {
			t.Errorf("log loss %g; what was published has %g", final.Get("nll").Float(), e)
		}
	})
}

// awaitSamples waits until the metrics say that so many samples were learnt.
func awaitSamples(t *testing.T, b *brokertest.Broker, n int) {
	t.Helper()
	metrics, ok := brokertest.Await(t, b, "edge/test/waveform/metrics", func(m string) bool { return gjson.Get(m, "n").Int() == int64(n) })
	if !ok {
		t.Errorf("the metrics never say %d samples: %s", n, metrics)
	}
}

// Broken messages are refused, and the stream goes on.
func TestBrokenMessages(t *testing.T) {
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := waveformConfig(t, b.URL())
		d := startDaemon(t, config)
		var mu sync.Mutex
		reasons := map[string]int{}
		answered := 0
		cfg := mqtt.DefaultConfig()
		cfg.Servers = []string{b.URL()}
		ready := make(chan struct{}, 10)
		pub, err := broker.NewPublisher(t.Context(), cfg, 1, []string{"edge/test/#"}, func(topic string, payload []byte, _ bool) {
			mu.Lock()
			defer mu.Unlock()
			switch topic {
			case "edge/test/info":
				ready <- struct{}{}
			case "edge/test/waveform/reject":
				reasons[gjson.GetBytes(payload, "reason").String()]++
			case "edge/test/waveform/prediction":
				answered++
			}
		}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer pub.Close()
		<-ready
		x := strings.Repeat("0,", dataset.WaveformFeatures-1) + "0"
		for _, payload := range []string{
			"", "{", "hello", `[1,2]`, `{"features":[` + strings.Repeat("0,", dataset.WaveformFeatures-1) + `NaN]}`,
			`{"features":[` + strings.Repeat("0,", dataset.WaveformFeatures-1) + `1e999]}`,
			`{"x1":1,"crest":2}`, `{"features":[` + x + `],"label":7}`, `{"features":[` + x + `],"label":{"a":1}}`,
			`{"features":[` + x + `]}` + strings.Repeat(" ", 10<<20),
			`{"id":"good","features":[` + x + `],"label":"1"}`,
		} {
			if err := pub.Publish(t.Context(), "sensors/waveform", []byte(payload)); err != nil {
				t.Fatal(err)
			}
		}
		if !brokertest.Eventually(func() bool { mu.Lock(); defer mu.Unlock(); return answered == 1 }) {
			t.Errorf("%d predictions, want that of the good message; refused: %v", answered, reasons)
		}
		mu.Lock()
		if len(reasons) < 3 { // the topic has a rate limit; the counters have them all
			t.Errorf("reasons on the reject topic: %v", reasons)
		}
		mu.Unlock()
		if n := d.stop().Get("samples").Uint(); n != 1 {
			t.Errorf("%d samples were learnt, want 1", n)
		}
	})
}

func TestDemo(t *testing.T) {
	data := waveformFile(t, 400)
	code, out, errOut := edge(t, "demo", data, "--rate", "0", "--json")
	if code != exit.OK || errOut != "" {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if r.Dataset != "waveform" || r.Samples != 400 || r.Error > 0.3 || len(r.Digest) != 64 || len(r.Curve) == 0 {
		t.Errorf("the summary is %s", out)
	}
	code, out, errOut = edge(t, "demo", "--for", "1s", "--rate", "100")
	if code != exit.OK || errOut != "" && !strings.Contains(errOut, "this machine is too busy") {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	if !strings.HasPrefix(out, "edge demo: waveform, 21 features, 3 classes; broker on mqtt://127.0.0.1:") || !strings.Contains(out, "macro-f1") {
		t.Errorf("it shows\n%s", out)
	}
}

func TestReset(t *testing.T) {
	data := waveformFile(t, 40)
	b := brokertest.New(t, brokertest.Embedded)
	config, store := waveformConfig(t, b.URL())
	d := startDaemon(t, config)
	replayed(t, data, "--broker", b.URL())()
	if code, _, errOut := edge(t, "reset", "-c", config, "--all", "--yes"); code != exit.Store || !strings.Contains(errOut, "locked") {
		t.Errorf("a reset beside the daemon exits with %d: %s", code, errOut)
	}
	if code, _, errOut := edge(t, "inspect", store); code != exit.Store || !strings.Contains(errOut, "stop the daemon first") {
		t.Errorf("inspect beside the daemon exits with %d: %s", code, errOut)
	}
	d.stop()
	if code, _, errOut := edgeWith(t, "n\n", "reset", "-c", config, "--model", "waveform"); code != exit.Runtime || !strings.Contains(errOut, "Forget all of model waveform") {
		t.Errorf("a reset that is not confirmed exits with %d: %s", code, errOut)
	}
	if code, out, errOut := edgeWith(t, "y\n", "reset", "--state", store, "--model", "waveform"); code != exit.OK || !strings.Contains(out, "has forgotten 40 samples") {
		t.Errorf("a reset that is confirmed exits with %d: %s%s", code, out, errOut)
	}
	if code, out, _ := edge(t, "inspect", store, "--json"); code != exit.OK || len(gjson.Get(out, "models").Array()) != 0 {
		t.Errorf("after the reset there are still models: %s", out)
	}
	if code, _, errOut := edge(t, "reset", "--state", store, "--model", "waveform", "--yes"); code != exit.Store {
		t.Errorf("a second reset exits with %d: %s", code, errOut)
	}
}

// A configuration of another shape is refused before anything runs.
func TestOtherShapeIsRefused(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := waveformConfig(t, b.URL())
	startDaemon(t, config).stopAfter("connected to the broker")
	t.Setenv("EDGE_MODELS_WAVEFORM_INDUCING", "30")
	code, _, errOut := edge(t, "run", "-c", config, "--for", "10s")
	if code != exit.Store || !strings.Contains(errOut, "edge reset --model waveform") {
		t.Errorf("exits with %d: %s", code, errOut)
	}
}

// awaitOnline waits until the daemon's state says that it is online.
func awaitOnline(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	if state, ok := brokertest.Await(t, b, "edge/test/state", func(state string) bool { return state == "online" }); !ok {
		t.Fatalf("the daemon is not online: %q", state)
	}
}

func (d *daemonProcess) stopAfter(msg string) {
	d.t.Helper()
	d.await(msg)
	d.stop()
}

// Without a daemon nothing is published: nobody would hear it.
func TestReplayWaitsForADaemon(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{b.URL()}
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	defer cancel()
	var why string
	p := replay.Player{
		Rows: dataset.NewWaveform(1), Topic: "sensors/waveform", Prefix: "waveform", Labels: "inline", Fraction: 1, Ahead: 10,
		Waiting: func(w string) { why = w; cancel() },
	}
	rows, err := p.Play(ctx, cfg)
	if rows != 0 || !errors.Is(err, context.Canceled) || !strings.Contains(why, "no daemon is online under edge/") {
		t.Errorf("published %d rows, %v; said %q", rows, err, why)
	}
}

// A daemon gives back the topics that its configuration had before it was
// restarted under another.
func TestFormerTopicsAfterARestart(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := waveformConfig(t, b.URL())
		t.Setenv("EDGE_STREAMS_WAVEFORM_TOPICS", "former/waveform")
		d := startDaemon(t, config)
		awaitOnline(t, b)
		d.stop()
		t.Setenv("EDGE_STREAMS_WAVEFORM_TOPICS", "sensors/waveform")
		d = startDaemon(t, config)
		if line := d.await("gave back the subscriptions of an earlier configuration"); line.Get("filters").String() != `["former/waveform"]` {
			t.Errorf("gave back %s", line)
		}
		d.stop()
	})
}

// keep publishes a retained message.
func keep(t *testing.T, b *brokertest.Broker, topic, payload string) {
	t.Helper()
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{b.URL()}
	client, err := broker.Dial(t.Context(), cfg, broker.Options{Answer: brokertest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Publish(t.Context(), topic, 1, true, []byte(payload)); err != nil {
		t.Fatalf("publish on %s: %v", topic, err)
	}
}
