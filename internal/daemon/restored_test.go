package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"edge/internal/config"
	"edge/online"
	"edge/persist"
	"edge/test/harness"
)

// TestRestoredCountsCheckpointsAlone repairs a file without a readable checkpoint:
// the log must count every sample as replayed and none as restored.
func TestRestoredCountsCheckpointsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	cfg, err := config.Load(harness.WriteFile(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {m: {streams: [s]}}\nhttp: {listen: ''}\nstore: {path: "+path+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	learnerConfig, err := cfg.Learner("m")
	if err != nil {
		t.Fatal(err)
	}
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load("m", learnerConfig.Shape()); err != nil {
		t.Fatal(err)
	}
	state := bytes.Repeat([]byte("a state that nothing can read. "), 100)
	for n := range uint64(30) {
		record := online.Record{Model: "m", Event: online.Event{Kind: online.Observe, Key: n + 1, X: []float64{float64(n)}, Label: []string{"a", "b"}[n%2]}}
		if err := store.Commit(&online.Commit{Records: []online.Record{record}}); err != nil {
			t.Fatal(err)
		}
		if n == 9 || n == 19 {
			if err := store.Checkpoint("m", n+1, state); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(file, []byte("nothing"), []byte("anybody")), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	d, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !bytes.Contains(log.Bytes(), []byte(` model=m restored=0 records=20`)) {
		t.Errorf("want 0 samples restored and 20 replayed:\n%s", log.String())
	}
}

// TestUnusedState renames a model: the log of the start names the state that is left
// under the old name.
func TestUnusedState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	for _, tc := range []struct {
		model string
		want  bool
	}{{"first", false}, {"second", true}} {
		cfg, err := config.Load(harness.WriteFile(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {"+tc.model+": {streams: [s]}}\nhttp: {listen: ''}\nstore: {path: "+path+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		d, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(log.Bytes(), []byte("discard it with edge reset\" model=first")); got != tc.want {
			t.Errorf("model %s: the log names the state of model first: %v, want %v:\n%s", tc.model, got, tc.want, &log)
		}
	}
}
