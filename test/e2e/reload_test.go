package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/online"
	"edge/test/files"
	"edge/test/harness"
)

// TestReloadLearning changes learning rates by a reload: the state is that of a
// learner that is restored under them at that sample. A kill afterwards changes
// nothing.
func TestReloadLearning(t *testing.T) {
	const first, second = 300, 260
	data := harness.WaveformFile(t, first+second)
	head, tail := splitFile(t, data, first)
	b := brokertest.New(t, brokertest.Mosquitto)
	path, store := harness.WaveformConfig(t, b.URL())
	from, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	d := harness.Start(t, path)
	harness.Replay(t, head, "--broker", b.URL())()
	harness.AwaitSamples(t, b, first)
	edit := strings.NewReplacer("inducing: 20", "inducing: 20\n    learning_rate: 0.1\n    damping: 0.8\n    sweeps: 3", "max_size: 16", "max_size: 8", `["0", "1", "2"]`, `["0", "1", "2", "3"]`)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(edit.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Process.Signal(syscall.SIGHUP)
	changed := d.Await("configuration reloaded").Get("changed").String()
	if want := "models.waveform.batch.max_size, models.waveform.classes.names, models.waveform.damping, models.waveform.learning_rate, models.waveform.sweeps"; changed != want {
		t.Errorf("changed %s, want %s", changed, want)
	}
	harness.Replay(t, tail, "--broker", b.URL(), "--topic", "sensors/waveform", "--prefix", "tail")()
	harness.AwaitSamples(t, b, first+second)
	d.Kill()
	d = harness.Start(t, path)
	d.Await("connected to the broker")
	got := d.Stop().Get("digest").String()

	to, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := learntUnder(t, from, to, data, first); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	if code, out, _ := harness.Run(t, "verify", store); code != exit.OK {
		t.Errorf("edge verify says: %s", out)
	}
}

// learntUnder returns the digest of a learner that learns a file and is restored under
// another configuration after the first rows.
func learntUnder(t *testing.T, from, to *config.Config, data string, rows int) string {
	t.Helper()
	a, err := from.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	z, err := to.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	learner, err := online.NewLearner(a)
	if err != nil {
		t.Fatal(err)
	}
	file, err := dataset.Open(data, dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var row dataset.Row
	for n := 0; file.Next(&row) == nil; n++ {
		if n == rows {
			state, err := learner.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			if learner, err = online.Restore(z, state); err != nil {
				t.Fatal(err)
			}
		}
		learner.Add(&online.Event{Kind: online.Observe, X: row.X, Label: row.Label})
	}
	return learner.Digest()
}

// splitFile cuts a data file in two.
func splitFile(t *testing.T, path string, rows int) (head, tail string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	return files.Write(t, "waveform.csv", strings.Join(lines[:rows+1], "")), files.Write(t, "tail.csv", lines[0]+strings.Join(lines[rows+1:], ""))
}
