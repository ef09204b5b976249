package dataset

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"edge/online/train"
)

// Table is a whole data file in memory.
type Table struct {
	Name     string
	Features []string // D
	Classes  []string // sorted
	values   []float64
	pixels   []byte // instead of values, of a file in idx format
	width    int    // of an image
	Labels   []int  // index in Classes

	LeftOut int // rows of the file that are not in the table
}

// LoadTable reads a CSV file (gzip'd or not) or a file in the idx format, whose
// labels are in the file that goes by the same name with "labels-idx1" in
// place of "images-idx3". Rows without a label are left out.
func LoadTable(path string, f Format) (*Table, error) {
	if strings.Contains(filepath.Base(path), "idx3-ubyte") {
		return loadIdx(path)
	}
	d, err := Open(path, f)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	t := &Table{Name: d.Name, Features: d.Features}
	var row Row
	var words []string
	for {
		if err := d.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if row.Label == "" {
			t.LeftOut++
			continue
		}
		if len(t.values)+len(row.X) > maxValues {
			return nil, fmt.Errorf("%s: %w", path, errTooManyValues)
		}
		t.values = append(t.values, row.X...)
		words = append(words, row.Label)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%s: no row with a label", path)
	}
	t.Classes = slices.Compact(slices.Sorted(slices.Values(words)))
	if len(t.Classes) > maxClasses {
		return nil, tooManyClasses(path, f.Label)
	}
	for _, word := range words {
		k, _ := slices.BinarySearch(t.Classes, word)
		t.Labels = append(t.Labels, k)
	}
	return t, nil
}

// Samples returns some of the rows, to train on or to be judged by.
func (t *Table) Samples(rows []int) *Part { return &Part{Table: t, rows: rows} }

// All returns the numbers of all rows.
func (t *Table) All() []int {
	rows := make([]int, len(t.Labels))
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// Part is some rows of a table. It is an online.Samples.
type Part struct {
	Table   *Table
	rows    []int
	classes []int // of each row, in place of the table's; nil: the table's
}

var _ train.Samples = (*Part)(nil)

// Len is the number of rows.
func (p *Part) Len() int { return len(p.rows) }

// Row stores the features of a row in dst.
func (p *Part) Row(i int, dst []float64) {
	d, at := len(p.Table.Features), p.rows[i]
	if p.Table.pixels != nil {
		for j, v := range p.Table.pixels[at*d : (at+1)*d] {
			dst[j] = float64(v)
		}
		return
	}
	copy(dst, p.Table.values[at*d:(at+1)*d])
}

// Class is the class of a row.
func (p *Part) Class(i int) int {
	if p.classes != nil {
		return p.classes[i]
	}
	return p.Table.Labels[p.rows[i]]
}

// idx types: a byte for each value, one or three dimensions.
const (
	IdxLabels = 0x00000801
	IdxImages = 0x00000803
	maxPixels = 1 << 30 // of a file
)

// loadIdx reads images and their labels in LeCun's idx format.
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
	name, _, _ := strings.Cut(baseName(path), "-images-idx3")
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

// readIdx reads one file, gzip'd or not.
func readIdx(path string, kind uint32, dims int) (data []byte, sizes []int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("data file: %w", err)
	}
	defer f.Close()
	return decodeIdx(f, path, kind, dims)
}

// decodeIdx reads what readIdx does from a file that error messages call path.
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
	// What is there is read, and only as much as the header promised.
	data, err = io.ReadAll(io.LimitReader(r, int64(total)))
	if err == nil && len(data) < total {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, sizes, nil
}

// Shifted returns the images of p and, behind them, each moved by one pixel to
// the left, to the right, up and down; what moves in is 0.
func (p *Part) Shifted() (*Part, error) {
	from, d := p.Table, len(p.Table.Features)
	if from.pixels == nil {
		return nil, errors.New("images alone, files in the idx format, can be moved")
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

// Translate returns all rows, with classes numbered as in another table.
func (t *Table) Translate(classes []string) (*Part, error) {
	to := make([]int, len(t.Classes))
	for k, name := range t.Classes {
		if to[k] = slices.Index(classes, name); to[k] < 0 {
			return nil, fmt.Errorf("label %q does not occur in what is learnt", name)
		}
	}
	p := t.Samples(t.All())
	p.classes = make([]int, len(p.rows))
	for i := range p.classes {
		p.classes[i] = to[t.Labels[i]]
	}
	return p, nil
}

// Flip replaces a fraction of the labels by classes drawn uniformly from all.
func (p *Part) Flip(fraction float64, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	classes := make([]int, len(p.rows))
	for i := range classes {
		classes[i] = p.Class(i)
		if rng.Float64() < fraction {
			classes[i] = rng.IntN(len(p.Table.Classes))
		}
	}
	p.classes = classes
}

// NewTable returns a table with the labels of t and other features; values has
// them row by row.
func NewTable(t *Table, features []string, values []float64) *Table {
	return &Table{Name: t.Name, Classes: t.Classes, Labels: t.Labels, Features: features, values: values}
}

// Of returns the same rows of another table.
func (p *Part) Of(t *Table) *Part { return &Part{Table: t, rows: p.rows, classes: p.classes} }

// First returns the first n rows of p.
func (p *Part) First(n int) *Part { return &Part{Table: p.Table, rows: p.rows[:n], classes: p.classes} }
