package main

import (
	"bytes"
	"compress/gzip"
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

// tableFile writes a data file of n rows: two features and the class of the
// waveform problem.
func tableFile(t testing.TB, name string, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("x,y,label\n")
	w := dataset.NewWaveform(1)
	var row dataset.Row
	for range n {
		w.Next(&row)
		fmt.Fprintf(&b, "%v,%v,class%s\n", row.X[6], row.X[14], row.Label)
	}
	path := filepath.Join(t.TempDir(), name)
	data := []byte(b.String())
	if strings.HasSuffix(name, ".gz") {
		data = gzipped(t, data)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
