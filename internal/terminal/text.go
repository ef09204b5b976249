package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const boardText = 256 // bytes of a name, an id or a detail

// Plain makes of what others have published a text that is safe to print:
// bounded, and with what a terminal would obey escaped.
func Plain(s string) string {
	return Escaped(strings.ToValidUTF8(s[:min(len(s), boardText)], ""))
}

func PlainAll(list []string) []string {
	plain := make([]string, len(list))
	for i, s := range list {
		plain[i] = Plain(s)
	}
	return plain
}

// Writer passes text on with what a terminal would obey or not show written
// as an escape: control characters but newline and tab (C0 and C1), those that
// change the direction of text, and those without a width. Names of classes,
// topics and models come from elsewhere. An escape is one of JSON, too, so that
// JSON keeps its meaning. Each Write has to hold whole characters.
type Writer struct{ To io.Writer }

func (w Writer) Write(p []byte) (int, error) {
	if _, err := w.To.Write(appendEscaped(make([]byte, 0, len(p)), p, true)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Escaped returns a name as Writer would write it, newline and tab escaped, too.
func Escaped(s string) string { return string(appendEscaped(nil, []byte(s), false)) }

// appendEscaped appends text; layout says whether newline and tab stay.
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

// shown reports whether a terminal shows a character, and does nothing else.
func shown(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
