//go:build unix && !solaris && !illumos && !aix

package persist

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestIrregular gives a path that names no regular file to each function that reads
// or writes state files: it is refused, and stays as it is. A pipe would let an
// open for reading wait for ever.
func TestIrregular(t *testing.T) {
	sound := tempPath(t)
	closeStore(t, newStore(t, sound, Options{}))
	folder := t.TempDir()
	paths := map[string]string{"pipe": filepath.Join(folder, "pipe"), "folder": filepath.Join(folder, "folder"), "device": filepath.Join(folder, "device")}
	if err := errors.Join(syscall.Mkfifo(paths["pipe"], 0o644), os.Mkdir(paths["folder"], 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mknod(paths["device"], syscall.S_IFCHR|0o644, 1<<8|3); err != nil {
		t.Logf("no device is tested: %v", err)
		delete(paths, "device")
	}
	for name, target := range paths {
		path := filepath.Join(folder, name+".db")
		if err := os.Symlink(name, path); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(target)
		if err != nil {
			t.Fatal(err)
		}
		for what, do := range map[string]func() error{
			"Open":         func() error { _, err := Open(path, Options{}); return err },
			"OpenReadOnly": func() error { _, err := OpenReadOnly(path, Options{}); return err },
			"Verify":       func() error { _, err := Verify(path, nil); return err },
			"Backup":       func() error { return backUp(path, filepath.Join(folder, "copy")) },
			"Restore from": func() error { _, err := Restore(path, filepath.Join(folder, "copy")); return err },
			"Restore to":   func() error { _, err := Restore(sound, path); return err },
		} {
			if err := do(); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s of a %s: %v, want %v", what, name, err, ErrForeign)
			}
			if after, err := os.Stat(target); err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
				t.Errorf("%s of a %s changed it: %v", what, name, err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 2*len(paths) {
		t.Errorf("files remain: %v", left)
	}
}
