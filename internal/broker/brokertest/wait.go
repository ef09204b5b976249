package brokertest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Patience bounds every wait of these tests. No test passes by reaching it: on a
// loaded machine an operation of milliseconds can take a minute. TestMain sets it
// to a fifth of -timeout if that is longer.
var Patience = 2 * time.Minute

// Missing skips a test that lacks a prerequisite, and fails it in CI.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Eventually reports whether ok becomes true within Patience.
func Eventually(ok func() bool) bool {
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

// Brief returns the size of a test: whole with the build tag slow, less without it
// and with -short, which is for emulated processors.
func Brief(whole, less int) int {
	if testing.Short() || !Slow {
		return less
	}
	return whole
}

// writeFile writes a file in a folder of the test's own.
func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
