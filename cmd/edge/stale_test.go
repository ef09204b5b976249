package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edge/online"
	"edge/persist"
)

// TestStaleFilesAreRemoved: what doctor, exports and train left when they were
// killed is removed by the next of them, unless another one still writes it.
func TestStaleFilesAreRemoved(t *testing.T) {
	folder := t.TempDir()
	left := func(name string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("half of it"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	held := func(name string) string {
		t.Helper()
		path := left(name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		store, err := persist.Open(path, persist.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return path
	}
	stale := []string{left("exports/m.a.db.part"), left("exports/m.b.db.part.new"), left(".edge-doctor-1/trial.db"), left("out.db.training.7.new")}
	kept := []string{left("exports/m.a.db"), held("exports/m.c.db.part"), held(".edge-doctor-2/trial.db"), left("out.db.training")}

	learner := online.DefaultConfig()
	learner.Features = []string{"a"}
	l, err := online.NewLearner(learner)
	if err != nil {
		t.Fatal(err)
	}
	state, err := l.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (exports{dir: filepath.Join(folder, "exports")}).write("m", "d", learner.Shape(), state); err != nil {
		t.Error(err)
	}
	cfg, err := LoadConfig(writeFile(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {m: {streams: [s]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := measureWear(context.Background(), cfg, folder, 1, 10*time.Millisecond); err != nil {
		t.Error(err)
	}
	trainer, err := persist.CreateTemp((&training{output: filepath.Join(folder, "out.db")}).unfinished())
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Close()
	for _, path := range stale {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range append(kept, trainer.Name()) {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s is gone: %v", path, err)
		}
	}
}
