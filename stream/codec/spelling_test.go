package codec

import "testing"

func TestSpelling(t *testing.T) {
	for _, one := range [][]string{
		{"ok", "OK", "Ok", " ok", "ok ", "ok\u00a0"},
		{"door open", "Door  open"},
		{"1", "1.0", "01", "1e0", " 1"},
		{"LÄUFT", "läuft"},
	} {
		for _, label := range one {
			if Spelling(label) != Spelling(one[0]) {
				t.Errorf("%q is another label than %q", label, one[0])
			}
		}
	}
	for _, two := range [][2]string{{"ok", "okay"}, {"a b", "ab"}, {"1", "1.5"}, {"-1", "1"}, {"1", "one"}, {"a-b", "a b"}} {
		if Spelling(two[0]) == Spelling(two[1]) {
			t.Errorf("%q and %q are one label", two[0], two[1])
		}
	}
}
