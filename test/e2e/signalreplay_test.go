package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// signalFile writes rows of signals at 50 Hz: recordings of so many rows of two devices,
// with a silence of ten seconds between them.
func signalFile(t *testing.T, recordings, rows int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("t,device,x,y,label\n")
	at := 1_700_000_000.0
	for r := range recordings {
		kind := r % 3
		for i := range rows {
			s := float64(i) / 50
			x := (0.2 + float64(kind)) * math.Sin(2*math.Pi*(1+float64(kind))*s+float64(r))
			fmt.Fprintf(&b, "%.2f,%s,%.4f,%.4f,%s\n", at+s, []string{"left", "right"}[r%2], x, 0.5*x+float64(r%5)/10, []string{"rest", "walk", "run"}[kind])
		}
		at += float64(rows)/50 + 10
	}
	return files.Write(t, "signals.csv", b.String())
}

// signalConfig writes the configuration of a daemon for signalFile.
func signalConfig(t *testing.T, broker string) (path, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "edge.db")
	return files.Write(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], max_reconnect_interval: 200ms}
streams:
  hip:
    topics: [lab/+/hip]
    topic_template: "lab/{device}/hip"
    signals: [x, y]
    time: t
    derive: {m: "hypot(x, y)", d: "diff(x)"}
    window: {length: 1s, hop: 500ms, max_gap: 2s}
models:
  gait:
    streams: [hip]
    inducing: 20
    window: 40
    batch: {max_size: 16, max_wait: 0s}
store: {path: "%s", checkpoint: {every: 0s, samples: 150}}
metrics: {every: 1s, samples: 10}
http: {listen: ""}
`, broker, store)), store
}

// A daemon that receives rows with their times has the samples, the ids and the state of
// edge eval, however fast they come, and over a reload in the middle.
func TestReplayOfSignals(t *testing.T) {
	for name, tc := range map[string]struct {
		recordings, rows int
		speed            []string
		reload           bool
	}{
		"as fast as they came":    {1, 150, []string{"--speed", "1"}, false},
		"a hundred times as fast": {24, 200, []string{"--speed", "100"}, false},
		"at once":                 {24, 200, nil, false},
		"with a reload":           {24, 200, []string{"--speed", "100"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			data := signalFile(t, tc.recordings, tc.rows)
			b := brokertest.New(t, brokertest.Mosquitto)
			path, _ := signalConfig(t, b.URL())
			ids := publishedIDs(t, b)
			d := harness.Start(t, path)
			wait := harness.Replay(t, append([]string{data, "-c", path}, tc.speed...)...)
			if tc.reload {
				if !brokertest.Progress(func() int { return min(len(ids()), 10) }, 10) {
					t.Fatalf("%d predictions", len(ids()))
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.Replace(string(text), "models:", "labels: [{topics: [lab/label]}]\nmodels:", 1)), 0o600); err != nil {
					t.Fatal(err)
				}
				d.Process.Signal(syscall.SIGHUP)
				d.Await("configuration reloaded")
			}
			wait()
			harness.SameAsEval(t, d.Stop(), data, path)
			code, out, errOut := harness.Run(t, "windows", data, "-c", path)
			if code != exit.OK {
				t.Fatalf("edge windows exits with %d: %s", code, errOut)
			}
			var want []string
			for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
				id, _, _ := strings.Cut(line, ",")
				want = append(want, id)
			}
			if got := ids(); !slices.Equal(got, want) {
				t.Errorf("the daemon predicts %d samples, %.300v\nedge windows prints %d, %.300v", len(got), got, len(want), want)
			}
		})
	}
}

// publishedIDs follows the predictions; the result returns their ids so far.
func publishedIDs(t *testing.T, b *brokertest.Broker) func() []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	pub := brokertest.Subscribe(t, b.URL(), []string{"edge/test/gait/prediction/#"}, func(_ string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, gjson.GetBytes(payload, "id").String())
	})
	t.Cleanup(pub.Close)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// A daemon goes on from what train has learnt of recorded rows.
func TestSignalsWarmStart(t *testing.T) {
	b := brokertest.New(t, brokertest.Mosquitto)
	path, store := signalConfig(t, b.URL())
	data := signalFile(t, 12, 200)
	if code, _, errOut := harness.Run(t, "train", data, "-c", path, "-o", store, "--passes", "3"); code != exit.OK {
		t.Fatalf("edge train exits with %d: %s", code, errOut)
	}
	predicted := make(chan string, 1000)
	pub := brokertest.Subscribe(t, b.URL(), []string{"edge/test/gait/prediction/#"}, func(_ string, payload []byte) { predicted <- string(payload) })
	defer pub.Close()
	d := harness.Start(t, path)
	if ready := d.Await("model ready"); ready.Get("learnt").Int() == 0 {
		t.Errorf("the log does not tell what was learnt: %s", ready.Raw)
	}
	harness.Replay(t, data, "-c", path, "--labels", "none")()
	first := gjson.Parse(<-predicted)
	if first.Get("class").String() != "rest" || len(first.Get("probs").Map()) != 3 {
		t.Errorf("the first prediction is %s", first.Raw)
	}
	code, out, _ := harness.Run(t, "predict", "--state", copyOf(t, store, d), "-c", path, data)
	offline := gjson.Get(out[:strings.IndexByte(out, '\n')], "@this")
	if code != exit.OK || offline.Get("id").String() != first.Get("id").String() || math.Abs(offline.Get("probs.rest").Float()-first.Get("probs.rest").Float()) > 1e-4 {
		t.Errorf("the daemon publishes %s\npredict prints %s", first.Raw, offline.Raw)
	}
}

// copyOf stops the daemon, whose state file then is free.
func copyOf(t *testing.T, store string, d *harness.Daemon) string {
	t.Helper()
	d.Stop()
	return store
}
