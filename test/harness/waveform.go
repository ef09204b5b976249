package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/inspect"
	"edge/internal/report"
	"edge/test/files"
)

// WaveformFile writes a CSV file of the n rows that a [Truth] learns first.
func WaveformFile(t testing.TB, n int) (path string) {
	t.Helper()
	w := dataset.NewWaveform(RowsSeed)
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
	return files.Write(t, "waveform.csv", b.String())
}

// WaveformConfig writes the configuration of a daemon that learns the waveform
// problem. Minibatches are closed by count alone, so that the state depends on
// the samples alone; checkpoints are so rare that the journal matters.
func WaveformConfig(t testing.TB, broker string) (path, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "edge.db")
	return files.Write(t, "edge.yaml", fmt.Sprintf(`
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

// Replay starts `edge replay` with args. wait returns when it has exited, which it
// does when the daemon has answered every row.
func Replay(t *testing.T, args ...string) (wait func()) {
	t.Helper()
	var errOut bytes.Buffer
	ctx, cancel := context.WithDeadline(t.Context(), deadline())
	plain := Command(t, append([]string{"replay"}, args...)...)
	cmd := exec.CommandContext(ctx, plain.Path, plain.Args[1:]...)
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return func() {
		t.Helper()
		err := <-done
		defer cancel()
		if ctx.Err() != nil {
			t.Fatalf("edge replay does not end: %s", &errOut)
		}
		if err != nil {
			t.Fatalf("edge replay: %v: %s", err, &errOut)
		}
	}
}

// AwaitSamples waits until the metrics of the model waveform count n learnt samples.
func AwaitSamples(t *testing.T, b *brokertest.Broker, n int) {
	t.Helper()
	AwaitModelSamples(t, b, "waveform", n)
}

// AwaitModelSamples is AwaitSamples for another model.
func AwaitModelSamples(t *testing.T, b *brokertest.Broker, model string, n int) {
	t.Helper()
	var samples atomic.Int64
	pub := brokertest.Subscribe(t, b.URL(), []string{"edge/test/" + model + "/metrics"}, func(_ string, payload []byte) {
		samples.Store(gjson.GetBytes(payload, "n").Int())
	})
	defer pub.Close()
	read := func() int { // an earlier daemon's metrics may count more
		if v := int(samples.Load()); v != n {
			return min(v, n-1)
		}
		return n
	}
	if !brokertest.Progress(read, n) {
		t.Errorf("the metrics of %s count %d samples, want %d", model, samples.Load(), n)
	}
}

// SameAsEval fails unless a daemon's final scores and digest are those of `edge
// eval` with the same data and configuration.
func SameAsEval(t *testing.T, final gjson.Result, data, config string) {
	t.Helper()
	code, out, errOut := Run(t, "eval", "--json", data, "-c", config)
	if code != exit.OK {
		t.Fatalf("edge eval exits with %d: %s", code, errOut)
	}
	var want report.Report
	if err := json.Unmarshal([]byte(out), &want); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
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

// Verify runs `edge verify` on a state file.
func Verify(t *testing.T, path string) (code int, v inspect.Verification) {
	t.Helper()
	code, out, errOut := Run(t, "verify", path, "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("verify prints %q, %q: %v", out, errOut, err)
	}
	if (code == exit.OK) != v.Sound || code != exit.OK && (code != exit.Store || !strings.Contains(errOut, v.Remedy())) {
		t.Errorf("verify exits with %d and prints %q, %s", code, errOut, out)
	}
	return code, v
}
