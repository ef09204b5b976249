package harness

import (
	"os"
	"path/filepath"
	"testing"

	"edge/persist"
)

// RemovesLeftovers calls command with a folder that has the files gone and kept, and held, which
// are open as stores, and fails unless it removes gone alone.
func RemovesLeftovers(t testing.TB, gone, kept, held []string, command func(folder string)) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "of [1") // no pattern
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}
	write := func(names []string, make func(path string) error) {
		for _, name := range names {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	half := func(path string) error { return os.WriteFile(path, []byte("half of it"), 0o600) }
	write(gone, half)
	write(kept, half)
	write(held, func(path string) error {
		store, err := persist.Open(path, persist.Options{})
		if err == nil {
			t.Cleanup(func() { store.Close() })
		}
		return err
	})
	command(folder)
	for _, name := range gone {
		if exists(name) {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range append(kept, held...) {
		if !exists(name) {
			t.Errorf("%s is gone", name)
		}
	}
}
