package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"edge/model"
	"edge/stream/field"
)

// Summary is the result of one pass over a file.
type Summary struct {
	Rows    int
	Classes []string // sorted
	Runs    int      // of rows with one label
	Gaps    int      // rows that lack a feature or a label
	Lacking int      // rows that lack a feature
	Empty   int      // rows that lack every feature
	Raw     bool     // the file has signals; Rows are the samples made of them
	Tally   Tally    // of a raw file
	Warning string   // File.Warning, and one about the classes
}

// ErrNoSample occurs where the rows of a raw file complete no sample.
var ErrNoSample = errors.New("no sample")

// maxClasses bounds the classes of a file, as a model's.
const maxClasses = model.MaxClasses

// ReadTwice returns an error for a pipe, whose second reading would find nothing.
func ReadTwice(path string) error {
	info, err := os.Stat(path)
	if err != nil && path != "-" || err == nil && (info.Mode().IsRegular() || info.IsDir()) {
		return nil // a missing file fails when it is opened
	}
	if path == "-" {
		path = stdin
	}
	return fmt.Errorf("%s is no file, and is read twice: write it to a file first", path)
}

// Try opens a file that will be read later, and returns the error of that. It leaves a pipe
// alone, which is an error if the file is read twice.
func Try(path string, f Format, twice bool) error {
	if err := ReadTwice(path); err != nil {
		if !twice {
			err = nil
		}
		return err
	}
	if isIdx(path) && !twice {
		_, err := os.Stat(path)
		return err
	}
	d, err := Open(path, f)
	if err != nil {
		return err
	}
	return d.Close()
}

// Summarize counts the rows of a file and collects its labels, before it is read again. Once ctx ends
// it returns the error of ctx.
func Summarize(ctx context.Context, path string, f Format) (Summary, error) {
	if err := ReadTwice(path); err != nil {
		return Summary{}, err
	}
	d, err := Open(path, f)
	if err != nil {
		return Summary{}, err
	}
	defer d.Close()
	var s Summary
	var row Row
	seen, last := map[string]bool{}, ""
	for {
		err := d.Next(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return Summary{}, err
		}
		lacks := slices.ContainsFunc(row.X, math.IsNaN)
		if lacks {
			s.Lacking++
		}
		if lacks || row.Label == "" {
			s.Gaps++
		}
		if row.Empty() {
			s.Empty++
		}
		if row.Label == "" {
			continue
		}
		if seen[row.Label] = true; len(seen) > maxClasses {
			return Summary{}, d.tooManyClasses()
		}
		if row.Label != last {
			last = row.Label
			s.Runs++
		}
	}
	if err := d.NoRows(); err != nil {
		return Summary{}, err
	}
	s.Rows, s.Classes, s.Raw, s.Tally = d.number, field.Names(seen), d.Raw(), d.Tally()
	s.Warning = both(d.labelWarning(d.number, s.Classes), both(d.Warning(), alike(s.Classes)))
	return s, nil
}

// NoRows returns the error of a file that has ended without a row; nil for another one.
func (d *File) NoRows() error {
	switch {
	case d.number > 0:
		return nil
	case d.raw != nil && d.read > 0:
		return fmt.Errorf("%s: %w: %s", d.path, ErrNoSample, d.Tally())
	}
	return fmt.Errorf("%s: a header and no rows", d.path)
}

func (d *File) tooManyClasses() error {
	column := "label of the samples"
	if at := slices.Index(d.roles, label); at >= 0 {
		column = "column " + d.column(at)
	}
	return fmt.Errorf("%s: more than %d different labels, and a model can have no more classes; is the label really the %s? --label NAME names another column", d.path, maxClasses, column)
}
