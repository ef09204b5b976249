//go:build slow

package main

import (
	"os"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
)

// A journal that has filled the state file makes room for itself, by
// checkpoints that are not due for long; nothing is lost or learnt twice by that.
func TestFullStoreMakesRoom(t *testing.T) {
	rows := brokertest.Brief(8000, 6000)
	data := waveformFile(t, rows)
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := waveformConfig(t, b.URL())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("samples: 150}", "samples: 1000000}, max_size: 1MiB", "inducing: 20", "inducing: 5", "window: 40", "window: 10").Replace(string(text))
	if err := os.WriteFile(config, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, config)
	d.await("connected to the broker")
	replayed(t, data, "--broker", b.URL())()
	awaitSamples(t, b, rows)
	d.await("the journal works again")
	d.kill()
	d = startDaemon(t, config)
	d.await("connected to the broker")
	sameAsEval(t, d.stop(), data, config)
}
