package dataset

import (
	"fmt"
	"strings"
	"testing"

	"edge/test/files"
)

// A feature that has a number for each class is told with its flag; one that has a number for two classes, or that
// differs within a class, is not, nor one of a model.
func TestFeaturesThatTellTheLabel(t *testing.T) {
	var b strings.Builder
	b.WriteString("code,group,near,x,label\n")
	for i := range 60 {
		k := i % 4
		fmt.Fprintf(&b, "%d,%d,%d,%d,%s\n", 7-k, k/2, k+i/59, i%7, []string{"run", "idle", "", "fault"}[k])
	}
	path := files.Write(t, "data.csv", b.String())
	const want = `each label has a value of its own in "code", as if that were the label in other words, and it counts as a feature: --ignore code leaves it out`
	for name, c := range map[string]struct {
		format Format
		want   string
	}{
		"all":        {Format{}, want},
		"as told":    {Format{Label: "label"}, want},
		"left out":   {Format{Ignore: []string{"code"}}, ""},
		"of a model": {Format{Features: []string{"code", "x"}}, ""},
	} {
		if s, err := Summarize(t.Context(), path, c.format); err != nil || s.Warning != c.want {
			t.Errorf("%s: %q, %v; want %q", name, s.Warning, err, c.want)
		}
		if table, err := LoadTable(path, c.format); err != nil || table.Warning != c.want {
			t.Errorf("%s: a table with %q, %v; want %q", name, table.Warning, err, c.want)
		}
	}
}

// Columns of 0 and 1 that are the classes of one label are told with a command that makes the label of them.
func TestColumnsThatAreClasses(t *testing.T) {
	var b, single strings.Builder
	b.WriteString("x;kind;run;idle;\"a fault\"\r\n")
	for i := range 60 {
		k := i * i % 7 % 3
		fmt.Fprintf(&b, "%d;1;%d;%d;%d\r\n", i%7, max(0, 1-k), k%2, k/2)
		fmt.Fprintf(&single, "%d;1;%d;%d;%d\n", i%7, i%2, 1-i%2, k/2)
	}
	path := files.Write(t, "data.csv", b.String())
	s, err := Summarize(t.Context(), path, Format{})
	before, command, ok := strings.Cut(s.Warning, ": awk")
	command, ok2 := strings.CutSuffix(command, " FILE >FILE.csv makes one column of them")
	if want := "one of the columns 3-5 is 1 in each row, as if they were the classes of one label, and all but the last count as features"; err != nil || !ok || !ok2 || before != want {
		t.Fatalf("%q, %v; want %q", s.Warning, err, want)
	}
	made, err := files.Shell(t, "awk", "awk"+command+" "+path)
	if err != nil {
		t.Fatal(err)
	}
	s, err = Summarize(t.Context(), files.Write(t, "made.csv", made), Format{})
	if want := []string{"a fault", "idle", "run"}; err != nil || fmt.Sprint(s.Classes) != fmt.Sprint(want) || s.Warning != "" || !strings.HasPrefix(made, "x;kind;label\n0;1;run\n") {
		t.Errorf("%q: classes %q, %q, %v", made[:40], s.Classes, s.Warning, err)
	}
	for name, text := range map[string]string{
		"sensors of 0 and 1": "x;kind;a;b;alarm\n" + single.String(),
		"no header":          strings.SplitN(b.String(), "\n", 2)[1],
	} {
		if s, err := Summarize(t.Context(), files.Write(t, "data.csv", text), Format{}); err != nil || strings.Contains(s.Warning, "columns 3-5") {
			t.Errorf("%s: %q, %v", name, s.Warning, err)
		}
	}
}
