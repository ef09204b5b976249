package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"edge/online"
	"edge/test/harness"
)

// emptyState returns the state of a learner that has learnt nothing, and its shape.
func emptyState(t *testing.T) (shape string, state []byte) {
	t.Helper()
	cfg := online.DefaultConfig()
	cfg.Features = []string{"a"}
	l, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if state, err = l.AppendBinary(nil); err != nil {
		t.Fatal(err)
	}
	return cfg.Shape(), state
}

// Exports without a name replace none, also within one second, until there are as many as the folder
// may hold, whatever that is called.
func TestExportsWithoutANameAreKept(t *testing.T) {
	shape, state := emptyState(t)
	e := exports{dir: filepath.Join(t.TempDir(), "[exports")}
	names := map[any]bool{}
	for range maxExports {
		about, err := e.write("m", "", shape, state)
		if err != nil {
			t.Fatal(err)
		}
		names[about["name"]] = true
	}
	if left, err := os.ReadDir(e.dir); err != nil || len(left) != maxExports || len(names) != maxExports {
		t.Errorf("%d exports are %d files with %d names, %v", maxExports, len(left), len(names), err)
	}
	if _, err := e.write("m", "", shape, state); err == nil {
		t.Errorf("the folder takes more than %d exports", maxExports)
	}
}

// An export removes the unfinished files of killed processes, but not those that
// another process has open.
func TestExportRemovesStaleFiles(t *testing.T) {
	shape, state := emptyState(t)
	harness.RemovesLeftovers(t, []string{"m.a.db.part", "m.b.db.part.new"}, []string{"m.a.db"}, []string{"m.c.db.part"}, func(folder string) {
		if _, err := (exports{dir: folder}).write("m", "d", shape, state); err != nil {
			t.Error(err)
		}
	})
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
