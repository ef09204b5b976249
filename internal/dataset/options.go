package dataset

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"edge/stream/field"
)

// Options are a Format and the flags that complete it. Call Check once they are
// parsed.
type Options struct {
	Format
	SeparatorWord string // one character, or its name; "": the one that the file has
	DecimalWord   string // point or comma; "": the one that the file has
	DeviceColumn  string // that of the device; "": in raw files one called device, if there is one
	TimeColumn    string // that of the times; "": in raw files that of the stream, or one of timeColumns
	Stream        string // whose signals the columns of raw files are; "": the one with signals

	warned map[string]bool // paths of files that Warn has written of
}

// Check validates the flags and sets the fields of Format.
func (d *Options) Check() error {
	if !slices.Contains([]string{"", "yes", "no", "auto"}, d.Header) {
		return fmt.Errorf("--header %s: want yes, no or auto", d.Header)
	}
	switch d.DecimalWord {
	case "":
	case "point", ".":
		d.Decimal = '.'
	case "comma", ",":
		d.Decimal = ','
	default:
		return fmt.Errorf("--decimal %s: want point or comma", d.DecimalWord)
	}
	named := map[string]rune{"tab": '\t', `\t`: '\t', "comma": ',', "semicolon": ';', "pipe": '|', "space": ' '}
	r, size := utf8.DecodeRuneInString(d.SeparatorWord)
	switch {
	case d.SeparatorWord == "":
	case named[strings.ToLower(d.SeparatorWord)] != 0:
		d.Separator = named[strings.ToLower(d.SeparatorWord)]
	case size != len(d.SeparatorWord) || r >= utf8.RuneSelf || strings.ContainsRune("\"\r\n\x00#.+-", r) || r >= '0' && r <= '9':
		return fmt.Errorf("--separator %q: want one character, such as ; or |, or tab, or space", d.SeparatorWord)
	default:
		d.Separator = r
	}
	return nil
}

// Of returns the format of a file for a model with these features; with nil, for
// a model whose features are the columns.
func (d *Options) Of(features []string) Format {
	f := d.Format
	f.Features, f.Device, f.Time = features, d.DeviceColumn, d.TimeColumn
	return f
}

// Warn writes the doubt about a file (File.Doubt), once for each file.
func (d *Options) Warn(w io.Writer, path, doubt string) {
	if doubt == "" || d.warned[path] {
		return
	}
	if d.warned == nil {
		d.warned = map[string]bool{}
	}
	d.warned[path] = true
	if path == "-" {
		path = stdin
	}
	fmt.Fprintf(w, "%s: %s\n", path, doubt)
}

// Doubt describes what a user should check: that the first line is taken for a sample, although
// no flag has it, that columns are taken for a model's features by their order, that a feature
// rises with every row, and that a value seems to stand for a missing one; "" otherwise. It knows of
// the rows that Next has read.
func (d *File) Doubt() string { return both(d.guesses(), both(d.risingDoubt(), d.fillerDoubt())) }

// both returns two doubts, either of which may be "", as one.
func both(a, b string) string { return strings.Trim(a+"; "+b, "; ") }

// manyLabels describes labels that are hardly classes, in a column of the file which no
// flag made the label; "" for others. rows is the number of rows.
func (d *File) manyLabels(rows int, classes []string) string {
	const few, fewRows = 10, 20
	fractions := 0
	for _, class := range classes {
		if _, err := strconv.ParseFloat(class, 64); err == nil && strings.ContainsRune(class, '.') {
			fractions++
		}
	}
	if !d.begun.last || d.raw != nil || len(classes) <= few || rows < fewRows || 2*len(classes) <= rows && 2*fractions <= len(classes) {
		return ""
	}
	return fmt.Sprintf("column %s is taken for the label, and has %d different values in %d rows: --label names another", d.column(slices.Index(d.roles, label)), len(classes), rows)
}

// guesses describes what a file was taken for without a flag.
func (d *File) guesses() string {
	ordered := false
	for i, role := range d.roles {
		ordered = ordered || d.wanted && d.raw == nil && role >= 0 && (d.names == nil || d.names[i] != d.Features[role])
	}
	columns := "the features are called " + first(d.Features)
	if ordered {
		columns = fmt.Sprintf("the columns are taken for the features %s in this order", first(d.Features))
	}
	switch {
	case d.begun.guessed:
	case ordered:
		return columns
	default:
		return ""
	}
	alone := ""
	if d.number > 1 && d.begun.label != "" && !d.begun.again {
		alone = "; no other line has its label " + field.Quote(d.begun.label)
	}
	return "the first line is taken for a sample, since it has numbers, and " + columns + alone + "; --header yes if it names the columns"
}

// first returns the first names of a list.
func first(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
