package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"edge/test/files"
)

// Columns of times are left out, by their names and what the first row has, and a warning says so. Numbers, texts and
// columns that somebody has named stay.
func TestColumnsOfTimesAreLeftOut(t *testing.T) {
	const windows = "; of rows that a sensor sends one after the other edge config sample --from FILE --time "
	for text, want := range map[string]struct {
		features string
		warning  string
	}{
		"time,x,label\n2026-11-22T17:00:00Z,1.5,ok\n":           {"x", `left out, since times are no numbers: column "time"` + windows + "time proposes windows"},
		"x;Date (UTC);label\n1,5;22.11.2026 17:00:00;ok\n":      {"x", `left out, since times are no numbers: column "Date (UTC)"` + windows + "2 proposes windows"},
		"ts,x,label\n11/22/2026 5:00 PM,1.5,ok\nsoon,2,ok\n":    {"x", `left out, since times are no numbers: column "ts"` + windows + "ts proposes windows"},
		"created_at,x,state\n2026-11-22,1.5,ok\n":               {"x", `left out, since times are no numbers: column "created_at"` + windows + "created_at proposes windows"},
		"x,state,timestamp\n1.5,ok,2026-11-22 17:00:00\n":       {"x", `left out, since times are no numbers: column "timestamp"` + windows + "timestamp proposes windows"},
		"Datum;Uhrzeit;x;label\n01.11.2026;09:00:00;1;ok\n":     {"x", `left out, since times are no numbers: column "Datum", "Uhrzeit"; sed -E 's/"?;"?/ /' FILE >FILE.csv makes one column of date and time, and --time 1 names it`},
		"time,x,label\n1764000000,1.5,ok\n":                     {"time x", ""},
		"time,x,label\n0.25,1.5,ok\n":                           {"time x", ""},
		"time,x,label\n,1.5,ok\n":                               {"time x", ""},
		"x,label\n1.5,2026-11-22 17:00:00\n":                    {"x", ""},
		"id,time,device,x.mean,label\na,2026-11-22,p7,1.5,ok\n": {"x.mean", ""},
	} {
		d, rows, err := rowsOf(t, text, "")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := strings.Join(d.Features, " "); got != want.features || d.Warning() != want.warning || len(rows) != strings.Count(text, "\n")-1 || len(rows[0].X) != len(d.Features) {
			t.Errorf("%q: features %s, %d rows, warning %q; want %s, %q", text, got, len(rows), d.Warning(), want.features, want.warning)
		}
	}
}

// A text that is no time, or whose column has another name, is an error, and so is a time that a flag or a model has made
// a feature.
func TestOtherTextsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		f    Format
	}{
		"no time":              {"time,x,label\nsoon,1.5,ok\n", Format{}},
		"no such name":         {"room,x,label\n2026-11-22T17:00:00Z,1.5,ok\n", Format{}},
		"of a flag":            {"time,x,label\n2026-11-22T17:00:00Z,1.5,ok\n", Format{Columns: []string{"time", "x"}}},
		"of a model":           {"time,x,label\n2026-11-22T17:00:00Z,1.5,ok\n", Format{Features: []string{"time", "x"}}},
		"nothing else":         {"time,label\n2026-11-22T17:00:00Z,ok\n", Format{}},
		"not in the first row": {"date,x,label\n,1.5,ok\n2026-11-22,1,ok\n", Format{}},
	} {
		d, err := newFile(strings.NewReader(c.text), "data.csv", c.f)
		if err == nil {
			_, err = ReadAll(d)
		}
		if err == nil || !strings.Contains(err.Error(), "is not a number") {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, err := newFile(strings.NewReader("x,time\n1.5,2026-11-22T17:00:00Z\n"), "data.csv", Format{Label: "time"})
	if err != nil || d.begun.times != nil {
		t.Errorf("times as labels: %v", err)
	}
}

// A second column of times is no signal of a file of signals.
func TestSecondColumnOfTimesIsNoSignal(t *testing.T) {
	var text strings.Builder
	text.WriteString("time,date,x,label\n")
	for i := range 400 {
		fmt.Fprintf(&text, "%d,2026-11-22,%d,%d\n", i, i%7, i/100%2)
	}
	r, ok, err := Detect(files.Write(t, "data.csv", text.String()), Format{})
	if err != nil || !ok || !slices.Equal(r.Signals, []string{"x"}) || !slices.Equal(r.Times, []string{"date"}) {
		t.Errorf("%+v, %v, %v", r, ok, err)
	}
}
