package dataset

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Options are a Format and the flags that complete it. Call Check once they are
// parsed.
type Options struct {
	Format
	HeaderWord    string // yes, no or auto
	SeparatorWord string // one character, or its name; "": the one that the file has
	DecimalWord   string // point or comma; "": the one that the file has
	DeviceColumn  string // that of the device; "": in raw files one called device, if there is one
	Stream        string // whose signals the columns of raw files are; "": the one with signals

	warned map[string]bool // paths of files without a header
}

// Check validates the flags and sets the fields of Format.
func (d *Options) Check() error {
	switch d.HeaderWord {
	case "yes", "no":
		d.Header = Header(d.HeaderWord)
	case "auto":
		d.Header = HeaderAuto
	default:
		return fmt.Errorf("--header %s: want yes, no or auto", d.HeaderWord)
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
		return fmt.Errorf("--separator %q: want one character, such as ; or |, or tab", d.SeparatorWord)
	default:
		d.Separator = r
	}
	return nil
}

// Of returns the format of a file for a model with these features; with nil, for
// a model whose features are the columns.
func (d *Options) Of(features []string) Format {
	f := d.Format
	f.Features, f.Device = features, d.DeviceColumn
	return f
}

// Warn writes a warning, once for each file, that no header was detected.
func (d *Options) Warn(w io.Writer, path string, file *File) {
	if file.Header || d.HeaderWord != "auto" || d.warned[path] {
		return
	}
	if d.warned == nil {
		d.warned = map[string]bool{}
	}
	d.warned[path] = true
	fmt.Fprintf(w, "%s: the first line is taken for a sample, since it has numbers, and the features are called %s; --header yes if it names the columns\n",
		path, first(file.Features))
}

// first returns the first names of a list.
func first(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
