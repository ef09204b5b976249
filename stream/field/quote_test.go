package field

import (
	"strings"
	"testing"
)

// A long name is cut between two characters; a byte that is not UTF-8 shows.
func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"Wärme":                          `"Wärme"`,
		"W\xe4rme":                       `"W\xe4rme"`,
		"e\u0301":                        `"e\u0301"`,
		strings.Repeat("ä", 20):          `"` + strings.Repeat("ä", 20) + `"`,
		"x" + strings.Repeat("ä", 20):    `"x` + strings.Repeat("ä", 19) + `"…`,
		strings.Repeat("x", 38) + "日本":   `"` + strings.Repeat("x", 38) + `"…`,
		strings.Repeat("\xe4", 41):       `"` + strings.Repeat(`\xe4`, 40) + `"…`,
		strings.Repeat("x", 40) + "\x80": `"` + strings.Repeat("x", 39) + `"…`,
	} {
		if got := Quote(name); got != want {
			t.Errorf("Quote(%q) = %s, want %s", name, got, want)
		}
	}
}
