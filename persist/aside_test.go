package persist

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDamagedKept repairs five damaged files: Open keeps the latest three.
func TestDamagedKept(t *testing.T) {
	path := tempPath(t)
	for range 5 {
		writeFile(t, path, make([]byte, 4*pageSize))
		s := newStore(t, path, Options{})
		if r := s.Recovery(); r == nil || !strings.HasPrefix(r.Aside, path+".damaged-") {
			t.Errorf("Recovery() = %+v", r)
		}
		closeStore(t, s)
	}
	got, _ := filepath.Glob(path + ".damaged-*")
	want := []string{path + ".damaged-3", path + ".damaged-4", path + ".damaged-5"}
	if !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

// TestAsideCopied keeps a file without a name aside: keepAside copies it, since it
// cannot link it.
func TestAsideCopied(t *testing.T) {
	path := tempPath(t)
	want := bytes.Repeat([]byte("damaged"), 1000)
	writeFile(t, path, want)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Remove(path); err != nil { // so that the link fails
		t.Fatal(err)
	}
	aside, err := keepAside(file, path, "damaged")
	if err != nil || !bytes.Equal(readFile(t, aside), want) {
		t.Errorf("keepAside = %q, %v, want a copy of the file", aside, err)
	}
}
