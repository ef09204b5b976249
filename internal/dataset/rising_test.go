package dataset

import (
	"fmt"
	"strings"
	"testing"

	"edge/test/files"
)

// A feature that rises with every row, as a time does, is told with its flag; one that falls or
// stays once is not, nor one of a model.
func TestRisingFeatures(t *testing.T) {
	var b strings.Builder
	b.WriteString("row,t,x,y,label\n")
	for i := range 40 {
		fmt.Fprintf(&b, "%d,%d,%d,%d,%s\n", i, 1_795_717_000+3*i, i%7, i/2, "ab"[i%2:i%2+1])
	}
	path := files.Write(t, "data.csv", b.String())
	for name, c := range map[string]struct {
		format Format
		want   string
	}{
		"all":         {Format{}, `each row has more in "row", "t" than the row before, as of a time or the number of the row, which counts as a feature: --ignore row,t leaves it out; rows that a sensor sends`},
		"one":         {Format{Ignore: []string{"t"}}, `each row has more in "row" than the row before, as of a time or the number of the row, which counts as a feature: --ignore row leaves it out`},
		"none":        {Format{Ignore: []string{"row", "t"}}, ""},
		"of a model":  {Format{Features: []string{"row", "x"}}, ""},
		"rising text": {Format{Label: "row", Ignore: []string{"t", "label"}}, ""},
	} {
		s, err := Summarize(t.Context(), path, c.format)
		if err != nil || !strings.HasPrefix(s.Warning, c.want) || (c.want == "") != (s.Warning == "") {
			t.Errorf("%s: %q, %v; want %q", name, s.Warning, err, c.want)
		}
	}
}

// A column that is called a time, but otherwise than those that are found by name, has the flag for it.
func TestRisingTimes(t *testing.T) {
	for name, flag := range map[string]string{"Time (s)": "1", "seconds_elapsed": "seconds_elapsed", "elapsed_ms": "elapsed_ms", "epoc (ms)": "1"} {
		var b strings.Builder
		fmt.Fprintf(&b, "%s,x,label\n", name)
		for i := range 40 {
			fmt.Fprintf(&b, "%d,%d,%c\n", i, i%7, "ab"[i%2])
		}
		s, err := Summarize(t.Context(), files.Write(t, "data.csv", b.String()), Format{})
		if want := "--ignore " + flag + " leaves it out; of rows that a sensor sends one after the other edge config sample --from FILE --time " + flag + " proposes windows"; err != nil || !strings.HasSuffix(s.Warning, want) {
			t.Errorf("%q, %v; want %q", s.Warning, err, want)
		}
	}
}
