package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const maxPlain = 256 // bytes of a name, an id or a detail

// Plain returns a received text in a form that is safe to print: cut to 256 bytes
// and escaped.
func Plain(s string) string {
	return Escaped(strings.ToValidUTF8(s[:min(len(s), maxPlain)], ""))
}

// PlainAll returns the Plain form of each text of a list.
func PlainAll(list []string) []string {
	plain := make([]string, len(list))
	for i, s := range list {
		plain[i] = Plain(s)
	}
	return plain
}

// Writer passes text on with every character escaped that a terminal interprets
// or does not show: control characters (C0 and C1) but newline and tab, those that
// change the direction of text, and those without a width. Received names of
// classes, topics and models can contain them. The escapes are those of JSON, so
// that JSON keeps its meaning. Each Write has to end at a character boundary.
type Writer struct{ To io.Writer }

// Write implements io.Writer.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := w.To.Write(appendEscaped(make([]byte, 0, len(p)), p, true)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Escaped returns s as Writer writes it, with newline and tab escaped as well.
func Escaped(s string) string { return string(appendEscaped(nil, []byte(s), false)) }

// appendEscaped appends the escaped text; layout keeps newline and tab.
func appendEscaped(dst, text []byte, layout bool) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\x%02x`, text[0])
		case layout && (r == '\n' || r == '\t'), shown(r):
			dst = append(dst, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		text = text[size:]
	}
	return dst
}

// shown reports whether a terminal displays a character without further effect.
func shown(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
