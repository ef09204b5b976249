package harness

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/test/files"
)

// TableFile writes a data file of n rows: two features and the class of the
// waveform problem.
func TableFile(t testing.TB, name string, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("x,y,label\n")
	w := dataset.NewWaveform(1)
	var row dataset.Row
	for range n {
		w.Next(&row)
		fmt.Fprintf(&b, "%v,%v,class%s\n", row.X[6], row.X[14], row.Label)
	}
	text := b.String()
	if strings.HasSuffix(name, ".gz") {
		text = files.Gzip(t, text)
	}
	return files.Write(t, name, text)
}

// IdxFiles writes images of 2×2 pixels; the label is the brightest one.
func IdxFiles(t testing.TB, n int, zip bool) string {
	t.Helper()
	dir := t.TempDir()
	var images, labels bytes.Buffer
	binary.Write(&images, binary.BigEndian, []uint32{dataset.IdxImages, uint32(n), 2, 2})
	binary.Write(&labels, binary.BigEndian, []uint32{dataset.IdxLabels, uint32(n)})
	for i := range n {
		for p := range 4 {
			v := byte((i*37 + p*11) % 60)
			if p == i%4 {
				v += 150
			}
			images.WriteByte(v)
		}
		labels.WriteByte(byte(i % 4))
	}
	for name, b := range map[string]*bytes.Buffer{"t-images-idx3-ubyte": &images, "t-labels-idx1-ubyte": &labels} {
		text := b.String()
		if zip {
			text = files.Gzip(t, text)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "t-images-idx3-ubyte")
}
