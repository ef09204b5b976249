package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Row is one labelled sample of a data file.
type Row struct {
	Number int // 1, 2, 3, … in the order in which the rows are taught
	X      []float64
	Label  string
}

// Rows is where samples come from. Next fills row, whose X it may reuse, and
// returns io.EOF after the last one.
type Rows interface {
	Next(row *Row) error
}

// maxRecord bounds one line of a data file, so that a file that is no table
// (or that opens a quote and never closes it) cannot fill the memory.
const maxRecord = 4 << 20

// File reads a CSV file with a header line, gzip'd or not, row after row in
// bounded memory. The label is the last column or a named one and may be any
// text; all other columns are features.
type File struct {
	Name     string   // of the file, without folder, .gz and .csv
	Features []string // D names, in the order of the columns
	Gaps     bool     // an empty cell is a feature that is missing (NaN) or no label (""); else it is an error

	path   string
	file   io.Closer
	budget *recordLimit
	csv    *csv.Reader
	label  int    // column; −1: none
	unread []bool // features that nobody wants; nil: all are read
	number int
}

// Open opens path and reads its header; label names the label's column,
// "" is the last one.
func Open(path, label string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data file: %w", err)
	}
	d, err := newFile(f, path, label)
	if err != nil {
		f.Close()
		return nil, err
	}
	d.file = f
	return d, nil
}

// OpenUnlabelled opens path, or takes in for -, to be predicted: nothing but the
// columns that use names has to be a number, cells may be empty, and there is
// no label unless a column is named for it.
func OpenUnlabelled(path string, in io.Reader, label string) (*File, error) {
	file := io.NopCloser(in)
	if path == "-" {
		path = "standard input"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("data file: %w", err)
		}
		file = f
	}
	d, err := startFile(file, path)
	if err == nil {
		err = d.header(label, noLabel)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	d.file, d.Gaps = file, true
	return d, nil
}

// Use leaves all columns but these features unread.
func (d *File) Use(features []int) {
	d.unread = make([]bool, len(d.Features))
	for i := range d.unread {
		d.unread[i] = !slices.Contains(features, i)
	}
}

// newFile reads the header of r, which error messages call path.
func newFile(r io.Reader, path, label string) (*File, error) {
	d, err := startFile(r, path)
	if err != nil {
		return nil, err
	}
	return d, d.header(label, lastColumn)
}

// startFile unpacks r.
func startFile(r io.Reader, path string) (*File, error) {
	buf := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := buf.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buf)
		if err != nil {
			return nil, fmt.Errorf("%s: gzip: %w", path, err)
		}
		buf = bufio.NewReaderSize(z, 64<<10)
	}
	if bom, _ := buf.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		buf.Discard(3)
	}
	d := &File{Name: baseName(path), path: path, budget: &recordLimit{r: buf, left: maxRecord}}
	d.csv = csv.NewReader(d.budget)
	d.csv.ReuseRecord = true
	d.csv.TrimLeadingSpace = true
	return d, nil
}

// baseName is the base name of path without its endings.
func baseName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
}

// Where the label is if no column is named for it.
const (
	lastColumn = iota
	noLabel
)

// header reads the names of the columns.
func (d *File) header(label string, otherwise int) error {
	names, err := d.csv.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file is empty; want a header line, then one sample a line", d.path)
	}
	if err != nil {
		return d.explain(err)
	}
	names = slices.Clone(names)
	if len(names) < 2 && otherwise == lastColumn {
		return fmt.Errorf("%s:1: one column only; want at least one feature and a label, separated by commas", d.path)
	}
	seen := make(map[string]bool, len(names))
	numbers := 0
	for i, name := range names {
		name = strings.TrimSpace(name)
		names[i] = name
		if name == "" {
			return fmt.Errorf("%s:1: column %d has no name", d.path, i+1)
		}
		if seen[name] {
			return fmt.Errorf("%s:1: two columns are called %q", d.path, name)
		}
		seen[name] = true
		if _, err := strconv.ParseFloat(name, 64); err == nil {
			numbers++
		}
	}
	if numbers >= len(names)-1 {
		return fmt.Errorf("%s:1: the first line holds numbers; it has to be a header that names the columns", d.path)
	}
	d.label = len(names) - 1
	if label == "" && otherwise == noLabel {
		d.label, d.Features = -1, names
		return nil
	}
	if label != "" {
		if d.label = slices.Index(names, label); d.label < 0 {
			return fmt.Errorf("%s:1: no column is called %q; --label takes one of: %s", d.path, label, strings.Join(names, ", "))
		}
	}
	d.Features = slices.Delete(names, d.label, d.label+1)
	return nil
}

// Columns returns which columns of d are the named features.
func (d *File) Columns(features []string) ([]int, error) {
	pick := make([]int, len(features))
	var missing []string
	for i, name := range features {
		if pick[i] = slices.Index(d.Features, name); pick[i] < 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: the model has features that are no columns of the file: %s; the columns are %s",
			d.path, strings.Join(missing, ", "), strings.Join(d.Features, ", "))
	}
	return pick, nil
}

// Next reads the next row. A row that cannot be used is an error that names
// file, line and column: skipping it silently would change every score.
func (d *File) Next(row *Row) error {
	d.budget.left = maxRecord
	record, err := d.csv.Read()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return d.explain(err)
	}
	row.X, row.Label = row.X[:0], ""
	for i, field := range record {
		field = strings.TrimSpace(field)
		if field == "" && !d.Gaps {
			return d.at(i, fmt.Sprintf("column %q is empty: fill it or drop the row; edge replay and edge predict take rows with empty cells, and so does edge eval --on-missing impute or marginalise", d.column(i)))
		}
		if i == d.label {
			row.Label = strings.Clone(field)
			continue
		}
		if field == "" || d.unread != nil && d.unread[len(row.X)] {
			row.X = append(row.X, math.NaN())
			continue
		}
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return d.at(i, fmt.Sprintf("column %q: %s is not a finite number", d.column(i), shorten(field)))
		}
		row.X = append(row.X, v)
	}
	d.number++
	row.Number = d.number
	return nil
}

// Close closes the file.
func (d *File) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

func (d *File) column(i int) string {
	switch {
	case i == d.label:
		return "label"
	case d.label >= 0 && i > d.label:
		i--
	}
	return d.Features[i]
}

func (d *File) at(field int, problem string) error {
	line, column := d.csv.FieldPos(field)
	return fmt.Errorf("%s:%d:%d: %s", d.path, line, column, problem)
}

// explain adds the file, and the way out, to an error of the reader below.
func (d *File) explain(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &parse):
		return fmt.Errorf("%s:%d: the line has another number of columns than the header, which has %d", d.path, parse.Line, d.csv.FieldsPerRecord)
	case errors.As(err, &parse):
		return fmt.Errorf("%s:%d:%d: %w", d.path, parse.Line, parse.Column, parse.Err)
	case errors.Is(err, errRecordTooLong):
		line, _ := d.csv.FieldPos(0)
		return fmt.Errorf("%s: after line %d: %w", d.path, line, err)
	}
	return fmt.Errorf("%s: %w", d.path, err)
}

// shorten quotes a field for an error message.
func shorten(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

var errRecordTooLong = fmt.Errorf("a line is longer than %d MiB; is this a CSV file?", maxRecord>>20)

// recordLimit refuses to read more than left bytes; Next refills it.
type recordLimit struct {
	r    io.Reader
	left int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errRecordTooLong
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// Selection says which rows of a file are taught, and in which order.
type Selection struct {
	First   int     // at most so many; 0: all
	Shuffle *uint64 // seed of a permutation of the whole file; nil: in file order
	Within  []int   // sizes of consecutive batches that are each shuffled in themselves; nil: no batches
}

// Of returns the selected rows of d. Without a shuffle they are read as they
// are needed; with one, the whole file is held in memory.
func (s Selection) Of(d *File) (Rows, error) {
	var rows Rows = d
	if s.Shuffle != nil {
		all, err := ReadAll(d)
		if err != nil {
			return nil, err
		}
		batches := []int{len(all)}
		if s.Within != nil {
			batches = s.Within
			sum := 0
			for _, n := range batches {
				sum += n
			}
			if sum != len(all) {
				return nil, fmt.Errorf("%s: the batch sizes add up to %d rows, the file has %d", d.path, sum, len(all))
			}
		}
		rng := rand.New(rand.NewPCG(*s.Shuffle, 0))
		rest := all
		for _, n := range batches {
			batch := rest[:n]
			rest = rest[n:]
			rng.Shuffle(n, func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		}
		rows = &heldRows{rows: all}
	}
	if s.First > 0 {
		rows = &firstRows{Rows: rows, left: s.First}
	}
	return rows, nil
}

// ReadAll reads what is left of rows.
func ReadAll(rows Rows) ([]Row, error) {
	var all []Row
	for {
		var row Row
		err := rows.Next(&row)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
}

// heldRows gives rows that are in memory, numbered in their order.
type heldRows struct {
	rows []Row
	next int
}

func (h *heldRows) Next(row *Row) error {
	if h.next == len(h.rows) {
		return io.EOF
	}
	from := &h.rows[h.next]
	h.next++
	row.Number, row.X, row.Label = h.next, append(row.X[:0], from.X...), from.Label
	return nil
}

// firstRows ends a stream of rows early.
type firstRows struct {
	Rows
	left int
}

func (f *firstRows) Next(row *Row) error {
	if f.left == 0 {
		return io.EOF
	}
	f.left--
	return f.Rows.Next(row)
}

// Census is what one pass over a file finds out.
type Census struct {
	Rows    int
	Classes []string // sorted
	Gaps    int      // rows that lack a feature or a label
}

// maxClasses bounds what a census remembers: more classes than any model may have.
const maxClasses = 1000

// TakeCensus counts the rows of a file and collects its labels.
func TakeCensus(path, label string) (Census, error) {
	d, err := Open(path, label)
	if err != nil {
		return Census{}, err
	}
	defer d.Close()
	d.Gaps = true
	seen, gaps := map[string]bool{}, 0
	var row Row
	for {
		err := d.Next(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Census{}, err
		}
		if row.Label == "" || slices.ContainsFunc(row.X, math.IsNaN) {
			gaps++
		}
		if row.Label == "" {
			continue
		}
		if seen[row.Label] = true; len(seen) > maxClasses {
			return Census{}, fmt.Errorf("%s: more than %d different labels; is the label really the %s? --label NAME names another column",
				path, maxClasses, labelWords(label))
		}
	}
	if d.number == 0 {
		return Census{}, fmt.Errorf("%s: a header and no rows", path)
	}
	c := Census{Rows: d.number, Gaps: gaps}
	for class := range seen {
		c.Classes = append(c.Classes, class)
	}
	slices.Sort(c.Classes)
	return c, nil
}

func labelWords(label string) string {
	if label == "" {
		return "last column"
	}
	return "column " + strconv.Quote(label)
}
