package eval

import (
	"os"
	"path/filepath"
	"testing"

	"edge/persist"
)

// Saving a training removes temporary files of a killed one.
func TestTrainingRemovesStaleFiles(t *testing.T) {
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
	stale := []string{left("out.db.training.7.new")}
	kept := []string{left("out.db.training")}
	f, err := persist.CreateTemp((&Training{Output: filepath.Join(folder, "out.db")}).unfinished())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kept = append(kept, f.Name())
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
