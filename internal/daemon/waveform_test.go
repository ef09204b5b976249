package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
)

// waveformFile writes a data file of n samples of the demo's sensors.
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

// waveformConfig writes the configuration of a daemon that learns that file in
// minibatches closed by count, with checkpoints so far apart that the journal is
// used.
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

// awaitSamples waits until the metrics topic has n learnt samples.
func awaitSamples(t *testing.T, b *brokertest.Broker, n int) {
	t.Helper()
	metrics, ok := brokertest.Await(t, b, "edge/test/waveform/metrics", func(m string) bool { return gjson.Get(m, "n").Int() == int64(n) })
	if !ok {
		t.Errorf("the metrics never have %d samples: %s", n, metrics)
	}
}

// writeFile writes a file in a temporary folder.
func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
