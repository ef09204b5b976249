package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/harness"
)

func TestPaper(t *testing.T) {
	folder := filepath.Dir(harness.TableFile(t, "wine.csv", 100))
	args := []string{"paper", folder, "--repeats", "3", "--passes", "20", "--inducing", "0.05,0.2"}
	code, out, errOut := edge(t, append(args, "--json")...)
	if code != exit.OK || !strings.Contains(errOut, "glass: not in") {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	var cells []PaperCell
	for dec.More() {
		var c PaperCell
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		cells = append(cells, c)
	}
	if len(cells) != 2 || cells[0].Inducing != 5 || cells[1].Inducing != 18 || cells[0].PaperNLL != .08 || cells[1].PaperNLL != .06 {
		t.Fatalf("%+v", cells)
	}
	for _, c := range cells {
		if c.Samples != 90 || len(c.Runs) != 3 || c.NLL <= 0 || c.NLL > math.Log(3) || c.NLLSE <= 0 || c.Error > 0.6 || c.Runs[0].Balanced <= 0 {
			t.Errorf("%+v", c)
		}
	}
	if code, out, _ := edge(t, args...); code != exit.OK || !strings.Contains(out, "mean of 2") {
		t.Errorf("exit %d, table\n%s", code, out)
	}
	if code, _, errOut := edge(t, "paper", t.TempDir()); code != exit.Runtime || !strings.Contains(errOut, "holds none") {
		t.Errorf("empty folder: exit %d: %s", code, errOut)
	}
}

// Methods from --figures are printed in columns of their own.
func TestPaperFigures(t *testing.T) {
	folder := filepath.Dir(harness.TableFile(t, "wine.csv", 100))
	args := []string{"paper", folder, "--repeats", "2", "--passes", "5", "--inducing", "0.05,0.2", "--figures"}
	figures := writeFile(t, "figures.csv", "set,inducing,method,error,nll\nwine,0.05,EP,0.031,0.125\nwine,0.2,VI,.02,.5\nglass,0.05,GFITC,.3,.8\n")
	code, out, errOut := edge(t, append(args, figures)...)
	lines := strings.Split(out, "\n")
	if code != exit.OK || len(lines) < 3 {
		t.Fatalf("exit %d: %s\n%s", code, errOut, out)
	}
	for i, want := range []string{"CPU s EP VI", ".03 / .12 –", "– .02 / .50"} {
		if line := strings.Join(strings.Fields(lines[i]), " "); !strings.HasSuffix(line, want) {
			t.Errorf("line %d is %q, want %q at its end", i, line, want)
		}
	}
	for content, want := range map[string]string{
		"glass,0.05,EP,0.3,0.8\n":                           "figures.csv:1: want set,inducing,method,error,nll",
		"set,inducing,method,error,nll\nwine,5,EP,.3,x\n":   "figures.csv:2: want set,inducing,method,error,nll",
		"set,inducing,method,error,nll\nwine,5,EP,NaN,.2\n": "figures.csv:2: want set,inducing,method,error,nll",
		"set,inducing\nwine,5,EP,.3,.2\n":                   "figures.csv",
	} {
		if code, _, errOut := edge(t, append(args, writeFile(t, "figures.csv", content))...); code != exit.Runtime || !strings.Contains(errOut, want) {
			t.Errorf("%q: exit %d: %s", content, code, errOut)
		}
	}
}

func TestPaperSizes(t *testing.T) {
	for _, c := range []struct {
		name           string
		n, learn, both int
	}{{"glass", 214, 193, 214}, {"satellite", 6435, 1287, 6435}, {"waveform", 5000, 300, 1000}, {"waveform", 200, 199, 200}} {
		for _, s := range paperSets {
			if s.name == c.name {
				if learn, both := s.sizes(c.n); learn != c.learn || both != c.both {
					t.Errorf("%s of %d rows: %d and %d, want %d and %d", c.name, c.n, learn, both, c.learn, c.both)
				}
			}
		}
	}
}
