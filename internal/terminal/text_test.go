package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"
)

func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"läuft 正常 ✓ é":                      "läuft 正常 ✓ é",
		`back\slash "quoted"`:               `back\slash "quoted"`,
		"a\x1b[31mred\x07\x7f\r\x00":        `a\u001b[31mred\u0007\u007f\u000d\u0000`,
		"c1 \u009b31m \u0085":               `c1 \u009b31m \u0085`,
		"raw \x9b31m":                       `raw \x9b31m`,
		"\u202aa\u202bb\u202cc\u202d\u202e": `\u202aa\u202bb\u202cc\u202d\u202e`,
		"\u2066a\u2067b\u2068c\u2069":       `\u2066a\u2067b\u2068c\u2069`,
		"\u200e\u200f\u061c":                `\u200e\u200f\u061c`,
		"o\u200bk\u200c\u200d\u2060\ufeff":  `o\u200bk\u200c\u200d\u2060\ufeff`,
		"\u00ad\u034f\u3164\ufe0f":          `\u00ad\u034f\u3164\ufe0f`,
		"tag \U000e0041":                    `tag \udb40\udc41`,
		"two\nlines\tand a tab":             `two\u000alines\u0009and a tab`,
		"line\u2028and\u2029paragraph":      `line\u2028and\u2029paragraph`,
		"no-break\u00a0space":               `no-break\u00a0space`,
	} {
		if got := Escaped(in); got != want {
			t.Errorf("escaped(%q) = %q, want %q", in, got, want)
		}
	}
	var b bytes.Buffer
	if n, err := fmt.Fprintf(Writer{&b}, "a\tb\x1b\n"); n != 5 || err != nil || b.String() != "a\tb\\u001b\n" {
		t.Errorf("wrote %d, %v, %q", n, err, b.String())
	}
}

func FuzzEscaped(f *testing.F) {
	for _, s := range []string{"ok", "a\u009bb", "\u202e", "\xff\xc3", "\U000e0041"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Escaped(s)
		for _, r := range got {
			if !shown(r) {
				t.Errorf("escaped(%q) = %q", s, got)
			}
		}
		if !utf8.ValidString(s) {
			return
		}
		var doc bytes.Buffer
		if err := PrintJSON(&doc, s); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back != s {
			t.Errorf("%q becomes %q as %s: %v", s, back, doc.Bytes(), err)
		}
	})
}
