package config

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The output of `edge config show` reads back as the same configuration.
func TestConfigShowReadsBack(t *testing.T) {
	for name, text := range map[string]string{"minimal": minimal, "sample": string(sample(t))} {
		t.Run(name, func(t *testing.T) {
			want, err := Parse("edge.yaml", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := Write(&b, want); err != nil {
				t.Fatal(err)
			}
			got, err := Parse("shown.yaml", b.Bytes(), nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, &b)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-configuration +shown):\n%s", diff)
			}
		})
	}
}

// Any text reads back from the YAML written for it, which has no invisible
// characters.
func FuzzQuoteYAML(f *testing.F) {
	for _, s := range []string{"", "plain", "two words", "off", "~", "007", "1e3", "-", "- a", "a: b", "a #b", "#a", "'", "\"", "[a", "a,b", "\n", "a\tb", "é", "\x00", "\\", "2026-01-01", "=", "<<", "mqtt://h:1", "c:/x", "---", "a:", "?", "? a", "!a",
		"y", "NO", "0o17", "1_000", "1:30", "a\n", "\n a\n\n", "a\r", "\u0085", "\u2028", "\ufeff", "a\u202eb", "\u00a0", "é\u200b", "a\n\tb", "a\n\u202eb\n", "\U000e0001", "\x7f", "%a", "@a", "`a", "}", strings.Repeat("long word ", 20)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return // YAML is text
		}
		type lists struct {
			Word string            `yaml:"word"`
			Flow []string          `yaml:"flow"`
			List []string          `yaml:"list"`
			Keys map[string]string `yaml:"keys"`
		}
		want := lists{s, []string{s, s}, []string{s, "x"}, map[string]string{"key": s}}
		text, err := marshalYAML(struct {
			Word string            `yaml:"word"`
			List []string          `yaml:"list"`
			Keys map[string]string `yaml:"keys"`
		}{want.Word, want.List, want.Keys})
		if err != nil {
			t.Fatal(err)
		}
		text = fmt.Appendf(text, "flow: %s\n", Flow(want.Flow))
		if i := bytes.IndexFunc(text, isInvisible); i >= 0 {
			t.Errorf("%q: an invisible character at byte %d of %q", s, i, text)
		}
		var got lists
		if _, err := strictYAML("written.yaml", text, &got); err != nil {
			t.Fatalf("%q: %v\n%s", s, err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-written +read):\n%s\n%s", diff, text)
		}
	})
}
