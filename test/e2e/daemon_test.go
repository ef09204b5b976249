package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
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
	"edge/test/harness"
)

// TestDaemonEqualsEval compares the state that a daemon learns from a stream with the
// state that eval learns from the file: they are equal to the last bit.
func TestDaemonEqualsEval(t *testing.T) {
	data := harness.WaveformFile(t, 500)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, store := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		harness.Replay(t, data, "--broker", b.URL())()
		harness.AwaitSamples(t, b, 500)
		final := d.Stop()
		harness.SameAsEval(t, final, data, config)

		code, out, errOut := harness.Run(t, "inspect", store, "--json")
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

// TestStopAndStart stops a daemon in the middle of a stream: the next one continues
// from its state.
func TestStopAndStart(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		data := harness.WaveformFile(t, 600)
		config, _ := harness.WaveformConfig(t, b.URL())
		first := harness.Start(t, config)
		if server := first.Await("connected to the broker").Get("server").String(); server != b.URL() {
			t.Errorf("connected to server %q, want %q", server, b.URL())
		}
		rate := "150"
		if len(harness.Emulator) > 0 {
			rate = "30" // it learns no faster beside others
		}
		wait := harness.Replay(t, data, "--broker", b.URL(), "--rate", rate)
		if metrics, ok := brokertest.Await(t, b, "edge/test/waveform/metrics", func(m string) bool { return gjson.Get(m, "n").Int() > 0 }); !ok {
			t.Errorf("nothing is learnt: %s", metrics)
		}
		before := first.Stop()
		for late := true; late; { // the digest is missing while learning lags behind the journal
			if _, late = first.Logged("the model is still learning committed records; its last metrics are without them, and it continues at the next start"); late {
				first = harness.Start(t, config)
				first.Await("connected to the broker")
				before = first.Stop()
			}
		}
		second := harness.Start(t, config)
		wait()
		harness.AwaitSamples(t, b, 600)
		final := second.Stop()
		ready := second.Await("model ready")
		if n := before.Get("samples").Uint(); n == 600 {
			t.Log("the stop came after all samples: this machine is too busy")
		} else if n == 0 || ready.Get("samples").Uint() != n {
			t.Errorf("stopped after %d samples of 600, started again with %d", n, ready.Get("samples").Uint())
		}
		if before.Get("digest").String() != ready.Get("digest").String() {
			t.Errorf("stopped with digest %s, started with %s", before.Get("digest"), ready.Get("digest"))
		}
		harness.SameAsEval(t, final, data, config)
	})
}

// TestKilledAtRandom kills daemons at random times. Every sample is learnt once, in
// order.
func TestKilledAtRandom(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		kills := brokertest.Brief(20, 3)
		data := harness.WaveformFile(t, 200*(kills+1))
		config, _ := harness.WaveformConfig(t, b.URL())
		wait := harness.Replay(t, data, "--broker", b.URL(), "--rate", "500")
		for range kills {
			d := harness.Start(t, config)
			d.Await("connected to the broker")
			time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
			d.Kill()
		}
		last := harness.Start(t, config)
		wait()
		harness.AwaitSamples(t, b, 200*(kills+1))
		final := last.Stop()
		ready := last.Await("model ready")
		t.Logf("last start: %d samples restored, %d records replayed", ready.Get("restored").Uint(), ready.Get("replayed").Uint())
		harness.SameAsEval(t, final, data, config)
	})
}

// TestKilledAndTaughtAgain kills daemons and repeats their samples: acknowledged
// samples are kept, and repeated samples are not learnt again.
func TestKilledAndTaughtAgain(t *testing.T) {
	data := harness.WaveformFile(t, 400)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := harness.WaveformConfig(t, b.URL())
		for _, rows := range []int{90, 200, 330} {
			d := harness.Start(t, config)
			harness.Replay(t, data, "--broker", b.URL(), "--first", fmt.Sprint(rows))()
			harness.AwaitSamples(t, b, rows)
			d.Kill()
		}
		d := harness.Start(t, config)
		if n := d.Await("model ready").Get("samples").Uint(); n != 330 {
			t.Errorf("the last start has %d samples, want 330", n)
		}
		harness.Replay(t, data, "--broker", b.URL())()
		harness.AwaitSamples(t, b, 400)
		harness.SameAsEval(t, d.Stop(), data, config)
	})
}

// TestLearningStaysOff switches learning off, kills the daemon and switches learning
// on. The state is that of a run without the samples in between.
func TestLearningStaysOff(t *testing.T) {
	data := harness.WaveformFile(t, 200)
	t.Setenv("EDGE_CONTROL_ENABLED", "true")
	t.Setenv("EDGE_MODELS_WAVEFORM_OUTPUT", "cbor")
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		harness.Replay(t, data, "--broker", b.URL(), "--first", "90")()
		request(t, b, "OFF")
		d.Kill()
		d = harness.Start(t, config)
		d.Await("learning is switched off by an earlier request; labels are ignored until another request switches it on")
		harness.Replay(t, data, "--broker", b.URL())()
		request(t, b, "ON")
		var m string // it counts the 90 samples again while the model recovers
		if !brokertest.Eventually(func() bool {
			m = brokertest.Retained(t, b.URL(), "edge/test/waveform/metrics")
			return gjson.Get(m, "frozen").Uint() == 200 && gjson.Get(m, "n").Uint() == 90
		}) {
			t.Errorf("metrics %s, want 90 samples learnt and 200 frozen", m)
		}
		d.Kill()
		d = harness.Start(t, config)
		harness.Replay(t, data, "--broker", b.URL())()
		harness.AwaitSamples(t, b, 200)
		harness.SameAsEval(t, d.Stop(), data, config)
	})
}

// request asks a daemon to switch learning and waits for its answer.
func request(t *testing.T, b *brokertest.Broker, word string) {
	t.Helper()
	cfg := brokertest.Config(b.URL())
	answered := make(chan string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	defer cancel()
	pub, err := broker.NewPublisher(ctx, cfg, 1, broker.Listener{Filters: []string{"edge/test/response/learning/waveform"}, Receive: func(_ string, payload []byte, _ bool) { answered <- string(payload) }})
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

// TestBrokerComesAndGoes starts a daemon without a broker and restarts the broker.
func TestBrokerComesAndGoes(t *testing.T) {
	data := harness.WaveformFile(t, 300)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		b.Stop()
		config, _ := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		d.Await("cannot connect to the broker; will keep trying")
		b.Stop = b.Start(t, b.Addr)
		harness.Replay(t, data, "--broker", b.URL(), "--first", "150")()
		b.Restart(t)
		harness.Replay(t, data, "--broker", b.URL(), "--prefix", "again")()
		harness.AwaitSamples(t, b, 450)
		if n := d.Stop().Get("samples").Uint(); n != 450 {
			t.Errorf("%d samples were learnt, want 150 and then 300", n)
		}
	})
}

// TestReaderOfTheLogEnds ends the process that reads the log: the daemon goes on, and stops in order.
func TestReaderOfTheLogEnds(t *testing.T) {
	data := harness.WaveformFile(t, 200)
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := harness.WaveformConfig(t, b.URL())
	cmd := harness.Command(t, "run", "-c", config)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	defer cmd.Process.Kill()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	awaitOnline(t, b)
	harness.Replay(t, data, "--broker", b.URL())()
	harness.AwaitSamples(t, b, 200)
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
	case <-time.After(brokertest.Patience):
		t.Error("the daemon does not stop")
	}
}

// TestDelayedLabels sends labels later, by id: all are learnt, and each judges the
// prediction that was published for its sample.
func TestDelayedLabels(t *testing.T) {
	data := harness.WaveformFile(t, 300)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		code, out, errOut := harness.Run(t, "replay", data, "--broker", b.URL(), "--labels", "delayed", "--delay", "20", "--json")
		if code != exit.OK {
			t.Fatalf("replay exits with %d: %s", code, errOut)
		}
		published := gjson.Parse(out)
		// The last labels follow the last row, whose prediction replay awaits.
		harness.AwaitSamples(t, b, 300)
		final := d.Stop()
		if n, e := final.Get("samples").Uint(), final.Get("error").Float(); n != 300 || published.Get("samples").Uint() != 300 || e != published.Get("error").Float() {
			t.Errorf("%d samples, error %g; what was published has %s", n, e, published.Get("error"))
		}
		if e := published.Get("nll").Float(); math.Abs(e-final.Get("nll").Float()) > 0.1 {
			t.Errorf("log loss %g; what was published has %g", final.Get("nll").Float(), e)
		}
	})
}

// TestBrokenMessages sends malformed messages: each is rejected, and the stream
// continues.
func TestBrokenMessages(t *testing.T) {
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		var mu sync.Mutex
		reasons := map[string]int{}
		answered := 0
		cfg := brokertest.Config(b.URL())
		ready := make(chan struct{}, 10)
		pub, err := broker.NewPublisher(t.Context(), cfg, 1, broker.Listener{Filters: []string{"edge/test/#"}, Receive: func(topic string, payload []byte, _ bool) {
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
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer pub.Close()
		<-ready
		x := strings.Repeat("0,", dataset.WaveformFeatures-1) + "0"
		for _, payload := range []string{
			"", "{", "hello", `[1,2]`, `{"features":[` + strings.Repeat("0,", dataset.WaveformFeatures-1) + `NaN]}`,
			`{"features":[` + strings.Repeat("0,", dataset.WaveformFeatures-1) + `1e999]}`,
			`{"x1":1,"crest":2}`, `{"features":[` + x + `],"label":7.5}`, `{"features":[` + x + `],"label":{"a":1}}`,
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
		if n := d.Stop().Get("samples").Uint(); n != 1 {
			t.Errorf("%d samples were learnt, want 1", n)
		}
	})
}

func TestReset(t *testing.T) {
	data := harness.WaveformFile(t, 40)
	b := brokertest.New(t, brokertest.Embedded)
	config, store := harness.WaveformConfig(t, b.URL())
	d := harness.Start(t, config)
	harness.Replay(t, data, "--broker", b.URL())()
	if code, _, errOut := harness.Run(t, "reset", "-c", config, "--all", "--yes"); code != exit.Store || !strings.Contains(errOut, "locked") {
		t.Errorf("a reset beside the daemon exits with %d: %s", code, errOut)
	}
	if code, _, errOut := harness.Run(t, "inspect", store); code != exit.Store || !strings.Contains(errOut, "stop the daemon first") {
		t.Errorf("inspect beside the daemon exits with %d: %s", code, errOut)
	}
	d.Stop()
	if code, _, errOut := harness.RunWith(t, "n\n", "reset", "-c", config, "--model", "waveform"); code != exit.Runtime || !strings.Contains(errOut, "Forget all of model waveform") {
		t.Errorf("a reset that is not confirmed exits with %d: %s", code, errOut)
	}
	if code, out, errOut := harness.RunWith(t, "y\n", "reset", "--state", store, "--model", "waveform"); code != exit.OK || !strings.Contains(out, "has forgotten 40 samples") {
		t.Errorf("a reset that is confirmed exits with %d: %s%s", code, out, errOut)
	}
	if code, out, _ := harness.Run(t, "inspect", store, "--json"); code != exit.OK || len(gjson.Get(out, "models").Array()) != 0 {
		t.Errorf("after the reset there are still models: %s", out)
	}
	if code, _, errOut := harness.Run(t, "reset", "--state", store, "--model", "waveform", "--yes"); code != exit.Store {
		t.Errorf("a second reset exits with %d: %s", code, errOut)
	}
}

// TestOtherShapeIsRefused starts a daemon with a configuration of another shape than
// its state.
func TestOtherShapeIsRefused(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := harness.WaveformConfig(t, b.URL())
	d := harness.Start(t, config)
	harness.Replay(t, harness.WaveformFile(t, 20), "--broker", b.URL())()
	harness.AwaitSamples(t, b, 20)
	d.Stop()
	t.Setenv("EDGE_MODELS_WAVEFORM_INDUCING", "30")
	code, _, errOut := harness.Run(t, "run", "-c", config, "--for", "10s")
	if code != exit.Store || !strings.Contains(errOut, "edge reset --model waveform") {
		t.Errorf("exits with %d: %s", code, errOut)
	}
}

// awaitOnline waits until the daemon has published the state online.
func awaitOnline(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	if state, ok := brokertest.Await(t, b, "edge/test/state", func(state string) bool { return state == "online" }); !ok {
		t.Fatalf("the daemon is not online: %q", state)
	}
}

// TestReplayWaitsForADaemon starts a replay without a daemon: no row is published.
func TestReplayWaitsForADaemon(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := brokertest.Config(b.URL())
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

// TestFormerTopicsAfterARestart restarts a daemon under a configuration with other
// topics: it unsubscribes from the former ones.
func TestFormerTopicsAfterARestart(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := harness.WaveformConfig(t, b.URL())
		t.Setenv("EDGE_STREAMS_WAVEFORM_TOPICS", "former/waveform")
		d := harness.Start(t, config)
		awaitOnline(t, b)
		d.Stop()
		t.Setenv("EDGE_STREAMS_WAVEFORM_TOPICS", "sensors/waveform")
		d = harness.Start(t, config)
		if line := d.Await("ended subscriptions of an earlier run, which this one does not need"); line.Get("filters").String() != `["former/waveform"]` {
			t.Errorf("gave back %s", line)
		}
		d.Stop()
	})
}
