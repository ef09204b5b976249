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
	SeparatorWord string // one character, or its name; "": the one that the file has
	DecimalWord   string // point or comma; "": the one that the file has
	DeviceColumn  string // that of the device; "": in raw files one called device, if there is one
	TimeColumn    string // that of the times; "": in raw files that of the stream, or one of timeColumns
	Stream        string // whose signals the columns of raw files are; "": the one with signals

	warned map[string]bool // paths of files that Warn has written of
}

// Check validates the flags and sets the fields of Format.
func (o *Options) Check() error {
	if !contains([]string{"", "yes", "no", "auto"}, o.Header) {
		return fmt.Errorf("--header %s: want yes, no or auto", o.Header)
	}
	switch o.DecimalWord {
	case "":
	case "point", ".":
		o.Decimal = '.'
	case "comma", ",":
		o.Decimal = ','
	default:
		return fmt.Errorf("--decimal %s: want point or comma", o.DecimalWord)
	}
	named := map[string]rune{"tab": '\t', `\t`: '\t', "comma": ',', "semicolon": ';', "pipe": '|', "space": ' '}
	r, size := utf8.DecodeRuneInString(o.SeparatorWord)
	switch {
	case o.SeparatorWord == "":
	case named[strings.ToLower(o.SeparatorWord)] != 0:
		o.Separator = named[strings.ToLower(o.SeparatorWord)]
	case size != len(o.SeparatorWord) || r >= utf8.RuneSelf || strings.ContainsRune("\"\r\n\x00#.+-", r) || r >= '0' && r <= '9':
		return fmt.Errorf("--separator %q: want one character, such as ; or |, or tab, or space", o.SeparatorWord)
	default:
		o.Separator = r
	}
	return nil
}

// Of returns the format of a file for a model with these features; with nil, for
// a model whose features are the columns. It is not inlined: many commands call it.
//
//go:noinline
func (o *Options) Of(features []string) Format {
	f := o.Format
	f.Features, f.Device, f.Time = features, o.DeviceColumn, o.TimeColumn
	return f
}

// Warn writes the warning about a file (File.Warning), once for each file.
func (o *Options) Warn(w io.Writer, path, warning string) {
	if warning == "" || o.warned[path] {
		return
	}
	if o.warned == nil {
		o.warned = map[string]bool{}
	}
	o.warned[path] = true
	if path == "-" {
		path = stdin
	}
	fmt.Fprintf(w, "%s: %s\n", path, warning)
}
