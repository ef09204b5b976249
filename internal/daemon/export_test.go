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

// An export removes the unfinished files of killed processes, but not those that
// another process has open.
func TestExportRemovesStaleFiles(t *testing.T) {
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
	harness.RemovesLeftovers(t, []string{"m.a.db.part", "m.b.db.part.new"}, []string{"m.a.db"}, []string{"m.c.db.part"}, func(folder string) {
		if _, err := (exports{dir: folder}).write("m", "d", cfg.Shape(), state); err != nil {
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
