package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"edge/test/files"
)

// Spaces separate the cells of a file without another separator, however many they are.
func TestSpacesBetweenCells(t *testing.T) {
	want := []Row{{Number: 1, X: []float64{1.5, math.NaN()}, Label: "1"}, {Number: 2, X: []float64{-2, 30}, Label: "2"}}
	for name, text := range map[string]string{
		"units in the header":   "m/s m/s2 label\n1.5 NaN 1\n-2 30 2\n",
		"a number of them":      "  1.5   NaN 1 \n -2    30  2\n",
		"with a header":         "a      b\tlabel\r\n1.5  NaN 1\r\n-2  30  2\r\n",
		"with a comment":        "# made on that day\na b label\n1.5 NaN 1\n-2 30 2\n",
		"and quotes":            "a b label\n1.5 NaN \"1\"\n-2 30 2\n",
		"with a decimal comma":  "1,5 NaN 1\n-2 30 2\n",
		"of one row, and blank": "1.5 NaN 1\n\n-2 30 2\n\n",
	} {
		d, err := newFile(strings.NewReader(text), "data.csv", Format{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rows, err := ReadAll(d)
		if diff := cmp.Diff(want, rows, cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if _, rows, err := rowsOf(t, "some weight,label\n5 kg,x\n6 kg,y,\n", ""); err == nil || !strings.Contains(err.Error(), `"5 kg" is not a number: if "kg" is a unit, write it without`) {
		t.Errorf("a unit after a space, and a line with a comma at its end: %v, %v", rows, err)
	}
	if _, rows, err := rowsOf(t, "room,label\n\"a room\",x\n", "label"); err == nil {
		t.Errorf("a cell with a space: %v", rows)
	}
	if _, _, err := rowsOf(t, "a b label\n1 2 x\n1 2\n", ""); err == nil || !strings.Contains(err.Error(), "it has 2, separated by spaces") && !strings.Contains(err.Error(), "no column is left") {
		t.Errorf("a short line: %v", err)
	}
}

// A warning about standard input does not call it -.
func TestWarningAboutStandardInput(t *testing.T) {
	var b strings.Builder
	new(Options).Warn(&b, "-", "no header")
	if b.String() != "standard input: no header\n" {
		t.Errorf("%q", b.String())
	}
}

// The last column is told where its values are hardly classes.
func TestLabelsThatAreNoClasses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.csv")
	write := func(label func(i int) string) {
		var b strings.Builder
		b.WriteString("x,y,z\n")
		for i := range 100 {
			fmt.Fprintf(&b, "%d,%d,%s\n", i%3, i%4, label(i))
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		label func(i int) string
		want  string
	}{
		"numbers":   {func(i int) string { return fmt.Sprint(i % 60) }, `column "z" is taken for the label, and has 60 different values in 100 rows: --label names another`},
		"fractions": {func(i int) string { return fmt.Sprintf("%.1f", float64(i%20)/10) }, `column "z" is taken for the label, and has 20 different values in 100 rows: --label names another`},
		"classes":   {func(i int) string { return fmt.Sprint(i % 20) }, ""},
		"one":       {func(int) string { return "ok" }, `each label in column "z" is "ok": scores say nothing before there is another one; --label names another column`},
		"levels":    {func(i int) string { return fmt.Sprintf("%.1f", float64(i%5)/2) }, ""},
	} {
		write(c.label)
		s, err := Summarize(t.Context(), path, Format{})
		if err != nil || s.Warning != c.want {
			t.Errorf("%s: %q, %v, want %q", name, s.Warning, err, c.want)
		}
		if table, err := LoadTable(path, Format{}); err != nil || table.Warning != c.want {
			t.Errorf("%s: a table with %q, %v, want %q", name, table.Warning, err, c.want)
		}
		if s, err := Summarize(t.Context(), path, Format{Label: "z"}); err != nil || s.Warning != "" {
			t.Errorf("%s, as told: %q, %v", name, s.Warning, err)
		}
	}
}

// A feature that is the label by its name is told.
func TestFeaturesThatAreCalledALabel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.csv")
	for header, want := range map[string]string{
		"Class,x,y":     `column "y" is taken for the label, and column "Class" for a feature: --label Class if that is the label`,
		"x,target,y":    `column "y" is taken for the label, and column "target" for a feature: --label target if that is the label`,
		"x,y,class":     "",
		"Class,x,label": "",
		"x,classes,y":   "",
	} {
		if err := os.WriteFile(path, []byte(header+"\n"+strings.Repeat("1,2,0\n0,1,1\n", 20)), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Summarize(t.Context(), path, Format{}); err != nil || s.Warning != want {
			t.Errorf("%s: %q, %v, want %q", header, s.Warning, err, want)
		}
		names := strings.Split(header, ",")[:2]
		if s, err := Summarize(t.Context(), path, Format{Features: names, OwnLabel: strings.Split(header, ",")[2]}); err != nil || s.Warning != "" {
			t.Errorf("%s, as configured: %q, %v", header, s.Warning, err)
		}
	}
}

// A command that is interrupted reads no further.
func TestSummarizeEndsWithItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Summarize(ended, files.Write(t, "table.csv", "x,label\n1,a\nword,a\n"), Format{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
