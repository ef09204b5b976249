package dataset

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"edge/internal/dataset/csvtext"
	"edge/online"
	"edge/stream/codec"
	"edge/stream/field"
)

// Row is one labelled sample of a data file.
type Row struct {
	Number int // 1, 2, 3, … in the order in which the rows are read
	X      []float64
	Label  string
}

// Lacking returns the number of features that the row lacks.
func (r *Row) Lacking() (n int) {
	for _, v := range r.X {
		if math.IsNaN(v) {
			n++
		}
	}
	return n
}

// Empty reports whether the row lacks every feature.
func (r *Row) Empty() bool { return r.Lacking() == len(r.X) }

// Rows is a source of samples. Next fills row, whose X it may reuse, and returns
// io.EOF after the last one.
type Rows interface {
	Next(row *Row) error
}

// File reads a CSV file row after row in bounded memory. The label may be any
// text; features are numbers, NaN for a missing one. The rows of a raw file are those of
// a stage, whose samples it makes.
type File struct {
	Name     string   // of the file, without folder, .gz and .csv
	Features []string // D names, in the order of a row's X
	Header   bool     // the first line names the columns

	path   string
	file   io.Closer
	csv    *csvtext.Reader
	names  []string // of the columns; nil: no header
	first  []string // line, to be returned by Next; nil: none
	roles  []int    // of each column: the index of a feature, ignored or label
	wanted bool     // the features are those of a model: none can be left out
	number int
	read   int      // rows of a raw file
	raw    *rawFile // makes samples of the rows; nil: each is one
	origin Origin   // of the latest row
	labels LabelWords
	begun  firstRow
	sign
	rising  rising
	fillers fillers
	telling telling
}

// sign is the decimal sign of the numbers.
type sign struct {
	decimal rune // 0: no number had a fraction so far
	fixed   bool // it was given
}

// firstRow is what messages need of the header and the first row.
type firstRow struct {
	unnamed int  // columns at the end of the header
	guessed bool // that it is no header
	last    bool // no flag names the label: it is the column called so, or the last one
	label   string
	again   bool // another row has the label
	leftOutTimes
}

// stdin is the name of standard input in messages.
const stdin = "standard input"

// Open opens path and reads its header.
func Open(path string, f Format) (*File, error) { return OpenInput(path, nil, f) }

// OpenInput opens path, or reads from in, if it is not nil, for the path "-".
func OpenInput(path string, in io.Reader, f Format) (*File, error) {
	from, file := in, io.NopCloser(in)
	if path == "-" && in != nil {
		path = stdin
	} else {
		opened, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("data file: %w", err)
		}
		from, file = opened, opened
	}
	if f.Idle != nil {
		from = csvtext.Live(from, f.Idle)
	}
	d, err := newFile(from, path, f)
	if err != nil {
		file.Close()
		return nil, err
	}
	d.file = file
	return d, nil
}

// newFile detects the format of r and reads its header. path is its name in error
// messages.
func newFile(r io.Reader, path string, f Format) (*File, error) {
	text, err := csvtext.NewReader(r, path, f.Separator, f.Header)
	if err != nil {
		return nil, err
	}
	f.Separator = text.Comma
	d := &File{Name: BaseName(path), Header: text.Header, path: path, csv: text, sign: sign{f.Decimal, f.Decimal != 0}, wanted: f.Features != nil, labels: f.Labels}
	d.begun.guessed, d.begun.last = f.Header != "no" && !d.Header, f.Label == "" && !f.Unlabeled
	width, err := d.begin()
	if err != nil {
		return nil, err
	}
	if line := text.TableLine; width == 1 && line > 1 {
		return nil, fmt.Errorf("%s:1: the line has one cell, and a table seems to begin in line %d: tail -n +%d FILE >FILE.csv drops the lines above", path, line, line)
	}
	if width > maxColumns {
		return nil, fmt.Errorf("%s:1: %d columns; at most %d are read: cut -d, -f1-500 FILE keeps the first 500 of a file with commas", path, width, maxColumns)
	}
	raw := false
	if f.Raw != nil {
		if raw, err = f.Raw.takes(path, d.names, f); err != nil {
			return nil, cmp.Or(d.longFormat(), err)
		}
	}
	if raw {
		err = d.beginRaw(f)
	} else {
		d.roles, d.Features, err = f.choose(path, d.names, width)
		if err != nil || f.Columns == nil && f.Ignore == nil && f.Features == nil { // no columns are chosen
			err = cmp.Or(d.longFormat(), err)
		}
		if err == nil {
			err = d.leaveOutTimes(f)
		}
	}
	return d, err
}

// BaseName returns the base name of path without .gz and .csv, as in File.Name.
func BaseName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
}

// Topic returns the topic on which replay publishes a file of this base name. Wildcards are
// replaced: nothing can be published on them.
func Topic(name string) string {
	return "sensors/" + strings.ReplaceAll(strings.ReplaceAll(name, "+", "-"), "#", "-")
}

// begin reads the first line, which has the names of the columns or, without a header, is kept
// for Next. It returns the number of columns: a separator at the end of the line begins none.
func (d *File) begin() (width int, err error) {
	first, err := d.csv.Read()
	if errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%s: the file is empty; want one sample a line, and a header line before them", d.path)
	}
	if err != nil {
		return 0, d.explain(err)
	}
	cells := withoutEnd(first, 1)
	if !d.Header {
		d.first = first
		return len(cells), nil
	}
	d.begun.unnamed = len(first) - len(cells)
	if d.csv.RowNames {
		d.names = []string{""}
	}
	for _, name := range cells {
		d.names = append(d.names, strings.TrimSpace(name))
	}
	return len(d.names), nil
}

// withoutEnd returns the cells of a line without empty ones at its end, at least the first n.
func withoutEnd(line []string, n int) []string {
	for len(line) > n && strings.TrimSpace(line[len(line)-1]) == "" {
		line = line[:len(line)-1]
	}
	return line
}

// Next reads the next row. A row that cannot be used is an error that names
// file, line and column: skipping it silently would change every score.
func (d *File) Next(row *Row) error {
	if d.raw != nil {
		return d.nextSample(row)
	}
	record, err := d.record()
	if err != nil {
		return err
	}
	row.X, row.Label = slices.Grow(row.X[:0], len(d.Features))[:len(d.Features)], ""
	for i, role := range d.roles {
		cell := strings.TrimSpace(record[i])
		switch {
		case role == ignored:
		case role == deviceRole:
			d.origin.Device = strings.Clone(cell)
		case role == label && unlabelled(cell):
		case role == label:
			if err := d.checkLabel(i, cell); err != nil {
				return err
			}
			class, err := d.labels.class(cell)
			if err != nil {
				return d.at(i, fmt.Sprintf("column %s: %v", d.column(i), err))
			}
			row.Label = strings.Clone(class)
		case csvtext.Missing(cell):
			row.X[role] = math.NaN()
		default:
			v, reason := d.value(cell)
			if reason != "" {
				return d.at(i, fmt.Sprintf("column %s: %s%s", d.column(i), reason, d.remedies(i, cell, record)))
			}
			row.X[role] = v
		}
	}
	d.rising.add(row.X)
	d.fillers.add(row.X)
	d.telling.add(row.X, row.Label)
	if d.number == 0 {
		d.begun.label = row.Label
	} else if !d.begun.again {
		d.begun.again = row.Label == d.begun.label
	}
	d.number++
	row.Number = d.number
	return nil
}

// dropNUL describes a line or cell with NUL bytes, and the remedy.
const dropNUL = `has NUL bytes, as a power cut leaves them in a file that is written: tr -d '\000' <FILE >FILE.csv drops them`

// dropHeaders is the command for files that were joined with their headers.
const dropHeaders = "awk 'NR==1 {h=$0} NR==1 || $0!=h' FILE >FILE.csv leaves such lines out"

// headerAgain returns the error for a line of a file of signals that has the name of the column of the times.
func (d *File) headerAgain(time int) error {
	return d.at(time, fmt.Sprintf("column %s: the header occurs again: the file has several tables; %s; of InfluxDB |> group() at the end of the query makes one of them", d.column(time), dropHeaders))
}

// record reads the cells of the next line that is no comment. Empty cells at its
// end, beyond the columns, are dropped.
func (d *File) record() ([]string, error) {
	for {
		record := d.first
		if d.first = nil; record == nil {
			var err error
			if record, err = d.csv.Read(); errors.Is(err, io.EOF) {
				return nil, io.EOF
			} else if err != nil {
				return nil, d.explain(err)
			}
		}
		record = withoutEnd(record, len(d.roles))
		switch {
		case len(record) == len(d.roles):
			return record, nil
		case strings.HasPrefix(record[0], "#"):
			continue
		}
		line, _ := d.csv.FieldPos(0)
		of := "header"
		if !d.Header {
			of = "first line"
		}
		if strings.ContainsRune(record[0], 0) {
			return nil, fmt.Errorf("%s:%d: the line %s", d.path, line, dropNUL)
		}
		remedy := fmt.Sprintf("; sed %dd FILE >FILE.csv leaves the line out", line)
		if table := d.tableBelow(); table != "" {
			remedy = table
		} else if d.number == 0 && d.read == 0 {
			remedy = "; --separator names another separator"
		}
		if number := d.splitNumber(record); number != "" {
			remedy = "; " + number + " looks like a number with a separator of thousands: write numbers without it"
		} else if d.begun.unnamed > 0 && d.number == 0 && len(record) == len(d.roles)+1 {
			remedy += "; the header has no name for the last one: name it, as label"
		} else if d.Header && d.number == 0 && len(record) == len(d.roles)+1 && (record[0] == "1" || strings.ContainsRune(" \t", d.csv.Comma)) {
			remedy += "; names of rows, as R writes them, are left out by row.names = FALSE of write.table"
		}
		return nil, fmt.Errorf("%s:%d: the line has another number of columns than the %s, which has %d: it has %d, separated by %s%s",
			d.path, line, of, len(d.roles), len(record), csvtext.SeparatorWord(d.csv.Comma), remedy)
	}
}

// Close closes the file. It is not inlined: many commands call it.
//
//go:noinline
func (d *File) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// column returns the name or number of a column for an error message.
func (d *File) column(i int) string {
	if d.names == nil {
		return strconv.Itoa(i + 1)
	}
	return field.Quote(d.names[i])
}

// flagWord returns the name or number of a column as a flag accepts it.
func (d *File) flagWord(i int) string {
	if d.names == nil || d.names[i] == "" || contains(d.names[:i], d.names[i]) || contains(d.names[i+1:], d.names[i]) || strings.ContainsAny(d.names[i], " ,\"'$`\\") || len(d.names[i]) > 40 {
		return strconv.Itoa(i + 1)
	}
	return d.names[i]
}

// at returns an error with the position of cell i of the current line.
func (d *File) at(i int, problem string) error {
	line, column := d.csv.FieldPos(i)
	return fmt.Errorf("%s:%d:%d: %s", d.path, line, column, problem)
}

// notUTF8 describes names and labels that a configuration and MQTT would change.
const notUTF8 = "which is not UTF-8: convert the file, if it is from Windows by iconv -f WINDOWS-1252 -t UTF-8"

// checkLabel returns an error for a label that is not UTF-8, or that no model takes.
func (d *File) checkLabel(at int, text string) error {
	switch {
	case !utf8.ValidString(text):
		return d.at(at, "the label is "+field.Quote(text)+", "+notUTF8)
	case isObject(text):
		return d.at(at, fmt.Sprintf("the label is an object of JSON: %s; --label names another column%s", field.Quote(text), d.fromObjects(at)))
	case len(text) > online.MaxLabel:
		return d.at(at, fmt.Sprintf("the label has %d bytes, and %d are possible: %s; --label names another column", len(text), online.MaxLabel, field.Quote(text)))
	case codec.HasControl(text):
		return d.at(at, "the label has a control character, which a daemon refuses: "+field.Quote(text)+": write it without; --label names another column")
	}
	return nil
}

// explain adds file and position to an error of the CSV reader.
func (d *File) explain(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		row := ""
		if parse.StartLine < parse.Line {
			row = fmt.Sprintf(", in a row that begins in line %d", parse.StartLine)
		}
		return fmt.Errorf("%s:%d:%d: %w%s; the cells are taken to be separated by %s: --separator names another one; within quotation marks a cell has two for each of its own", d.path, parse.Line, parse.Column, parse.Err, row, csvtext.SeparatorWord(d.csv.Comma))
	case errors.Is(err, csvtext.ErrTooLong):
		return fmt.Errorf("%s: after row %d: %w", d.path, d.number, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: after row %d: the packed file ends too early: copy it again: %w", d.path, d.number, err)
	}
	return fmt.Errorf("%s: %w", d.path, err)
}
