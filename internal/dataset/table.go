package dataset

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"edge/stream/field"
)

// Table is a data file in memory: N rows of D features.
type Table struct {
	Name     string
	Features []string // D
	Classes  []string // sorted
	Labels   []int    // N indices in Classes
	LeftOut  int      // rows of the file that are not in the table
	Origins  []Origin // N, of a raw file or one with a column of devices; else nil
	Raw      bool     // the file has signals, of which the rows are made
	Tally    Tally    // of a raw file
	Warning  string   // File.Warning, and one about the classes

	values []float64 // N×D
	pixels []byte    // N×D, in place of values, of a file in the idx format
	width  int       // of an image
}

// isIdx reports whether a file has the idx format, by its name.
func isIdx(path string) bool { return strings.Contains(filepath.Base(path), "idx3-ubyte") }

// LoadTable reads a CSV file (gzip'd or not) or a file in the idx format, whose
// labels are in the file with "labels-idx1" in its name in place of
// "images-idx3"; - is a CSV file at the standard input. Rows without a label are left out.
func LoadTable(path string, f Format) (*Table, error) {
	if isIdx(path) {
		return loadIdx(path)
	}
	d, err := OpenInput(path, os.Stdin, f)
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
		if d.raw != nil || slices.Contains(d.roles, deviceRole) {
			t.Origins = append(t.Origins, d.origin)
		}
	}
	t.Raw, t.Tally = d.Raw(), d.Tally()
	if len(words) == 0 {
		if err := d.NoRows(); err != nil {
			return nil, err
		}
		if d.raw != nil {
			return nil, t.Tally.Unlabelled(path)
		}
		return nil, fmt.Errorf("%s: no row with a label", path)
	}
	t.Classes = field.Distinct(words)
	if len(t.Classes) > maxClasses {
		return nil, d.tooManyClasses()
	}
	t.Warning = both(d.labelWarning(len(words), t.Classes), both(d.Warning(), alike(t.Classes)))
	for _, word := range words {
		k, _ := slices.BinarySearch(t.Classes, word)
		t.Labels = append(t.Labels, k)
	}
	return t, nil
}

// Samples returns the rows of these numbers, from 0.
func (t *Table) Samples(rows []int) *Part { return &Part{Table: t, rows: rows} }

// All returns the numbers of all rows.
func (t *Table) All() []int {
	rows := make([]int, len(t.Labels))
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// Part is a selection of rows of a table, in the form that offline training takes.
type Part struct {
	Table   *Table
	rows    []int
	classes []int // of each row, in place of the table's; nil: the table's
}

// Len returns the number of rows.
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

// Class returns the class of a row.
func (p *Part) Class(i int) int {
	if p.classes != nil {
		return p.classes[i]
	}
	return p.Table.Labels[p.rows[i]]
}

// Translate returns all rows, with classes numbered as in another table.
func (t *Table) Translate(classes []string) (*Part, error) {
	to := make([]int, len(t.Classes))
	for k, name := range t.Classes {
		if to[k] = indexOf(classes, name); to[k] < 0 {
			return nil, fmt.Errorf("label %q does not occur in the training set", name)
		}
	}
	p := t.Samples(t.All())
	p.classes = make([]int, len(p.rows))
	for i := range p.classes {
		p.classes[i] = to[t.Labels[i]]
	}
	return p, nil
}

// Flip replaces a fraction of the labels by classes drawn uniformly from all
// classes.
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
	return &Table{Name: t.Name, Classes: t.Classes, Labels: t.Labels, Origins: t.Origins, Features: features, values: values}
}

// Of returns the same rows of another table.
func (p *Part) Of(t *Table) *Part { return &Part{Table: t, rows: p.rows, classes: p.classes} }

// First returns the first n rows of p.
func (p *Part) First(n int) *Part { return &Part{Table: p.Table, rows: p.rows[:n], classes: p.classes} }
