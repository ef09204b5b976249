package dataset

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// loadIdx reads images and their labels in LeCun's idx format. A feature is a
// pixel.
func loadIdx(path string) (*Table, error) {
	images, sizes, err := readIdx(path, IdxImages, 3)
	if err != nil {
		return nil, err
	}
	labelPath := filepath.Join(filepath.Dir(path), strings.Replace(filepath.Base(path), "images-idx3", "labels-idx1", 1))
	labels, counts, err := readIdx(labelPath, IdxLabels, 1)
	if err != nil {
		return nil, err
	}
	if sizes[0] != counts[0] {
		return nil, fmt.Errorf("%s has %d images, %s has %d labels", path, sizes[0], labelPath, counts[0])
	}
	name, _, _ := strings.Cut(BaseName(path), "-images-idx3")
	t := &Table{Name: name, pixels: images, width: sizes[2]}
	for i := range sizes[1] * sizes[2] {
		t.Features = append(t.Features, "p"+strconv.Itoa(i))
	}
	var seen [256]bool
	for _, v := range labels {
		seen[v] = true
	}
	var index [256]int
	for v, there := range seen {
		if there {
			index[v] = len(t.Classes)
			t.Classes = append(t.Classes, strconv.Itoa(v))
		}
	}
	for _, v := range labels {
		t.Labels = append(t.Labels, index[v])
	}
	return t, nil
}

// readIdx reads the values and the sizes of the dimensions of one file.
func readIdx(path string, kind uint32, dims int) (data []byte, sizes []int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("data file: %w", err)
	}
	defer f.Close()
	return decodeIdx(f, path, kind, dims)
}

// decodeIdx decodes an idx file, gzip'd or not. path is its name in error
// messages.
func decodeIdx(f io.Reader, path string, kind uint32, dims int) (data []byte, sizes []int, err error) {
	buf := bufio.NewReader(f)
	var r io.Reader = buf
	if magic, _ := buf.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(buf)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: gzip: %w", path, err)
		}
		r = z
	}
	header := make([]uint32, 1+dims)
	if err := binary.Read(r, binary.BigEndian, header); err != nil {
		return nil, nil, fmt.Errorf("%s: idx header: %w", path, err)
	}
	if header[0] != kind {
		return nil, nil, fmt.Errorf("%s: begins with %#08x, want %#08x: bytes in %d dimensions", path, header[0], kind, dims)
	}
	total := 1
	for _, n := range header[1:] {
		if n == 0 || n > maxPixels || total > maxPixels/int(n) {
			return nil, nil, fmt.Errorf("%s: sizes %v are out of range", path, header[1:])
		}
		total *= int(n)
		sizes = append(sizes, int(n))
	}
	// ReadAll allocates by the bytes that the file has, not by its header.
	data, err = io.ReadAll(io.LimitReader(r, int64(total)))
	if err == nil && len(data) < total {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, sizes, nil
}

// Shifted returns the images of p followed by each of them moved by one pixel to
// the left, to the right, up and down; pixels that enter are 0.
func (p *Part) Shifted() (*Part, error) {
	from, d := p.Table, len(p.Table.Features)
	if from.pixels == nil {
		return nil, errors.New("only images, files in the idx format, can be shifted")
	}
	by := [...]struct{ x, y int }{{}, {x: 1}, {x: -1}, {y: 1}, {y: -1}}
	t := &Table{Name: from.Name, Features: from.Features, Classes: from.Classes, width: from.width}
	t.pixels = make([]byte, 0, len(by)*len(p.rows)*d)
	for _, move := range by {
		for i, r := range p.rows {
			image := from.pixels[r*d : (r+1)*d]
			for j := range image {
				x, at := j%from.width+move.x, j+move.x+move.y*from.width
				var v byte
				if x >= 0 && x < from.width && at >= 0 && at < d {
					v = image[at]
				}
				t.pixels = append(t.pixels, v)
			}
			t.Labels = append(t.Labels, p.Class(i))
		}
	}
	return t.Samples(t.All()), nil
}

// Types of idx files: one byte a value, in one or three dimensions.
const (
	IdxLabels = 0x00000801
	IdxImages = 0x00000803
	maxPixels = 1 << 30 // of a file
)
