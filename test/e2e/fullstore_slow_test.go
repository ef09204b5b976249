//go:build slow

package e2e

import (
	"os"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/test/harness"
)

// TestFullStoreMakesRoom fills the state file with the journal: the daemon then makes
// checkpoints before they are due, and no sample is lost or learnt twice.
func TestFullStoreMakesRoom(t *testing.T) {
	rows := brokertest.Brief(8000, 6000)
	data := harness.WaveformFile(t, rows)
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := harness.WaveformConfig(t, b.URL())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("samples: 150}", "samples: 1000000}, max_size: 1MiB", "inducing: 20", "inducing: 5", "window: 40", "window: 10").Replace(string(text))
	if err := os.WriteFile(config, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	d := harness.Start(t, config)
	d.Await("connected to the broker")
	harness.Replay(t, data, "--broker", b.URL())()
	harness.AwaitSamples(t, b, rows)
	d.Await("the journal works again")
	d.Kill()
	d = harness.Start(t, config)
	d.Await("connected to the broker")
	harness.SameAsEval(t, d.Stop(), data, config)
}
