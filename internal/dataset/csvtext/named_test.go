package csvtext

import (
	"strings"
	"testing"

	"edge/test/files"
)

// Lines of names and values, as a board prints them for a plotter, become a table by the command of the error.
func TestNamedCells(t *testing.T) {
	for text, want := range map[string]string{
		"x:0.1,y:-2\nx:0.3,y:4\n":                                    "x,y\n0.1,-2\n0.3,4\n",
		"x: 0.1\ty: -2\nx: 0.3\ty: 4\n":                              "x\ty\n0.1\t-2\n0.3\t4\n",
		"ts=2026-11-20T09:00:00 x=0.1 state=a\nts=1 x=0.3 state=b\n": "ts x state\n2026-11-20T09:00:00 0.1 a\n1 0.3 b\n",
		"a = 1 | b = 2\na = 3 | b = 4\n":                             "a|b\n1 |2\n3 |4\n",
		"a=1,b=2\na=1\n":                                             "",
		"a=1\na=2\n":                                                 "",
		"a=1,b:2\na=1,b:2\n":                                         "",
		"a,b\n1,2\n":                                                 "",
		"time:s,x:g,label\n1,2,a\n":                                  "",
	} {
		_, err := NewReader(strings.NewReader(text), "data", 0, "")
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		_, command, _ := strings.Cut(err.Error(), "a name before each value: want CSV with a header line; ")
		command, _, ok := strings.Cut(command, " FILE >FILE.csv makes it")
		if out, err := files.Shell(t, "sed", command+" "+files.Write(t, "data", text)); !ok || err != nil || out != want {
			t.Errorf("%q: %s: %q, %v, want %q", text, command, out, err, want)
		}
	}
}
