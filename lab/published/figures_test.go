package published

import (
	"strings"
	"testing"

	"edge/test/files"
)

func TestLoadFigures(t *testing.T) {
	const header = "set,inducing,method,error,nll\n"
	figures, err := LoadFigures(files.Write(t, "figures.csv", header+"wine,0.05,EP,0.031,0.125\nwine,0.2,VI,.02,0\nglass,0.05,GFITC,.3,.8\n"))
	if err != nil || len(figures) != 3 {
		t.Fatalf("%+v, %v", figures, err)
	}
	of := figuresOf(figures, "wine", 0.05)
	if len(of) != 1 || of[0].NLL != 0.125 || of[0].Method != "EP" {
		t.Errorf("figures of wine at 0.05: %+v", of)
	}
	if f := find(figuresOf(figures, "wine", 0.2), "VI"); f != nil {
		t.Errorf("a figure that is not known: %+v", f)
	}
	for _, c := range []struct{ name, content, want string }{
		{"no header", "glass,0.05,EP,0.3,0.8\n", "figures.csv:1: want set,inducing,method,error,nll"},
		{"a word", header + "wine,5,EP,.3,.4\nwine,5,EP,.3,x\n", "figures.csv:3: want set"},
		{"not a number", header + "wine,5,EP,NaN,.2\n", "figures.csv:2: want set"},
		{"below 0", header + "wine,5,EP,.2,-1\n", "figures.csv:2: want set"},
		{"cells", header + "wine,5,EP\n", "figures.csv:2: want set"},
		{"another header", "set,inducing\nwine,5,EP,.3,.2\n", "figures.csv:1: want set"},
		{"a quote", header + "wine,\"5,EP,.3,.2\n", "figures.csv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := LoadFigures(files.Write(t, "figures.csv", c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
