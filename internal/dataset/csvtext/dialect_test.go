package csvtext

import (
	"strings"
	"testing"
)

// A sheet may have a title and notes above its table, in lines that have the separators of the table, and a file of a
// logger may have notes of a word and a value.
func TestTableBelowOtherLines(t *testing.T) {
	rows := strings.Repeat("1,5;2;3;ok\r\n2,5;;;\r\n", 80)
	for text, want := range map[string]int{
		"Series 12;;;\r\nfrom;2026-11-01;to;\r\n;;;\r\na;b;c;label\r\n" + rows: 4,
		";;;\r\na;b;c;label\r\n" + rows:                                        2,
		"Series 12\r\nDevice: 7\r\na;b;c;label\r\n" + rows:                     3,
		"Series 12,,\n\"a,b\",\"c\",label\n" + strings.Repeat("1,2,ok\n", 200): 2,
		"Logger;XY\r\nStart;20.11.2026\r\n\r\nNo.;a;b;label\r\n" + rows:        4,
		"a;b;c;label\r\n" + rows:                                               1,
		"a,b\n1,x;y\n2,z;u\n":                                                  1,
		"a\n1\n":                                                               0,
	} {
		if line := tableLine(text, findSeparator(text)); line != want {
			t.Errorf("%.60q: line %d, want %d", text, line, want)
		}
	}
}
