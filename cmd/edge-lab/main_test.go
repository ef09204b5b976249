package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"edge/internal/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// edge runs a command line of the laboratory in this process.
func edge(t testing.TB, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = execute(t.Context(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// waveformFile writes n rows of the demo's sensors.
func waveformFile(t testing.TB, n int) string {
	t.Helper()
	w := dataset.NewWaveform(3)
	var b strings.Builder
	b.WriteString(strings.Join(w.Features(), ",") + ",label\n")
	var row dataset.Row
	for range n {
		w.Next(&row)
		for _, v := range row.X {
			fmt.Fprintf(&b, "%v,", v)
		}
		b.WriteString(row.Label + "\n")
	}
	return writeFile(t, "waveform.csv", b.String())
}

// writeFile writes a file into a folder of the test.
func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
