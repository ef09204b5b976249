package dataset

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"edge/test/files"
)

// A value of nines that is far from all others, and came more than once, is told with a command
// that makes empty cells of it.
func TestFillers(t *testing.T) {
	for name, c := range map[string]struct {
		value, want string
	}{
		"below":      {"-999", `column "b" has -999 in 5 rows, far from its other values: if it stands for a missing one, awk -F';' -v OFS=';' '{for(i=1;i<=NF;i++) {v=$i; sub(",",".",v); if(v+0==-999) $i=""}} 1' FILE`},
		"with zeros": {"-999,00", `column "b" has -999 in 5 rows`},
		"above":      {"9999", `column "b" has 9999 in 5 rows`},
		"decimals":   {"-99,9", ""},
		"other":      {"-500", ""},
		"near":       {"9", ""},
		"among them": {"-0,99", ""},
		"missing":    {"NA", ""},
	} {
		var b strings.Builder
		b.WriteString("a;b;label\n")
		for i := range 40 {
			value := strings.Replace(fmt.Sprintf("%.3f", 4*math.Sin(float64(i))), ".", ",", 1)
			if i%8 == 3 {
				value = c.value
			}
			fmt.Fprintf(&b, "%d;%s;%s\n", i%7, value, "xy"[i%2:i%2+1])
		}
		d, _, err := rowsOf(t, b.String(), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := d.Warning(); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		} else if got != "" {
			checkFillerCommand(t, b.String(), got)
		}
	}
}

// checkFillerCommand checks that the command of a warning makes empty cells of a file's five fillers.
func checkFillerCommand(t *testing.T, text, warning string) {
	t.Helper()
	_, command, _ := strings.Cut(warning, "awk ")
	command, _, _ = strings.Cut(command, " FILE ")
	made, err := files.Shell(t, "awk", "awk "+command+" "+files.Write(t, "data.csv", text))
	if err != nil || strings.Count(made, ";;") != 5 || len(strings.Split(made, "\n")) != len(strings.Split(text, "\n")) {
		t.Errorf("%s: %v, %q", command, err, made)
	}
}
