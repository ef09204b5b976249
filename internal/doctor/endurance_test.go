package doctor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"edge/internal/config"
	"edge/persist"
)

// A measurement removes the scratch store of a killed doctor, unless another doctor
// still writes it.
func TestEnduranceRemovesStaleFiles(t *testing.T) {
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
	stale := []string{left(".edge-doctor-1/trial.db")}
	kept := []string{held(".edge-doctor-2/trial.db")}
	cfg, err := config.Load(writeFile(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {m: {streams: [s]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := MeasureEndurance(t.Context(), cfg, folder, 1, 10*time.Millisecond); err != nil {
		t.Error(err)
	}
	for _, path := range stale {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s is gone: %v", path, err)
		}
	}
}
