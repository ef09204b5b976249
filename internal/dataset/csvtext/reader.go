package csvtext

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
)

// MaxRecord bounds one line of a file, so that a file that is no table, or that opens a quote
// and never closes it, cannot fill the memory.
const MaxRecord = 4 << 20

// ErrTooLong occurs where a line has more than MaxRecord bytes.
var ErrTooLong = fmt.Errorf("a line is longer than %d MiB; is this a CSV file?", MaxRecord>>20)

// Reader reads the cells of a file, one line after the other. Comma is the separator, given
// or detected.
type Reader struct {
	*csv.Reader
	Header    bool // the first line names the columns
	RowNames  bool // the lines have names, for which the header has none
	TableLine int  // in which a table begins, as far as the first lines tell; 0: in none

	budget *recordLimit
}

// NewReader detects the dialect of r. A separator of 0 is the one that the lines have; header
// is yes, no, or anything else to detect whether the first line names the columns. path is the
// name of the file in errors, and a file of another format is one.
func NewReader(r io.Reader, path string, separator rune, header string) (*Reader, error) {
	text, start, err := openText(r, path)
	if err != nil {
		return nil, err
	}
	named, start := separatorLine(start)
	sep := cmp.Or(separator, named)
	if sep == 0 {
		sep = findSeparator(start)
	}
	budget := &recordLimit{r: text, left: MaxRecord}
	if sep == ' ' {
		budget.r, start = &blanks{r: text}, packed(start)
	}
	counts, comments := cellCounts(start, byte(sep))
	d := &Reader{Reader: newCSV(budget, sep, comments), TableLine: tableLine(start, sep), budget: budget}
	if named != 0 {
		_, _ = d.Reader.Read() // the line counts in the positions of errors; an error of r occurs again
	}
	d.Header = header == "yes" || header != "no" && hasHeader(start, sep, comments)
	d.RowNames = d.Header && namesRows(start, counts)
	return d, nil
}

// Read returns the cells of the next line, which are valid until the next call.
func (r *Reader) Read() ([]string, error) {
	r.budget.left = MaxRecord
	return r.Reader.Read()
}

// newCSV returns a reader of the cells of text.
func newCSV(text io.Reader, sep rune, comments bool) *csv.Reader {
	c := csv.NewReader(text)
	c.Comma = sep
	c.ReuseRecord = true
	c.FieldsPerRecord = -1
	c.TrimLeadingSpace = sep != '\t' && sep != ' ' // where trimming would drop empty cells
	if comments && sep != '#' {
		c.Comment = '#'
	}
	return c
}

// recordLimit returns an error once left bytes are read; Reader.Read resets left.
type recordLimit struct {
	r    io.Reader
	left int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, ErrTooLong
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
