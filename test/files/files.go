// Package files writes the files and certificates of tests, runs commands on them, and compares texts with files of the tree.
package files

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag that makes Golden write its files.
var Update = flag.Bool("update", false, "write the files that tests compare with")

// Write writes a file in a temporary folder of the test.
func Write(t testing.TB, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Gzip returns a text compressed by gzip.
func Gzip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Golden compares a text with a file; with -update it writes the file.
func Golden(t testing.TB, path, now string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), now); diff != "" {
		t.Errorf("this has changed; if it should, run the test with -update (-%s +now):\n%s", path, diff)
	}
}
