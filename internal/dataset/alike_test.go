package dataset

import (
	"strings"
	"testing"

	"edge/test/files"
)

// Labels that differ in case, or as 1 and 1.0 do, are classes of their own: a line says so.
func TestAlikeLabels(t *testing.T) {
	letters := "x,label\n"
	for c := 'a'; c < 'h'; c++ {
		letters += "1," + string(c) + "\n2," + string(c-'a'+'A') + "\n"
	}
	for text, want := range map[string]string{
		"x,label\n1,ok\n2,OK\n":    `the labels "OK" and "ok" are two classes, although they are spelt almost alike`,
		"x,label\n1,1\n2,1.0\n":    `the labels "1" and "1.0" are two classes, although they are spelt almost alike`,
		"x,label\n1,ok\n2, ok\n":   "", // spaces around cells are ignored
		"x,label\n1,ok\n2,okay\n":  "",
		letters:                    "",
		"1,2,ok\n3,4,OK\n5,6,OK\n": `; no other line has its label "ok"; --header yes if it names the columns; the labels "OK" and "ok" are two classes`,
	} {
		path := files.Write(t, "data.csv", text)
		summary, err := Summarize(t.Context(), path, Format{})
		if err != nil {
			t.Fatal(err)
		}
		table, err := LoadTable(path, Format{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(summary.Warning, want) || (want == "") != (summary.Warning == "") || table.Warning != summary.Warning {
			t.Errorf("%.40q: warnings %q and %q, want %q", text, summary.Warning, table.Warning, want)
		}
	}
}
