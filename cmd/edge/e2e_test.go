package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/tidwall/gjson"

	"edge/cmd/edge/internal/dataset"
	"edge/online"
	"edge/stream"
	"edge/stream/mqtt"
)

// patience bounds every wait of these tests. It is never what passes them: a
// machine may be so loaded that what takes milliseconds takes a minute. TestMain
// sets it to a fifth of -timeout, where that is more.
var patience = 2 * time.Minute

// timeout is the value of the flag -timeout.
func timeout() time.Duration {
	limit, err := time.ParseDuration(flag.Lookup("test.timeout").Value.String())
	if err != nil {
		return 0
	}
	return limit
}

// testBroker is a broker that tests stop and start again.
type testBroker struct {
	addr  string
	start func(t *testing.T, addr string) (stop func())
	stop  func()
}

func (b *testBroker) url() string { return "mqtt://" + b.addr }

func (b *testBroker) restart(t *testing.T) {
	b.stop()
	b.stop = b.start(t, b.addr)
}

// forEachBroker runs a test against the embedded broker and, with the build tag
// slow, against mosquitto with its default settings.
func forEachBroker(t *testing.T, test func(t *testing.T, b *testBroker)) {
	t.Run("embedded", func(t *testing.T) { test(t, newTestBroker(t, startEmbedded)) })
	if slow {
		withMosquitto(t, test)
	}
}

// withMosquitto runs a test against mosquitto alone: the embedded broker loses
// messages that arrive while a client takes its session over, and repeats
// others out of order.
func withMosquitto(t *testing.T, test func(t *testing.T, b *testBroker)) {
	t.Run("mosquitto", func(t *testing.T) { test(t, newTestBroker(t, startMosquitto)) })
}

func newTestBroker(t *testing.T, start func(*testing.T, string) func()) *testBroker {
	t.Helper()
	b := &testBroker{addr: freeAddress(t), start: start}
	b.stop = start(t, b.addr)
	t.Cleanup(func() { b.stop() })
	return b
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func startEmbedded(t *testing.T, addr string) (stop func()) {
	t.Helper()
	b, err := StartBroker(addr, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { b.Close() })
}

func startMosquitto(t *testing.T, addr string) (stop func()) { return startMosquittoWith(t, addr, "") }

// startMosquittoWith adds settings to those of the test.
func startMosquittoWith(t testing.TB, addr, settings string) (stop func()) {
	t.Helper()
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		program = "/usr/sbin/mosquitto" // which is not in everybody's PATH
		_, err = os.Stat(program)
	}
	if err != nil {
		missing(t, "mosquitto is not installed: "+err.Error())
	}
	host, port, _ := net.SplitHostPort(addr)
	config := writeFile(t, "mosquitto.conf", fmt.Sprintf("listener %s %s\nallow_anonymous true\nuser root\n%s", port, host, settings))
	cmd := exec.Command(program, "-c", config)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { terminate(cmd) })
	if !eventually(func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}) {
		stop()
		t.Fatalf("mosquitto does not listen on %s: %s", addr, &log)
	}
	return stop
}

// terminate ends a mosquitto: one that has just begun to listen forgets a
// SIGTERM, so it gets another.
func terminate(cmd *exec.Cmd) {
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	for {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// missing skips a test for want of something; in CI that is a failure.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

func eventually(ok func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

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
	if !eventually(func() bool { _, ok := d.said(msg); return ok }) {
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
	case <-time.After(patience):
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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
		if code != exitOK {
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
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		config, store := waveformConfig(t, b.url())
		d := startDaemon(t, config)
		replayed(t, data, "--broker", b.url())()
		awaitSamples(t, b, 500)
		final := d.stop()
		sameAsEval(t, final, data, config)

		code, out, errOut := edge(t, "inspect", store, "--json")
		if code != exitOK {
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
	withMosquitto(t, func(t *testing.T, b *testBroker) {
		data := waveformFile(t, 600)
		config, _ := waveformConfig(t, b.url())
		first := startDaemon(t, config)
		first.await("connected to the broker")
		rate := "150"
		if len(emulator) > 0 {
			rate = "30" // it learns no faster beside others
		}
		wait := replayed(t, data, "--broker", b.url(), "--rate", rate)
		if metrics, ok := awaitMessage(t, b, "edge/test/waveform/metrics", func(m string) bool { return gjson.Get(m, "n").Int() > 0 }); !ok {
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
	withMosquitto(t, func(t *testing.T, b *testBroker) {
		kills := brief(20, 3)
		data := waveformFile(t, 200*(kills+1))
		config, _ := waveformConfig(t, b.url())
		wait := replayed(t, data, "--broker", b.url(), "--rate", "500")
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
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		config, _ := waveformConfig(t, b.url())
		for _, rows := range []int{90, 200, 330} {
			d := startDaemon(t, config)
			replayed(t, data, "--broker", b.url(), "--first", fmt.Sprint(rows))()
			awaitSamples(t, b, rows)
			d.kill()
		}
		d := startDaemon(t, config)
		if n := d.await("model ready").Get("samples").Uint(); n != 330 {
			t.Errorf("the last start has %d samples, want 330", n)
		}
		replayed(t, data, "--broker", b.url())()
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
	withMosquitto(t, func(t *testing.T, b *testBroker) {
		config, _ := waveformConfig(t, b.url())
		d := startDaemon(t, config)
		replayed(t, data, "--broker", b.url(), "--first", "90")()
		request(t, b, "OFF")
		d.kill()
		d = startDaemon(t, config)
		d.await("learning is switched off, as an earlier request asked; labels teach nothing until another switches it on")
		replayed(t, data, "--broker", b.url())()
		request(t, b, "ON")
		if m := retained(t, b.url(), "edge/test/waveform/metrics"); gjson.Get(m, "frozen").Uint() != 200 || gjson.Get(m, "n").Uint() != 90 {
			t.Errorf("metrics %s, want 90 samples learnt and 200 frozen", m)
		}
		d.kill()
		d = startDaemon(t, config)
		replayed(t, data, "--broker", b.url())()
		awaitSamples(t, b, 200)
		sameAsEval(t, d.stop(), data, config)
	})
}

// request asks a daemon to switch learning and waits for its answer.
func request(t *testing.T, b *testBroker, word string) {
	t.Helper()
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{b.url()}
	answered := make(chan string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pub, err := NewPublisher(ctx, cfg, 1, []string{"edge/test/response/learning/waveform"}, func(_ string, payload []byte, _ bool) { answered <- string(payload) }, func() {})
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
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		b.stop()
		config, _ := waveformConfig(t, b.url())
		d := startDaemon(t, config)
		d.await("cannot connect to the broker; will keep trying")
		b.stop = b.start(t, b.addr)
		replayed(t, data, "--broker", b.url(), "--first", "150")()
		b.restart(t)
		replayed(t, data, "--broker", b.url(), "--prefix", "again")()
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
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		config, _ := waveformConfig(t, b.url())
		d := startDaemon(t, config)
		code, out, errOut := edge(t, "replay", data, "--broker", b.url(), "--labels", "delayed", "--delay", "20", "--json")
		if code != exitOK {
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
func awaitSamples(t *testing.T, b *testBroker, n int) {
	t.Helper()
	metrics, ok := awaitMessage(t, b, "edge/test/waveform/metrics", func(m string) bool { return gjson.Get(m, "n").Int() == int64(n) })
	if !ok {
		t.Errorf("the metrics never say %d samples: %s", n, metrics)
	}
}

// awaitMessage waits for a message on a topic, retained or not, that is good, and
// returns it, or else the newest.
func awaitMessage(t *testing.T, b *testBroker, topic string, good func(payload string) bool) (newest string, ok bool) {
	t.Helper()
	var mu sync.Mutex
	pub := subscriber(t, b.url(), []string{topic}, func(_ string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		if !ok { // an older one that was retained may come after it
			newest, ok = string(payload), good(string(payload))
		}
	})
	defer pub.Close()
	eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ok
	})
	mu.Lock()
	defer mu.Unlock()
	return newest, ok
}

// retained returns the message that a broker keeps on a topic, "" if there is
// none: a broker sends those before what is published later.
func retained(t *testing.T, broker, topic string) string {
	t.Helper()
	var (
		mu   sync.Mutex
		kept string
		all  bool
	)
	mark := fmt.Sprintf("mark/%016x", rand.Uint64())
	pub := subscriber(t, broker, []string{topic, mark}, func(on string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		if on == mark {
			all = true
		} else if !all {
			kept = string(payload)
		}
	})
	defer pub.Close()
	if err := pub.Publish(t.Context(), mark, nil); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return all
	}) {
		t.Fatalf("the broker does not send what was published on %s", mark)
	}
	mu.Lock()
	defer mu.Unlock()
	return kept
}

// subscriber subscribes at QoS 0 and publishes at QoS 1.
func subscriber(t *testing.T, broker string, filters []string, heard func(topic string, payload []byte)) *Publisher {
	t.Helper()
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{broker}
	pub, err := NewPublisher(t.Context(), cfg, 1, filters, func(topic string, payload []byte, _ bool) { heard(topic, payload) }, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return pub
}

// Broken messages are refused, and the stream goes on.
func TestBrokenMessages(t *testing.T) {
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		config, _ := waveformConfig(t, b.url())
		d := startDaemon(t, config)
		var mu sync.Mutex
		reasons := map[string]int{}
		answered := 0
		cfg := mqtt.DefaultConfig()
		cfg.Servers = []string{b.url()}
		ready := make(chan struct{}, 10)
		pub, err := NewPublisher(t.Context(), cfg, 1, []string{"edge/test/#"}, func(topic string, payload []byte, _ bool) {
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
		if !eventually(func() bool { mu.Lock(); defer mu.Unlock(); return answered == 1 }) {
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
	if code != exitOK || errOut != "" {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	var r Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if r.Dataset != "waveform" || r.Samples != 400 || r.Error > 0.3 || len(r.Digest) != 64 || len(r.Curve) == 0 {
		t.Errorf("the summary is %s", out)
	}
	code, out, errOut = edge(t, "demo", "--for", "1s", "--rate", "100")
	if code != exitOK || errOut != "" && !strings.Contains(errOut, "this machine is too busy") {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	if !strings.HasPrefix(out, "edge demo: waveform, 21 features, 3 classes; broker on mqtt://127.0.0.1:") || !strings.Contains(out, "macro-f1") {
		t.Errorf("it shows\n%s", out)
	}
}

// slowLearner takes a minute for each group of ten samples that it is handed.
type slowLearner struct {
	groups int // still to be learnt
	status online.Status
}

func (l *slowLearner) Status() *online.Status { s := l.status; return &s }

func (l *slowLearner) Idle(ctx context.Context) error {
	for ; l.groups > 0; l.groups-- {
		if err := sleep(ctx, time.Minute); err != nil {
			return err
		}
		l.status.Seq += 10
		l.status.Scores.N += 10
	}
	return nil
}

// A demo waits for a learner that is busy, be it for minutes, and not for rows
// that nobody has handed to it.
func TestDemoWaitsForTheLearner(t *testing.T) {
	for name, tc := range map[string]struct {
		rows uint64
		took time.Duration
	}{
		"all are judged": {30, 3 * time.Minute}, "two are refused": {32, 3*time.Minute + learntWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, begun := &slowLearner{groups: 3}, time.Now()
				if err := learnt(t.Context(), l, tc.rows); err != nil || l.status.Scores.N != 30 || time.Since(begun) != tc.took {
					t.Errorf("after %v %d of 30 samples are learnt: %v; want %v", time.Since(begun), l.status.Scores.N, err, tc.took)
				}
			})
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := learnt(ended, &slowLearner{groups: 1}, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// A demo on a busy machine may end before its last samples are learnt; nothing
// else may go wrong.
func TestUnfinishedDemo(t *testing.T) {
	late := coded(exitRuntime, stream.ErrUnfinished)
	broken := coded(exitStore, errors.New("the disk is gone"))
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {late, true}, {broken, false}, {errors.Join(late, nil), true}, {errors.Join(nil, errors.Join(late)), true},
		{errors.Join(late, broken), false}, {errors.Join(errors.Join(late, broken)), false},
	} {
		if got := unfinished(tc.err); got != tc.want {
			t.Errorf("unfinished(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
}

func TestReset(t *testing.T) {
	data := waveformFile(t, 40)
	b := newTestBroker(t, startEmbedded)
	config, store := waveformConfig(t, b.url())
	d := startDaemon(t, config)
	replayed(t, data, "--broker", b.url())()
	if code, _, errOut := edge(t, "reset", "-c", config, "--all", "--yes"); code != exitStore || !strings.Contains(errOut, "locked") {
		t.Errorf("a reset beside the daemon exits with %d: %s", code, errOut)
	}
	if code, _, errOut := edge(t, "inspect", store); code != exitStore || !strings.Contains(errOut, "stop the daemon first") {
		t.Errorf("inspect beside the daemon exits with %d: %s", code, errOut)
	}
	d.stop()
	if code, _, errOut := edgeWith(t, "n\n", "reset", "-c", config, "--model", "waveform"); code != exitRuntime || !strings.Contains(errOut, "Forget all of model waveform") {
		t.Errorf("a reset that is not confirmed exits with %d: %s", code, errOut)
	}
	if code, out, errOut := edgeWith(t, "y\n", "reset", "--state", store, "--model", "waveform"); code != exitOK || !strings.Contains(out, "has forgotten 40 samples") {
		t.Errorf("a reset that is confirmed exits with %d: %s%s", code, out, errOut)
	}
	if code, out, _ := edge(t, "inspect", store, "--json"); code != exitOK || len(gjson.Get(out, "models").Array()) != 0 {
		t.Errorf("after the reset there are still models: %s", out)
	}
	if code, _, errOut := edge(t, "reset", "--state", store, "--model", "waveform", "--yes"); code != exitStore {
		t.Errorf("a second reset exits with %d: %s", code, errOut)
	}
}

// A configuration of another shape is refused before anything runs.
func TestOtherShapeIsRefused(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	config, _ := waveformConfig(t, b.url())
	startDaemon(t, config).stopAfter("connected to the broker")
	t.Setenv("EDGE_MODELS_WAVEFORM_INDUCING", "30")
	code, _, errOut := edge(t, "run", "-c", config, "--for", "10s")
	if code != exitStore || !strings.Contains(errOut, "edge reset --model waveform") {
		t.Errorf("exits with %d: %s", code, errOut)
	}
}

// awaitOnline waits until the daemon's state says that it is online.
func awaitOnline(t *testing.T, b *testBroker) {
	t.Helper()
	if state, ok := awaitMessage(t, b, "edge/test/state", func(state string) bool { return state == "online" }); !ok {
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
	b := newTestBroker(t, startEmbedded)
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{b.url()}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var why string
	p := Player{
		Rows: dataset.NewWaveform(1), Topic: "sensors/waveform", Prefix: "waveform", Labels: "inline", Fraction: 1, Ahead: 10,
		Waiting: func(w string) { why = w; cancel() },
	}
	rows, err := p.Play(ctx, cfg)
	if rows != 0 || !errors.Is(err, context.Canceled) || !strings.Contains(why, "no daemon is online under edge/") {
		t.Errorf("published %d rows, %v; said %q", rows, err, why)
	}
}

// The follower knows when a daemon listens, and how far it is.
func TestFollower(t *testing.T) {
	f := newFollower("edge", "gas", nil)
	step := func(topic, payload string, kept, ready bool, last int) {
		t.Helper()
		f.hear(topic, []byte(payload), kept)
		if r, l := f.state(); r != ready || l != last {
			t.Errorf("after %s %s (kept: %v): ready %v, row %d; want %v, %d", topic, payload, kept, r, l, ready, last)
		}
	}
	step("edge/a/info", "{}", true, false, 0) // of an earlier life
	step("edge/a/state", "offline", true, false, 0)
	step("edge/a/state", "online", false, false, 0) // connected, not yet subscribed
	step("edge/a/info", "{}", false, true, 0)
	step("edge/a/gas/prediction", `{"id":"gas-000007"}`, false, true, 7)
	step("edge/a/gas/prediction", `{"id":"gas-000005"}`, false, true, 7)
	step("edge/a/gas/prediction", `{"id":"room-000009"}`, false, true, 7)
	step("edge/a/gas/prediction/p1", `{"id":"gas-000009"}`, false, true, 9)
	step("edge/a/gas/prediction", `{"id":12}`, false, true, 9)
	step("edge/a/gas/prediction", `nonsense`, false, true, 9)
	step("edge/a/state", "offline", false, false, 9)
	step("edge/b/state", "online", true, false, 9)
	step("edge/b/info", "{}", true, true, 9) // was there before us
	f.reconnected()
	if ready, _ := f.state(); ready {
		t.Error("a daemon that the broker before knew is ready")
	}
}

// Whoever has many labels to learn is given time; whoever learns none is not
// waited for.
func TestFollowerOfALearner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower("edge", "gas", nil)
		hear := func(row, version int) {
			f.hear("edge/a/gas/prediction", fmt.Appendf(nil, `{"id":"gas-%06d","version":%d}`, row, version), false)
		}
		teach := func(n int) {
			for range n {
				f.teach()
			}
		}
		teach(2 * maxBehind)
		if f.behind() {
			t.Error("nobody is behind before anybody was heard")
		}
		hear(1, 1000) // it knew something before
		teach(maxBehind)
		if f.behind() {
			t.Errorf("behind with %d labels", maxBehind)
		}
		teach(1)
		if !f.behind() {
			t.Errorf("not behind with %d labels", maxBehind+1)
		}
		hear(2, 1016)
		if f.behind() {
			t.Error("still behind after a minibatch")
		}
		teach(maxBehind)
		if !f.behind() {
			t.Error("not behind again")
		}
		time.Sleep(idleLearner)
		if f.behind() {
			t.Error("a model that learns nothing is waited for")
		}
		teach(maxBehind)
		hear(3, 10) // it was reset
		if f.behind() {
			t.Error("a model that was reset is behind")
		}
	})
}

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
		got := string(p.appendSample(nil, "r-1", []float64{0.1, 1e21}, tc.label))
		if got != tc.want || !json.Valid([]byte(got)) {
			t.Errorf("named %v, label %q: %s, want %s", tc.named, tc.label, got, tc.want)
		}
	}
}

func TestPacerStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := pacer{rate: 1e-3}
	if err := p.wait(ctx); err != nil {
		t.Fatalf("the first event waits: %v", err)
	}
	cancel()
	if err := p.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the second event, after the end: %v", err)
	}
}

// A daemon gives back the topics that its configuration had before it was
// restarted under another.
func TestFormerTopicsAfterARestart(t *testing.T) {
	withMosquitto(t, func(t *testing.T, b *testBroker) {
		config, _ := waveformConfig(t, b.url())
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
func keep(t *testing.T, b *testBroker, topic, payload string) {
	t.Helper()
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{b.url()}
	opts, err := clientOptions(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client := paho.NewClient(opts)
	for _, token := range []func() paho.Token{client.Connect, func() paho.Token { return client.Publish(topic, 1, true, payload) }} {
		if token := token(); !token.WaitTimeout(patience) || token.Error() != nil {
			t.Fatalf("publish on %s: %v", topic, token.Error())
		}
	}
	client.Disconnect(100)
}
