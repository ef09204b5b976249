package field_test

import (
	"slices"
	"testing"

	"edge/stream/field"
)

func TestDistinct(t *testing.T) {
	for name, c := range map[string]struct{ words, want []string }{
		"none":     {},
		"in order": {[]string{"a", "b"}, []string{"a", "b"}},
		"twice":    {[]string{"b", "a", "b", "a", "b"}, []string{"a", "b"}},
	} {
		given := slices.Clone(c.words)
		if got := field.Distinct(given); !slices.Equal(got, c.want) {
			t.Errorf("%s: Distinct(%q) = %q, want %q", name, c.words, got, c.want)
		}
		if !slices.Equal(given, c.words) {
			t.Errorf("%s: Distinct changed its argument from %q to %q", name, c.words, given)
		}
	}
}
