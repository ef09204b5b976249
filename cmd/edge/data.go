package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"edge/cmd/edge/internal/dataset"
)

// dataFlags are the format of a data file and the meaning of its columns. Every
// command that reads one has the same flags.
type dataFlags struct {
	dataset.Format
	header, separator, decimal string

	warned map[string]bool // files without a header, by their paths
}

// add adds the flags; labelled is what becomes of the label.
func (d *dataFlags) add(cmd *cobra.Command, labelled string) {
	f := cmd.Flags()
	f.StringVar(&d.Label, "label", "", labelled)
	f.StringSliceVar(&d.Columns, "columns", nil, "the features: `NAMES` or numbers of columns, such as a,b or 2-9 (default all but the label)")
	f.StringSliceVar(&d.Ignore, "ignore", nil, "`NAMES` or numbers of columns that are left out")
	f.StringVar(&d.separator, "separator", "", "`CHARACTER` between the cells: , ; | or tab (default the one that the file has)")
	f.StringVar(&d.decimal, "decimal", "", "decimal sign, `point` or comma (default the one that the file has)")
	f.StringVar(&d.header, "header", "auto", "whether the first line names the columns: yes, no or auto")
}

// check completes the format once the flags are parsed.
func (d *dataFlags) check() error {
	switch d.header {
	case "yes", "no":
		d.Header = dataset.Header(d.header)
	case "auto":
		d.Header = dataset.HeaderAuto
	default:
		return coded(exitUsage, fmt.Errorf("--header %s: want yes, no or auto", d.header))
	}
	switch d.decimal {
	case "":
	case "point", ".":
		d.Decimal = '.'
	case "comma", ",":
		d.Decimal = ','
	default:
		return coded(exitUsage, fmt.Errorf("--decimal %s: want point or comma", d.decimal))
	}
	named := map[string]rune{"tab": '\t', `\t`: '\t', "comma": ',', "semicolon": ';', "pipe": '|', "space": ' '}
	r, size := utf8.DecodeRuneInString(d.separator)
	switch {
	case d.separator == "":
	case named[strings.ToLower(d.separator)] != 0:
		d.Separator = named[strings.ToLower(d.separator)]
	case size != len(d.separator) || r >= utf8.RuneSelf || strings.ContainsRune("\"\r\n\x00#.+-", r) || r >= '0' && r <= '9':
		return coded(exitUsage, fmt.Errorf("--separator %q: want one character, such as ; or |, or tab", d.separator))
	default:
		d.Separator = r
	}
	return nil
}

// of is the format of a file whose columns are these features of a model; nil: of
// a file whose columns are the features.
func (d *dataFlags) of(features []string) dataset.Format {
	f := d.Format
	f.Features = features
	return f
}

// warn writes, once for each file, that no header was found.
func (d *dataFlags) warn(w io.Writer, path string, file *dataset.File) {
	if file.Header || d.header != "auto" || d.warned[path] {
		return
	}
	if d.warned == nil {
		d.warned = map[string]bool{}
	}
	d.warned[path] = true
	fmt.Fprintf(w, "%s: the first line is taken for a sample, since it has numbers, and the features are called %s; --header yes if it names the columns\n",
		path, first(file.Features))
}

// first writes the first names of a list.
func first(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// errNoRows occurs where no row is left to judge or to learn.
var errNoRows = errors.New("every row lacks a label, or features that on_missing: reject asks for: --on-missing marginalise takes rows with some of them")
