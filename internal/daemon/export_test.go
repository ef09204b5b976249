package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"edge/online"
	"edge/persist"
)

// An export removes the unfinished files of killed processes, but not those that
// another process has open.
func TestExportRemovesStaleFiles(t *testing.T) {
	folder := t.TempDir()
	left := func(name string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("unfinished"), 0o600); err != nil {
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
	stale := []string{left("m.a.db.part"), left("m.b.db.part.new")}
	kept := []string{left("m.a.db"), held("m.c.db.part")}
	cfg := online.DefaultConfig()
	cfg.Features = []string{"a"}
	l, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	state, err := l.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (exports{dir: folder}).write("m", "d", cfg.Shape(), state); err != nil {
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

// The error of an export names its own reason alone, where no file was begun, and an
// export that fails later leaves none.
func TestExportFails(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "m.d.db.part.new", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := (exports{dir: folder}).write("m", "d", "", []byte("state"))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := (exports{dir: folder}).write("m", "e", "", nil); err == nil {
		t.Error("an empty state was exported")
	}
	if left, err := filepath.Glob(filepath.Join(folder, "m.e.*")); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}
