package field

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote quotes at most 40 bytes of a name, for an error message. A name with combining
// characters, such as e\u0301, has them escaped: é looks the same and is another name.
func Quote(name string) string {
	const most = 40
	quote, end := strconv.Quote, ""
	if strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Mn, r) }) {
		quote = strconv.QuoteToASCII
	}
	if len(name) > most {
		at := most
		for at > most-utf8.UTFMax && !utf8.RuneStart(name[at]) {
			at--
		}
		name, end = name[:at], "…"
	}
	return quote(name) + end
}
