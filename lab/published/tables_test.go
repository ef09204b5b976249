package published

import (
	"bytes"
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"edge/lab/compare"
	"edge/test/harness"
)

// quiet keeps the messages.
type quiet struct {
	messages []string
	runs     int
}

func (q *quiet) Message(text string)             { q.messages = append(q.messages, text) }
func (q *quiet) Begin(string, int) (done func()) { return func() { q.runs++ } }

func small() TablesConfig {
	c := DefaultTables()
	c.Methods, c.Only, c.Inducing, c.Splits, c.Updates, c.Training.Passes = []string{"ep", Edge, "laplace"}, []string{"wine", "glass"}, []float64{0.05, 0.2}, 3, 4, 8
	return c
}

// Tables takes all runs from the journal of the same conditions, and none of others.
func TestTablesContinue(t *testing.T) {
	folder := filepath.Dir(harness.TableFile(t, "wine.csv", 60))
	journal := filepath.Join(t.TempDir(), "runs.jsonl")
	figures := []Figure{{"wine", 0.05, "EP", 0.3, 0.5}, {"wine", 0.05, "VI", 0.3, 9}}
	run := func(ctx context.Context, c TablesConfig) (cells []Cell, q quiet, err error) {
		j, err := compare.OpenJournal(journal)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		tables := Tables{c, figures, j, &q, func(c *Cell) error { cells = append(cells, *c); return nil }}
		err = tables.Run(ctx, folder)
		return cells, q, err
	}
	first, q, err := run(t.Context(), small())
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 4 || q.runs != 12 || len(q.messages) != 3 { // glass is missing, laplace is left out twice
		t.Fatalf("%d cells, %d runs, messages %q", len(first), q.runs, q.messages)
	}
	for i, c := range first {
		if c.Method != []string{"ep", Edge}[i%2] || c.Learnt != 54 || c.Inducing != []int{3, 3, 11, 11}[i] || !(c.NLL > 0 && c.NLL < 2) || c.Splits != 3 {
			t.Errorf("cell %d: %+v", i, c)
		}
		if i%2 == 0 && (c.Paired != 0 || c.PairedSE != 0) {
			t.Errorf("ep differs from itself: %+v", c)
		}
		if i%2 == 1 && (math.Abs(c.Paired-(c.NLL-first[i-1].NLL)) > 1e-12 || c.PairedSE <= 0) {
			t.Errorf("paired difference of cell %d: %+v", i, c)
		}
	}
	if first[0].Own() == nil || first[2].Own() != nil || first[1].Own() != nil {
		t.Error("the published figure is not beside its method alone")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // a run would be an error now
	again, _, err := run(ended, small())
	if err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("from the journal: %+v, %v, want %+v", again, err, first)
	}
	other := small()
	other.Training.Prior = 1
	if _, _, err := run(ended, other); err == nil {
		t.Error("runs of another training were taken from the journal")
	}
	none := small()
	none.Only = []string{"glass"}
	if _, _, err := run(t.Context(), none); !errors.Is(err, ErrNoSets) {
		t.Errorf("a folder without the set: %v", err)
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name            string
		n, learn, judge int
	}{{"glass", 214, 193, 0}, {"satellite", 6435, 1287, 0}, {"waveform", 5000, 300, 700}, {"waveform", 200, 199, 700}} {
		for _, s := range Sets {
			if s.Name == c.name {
				fraction, judge := s.sizes(c.n)
				if learn := int(math.Round(fraction * float64(c.n))); learn != c.learn || judge != c.judge {
					t.Errorf("%s of %d rows: %d and %d, want %d and %d", c.name, c.n, learn, judge, c.learn, c.judge)
				}
			}
		}
	}
}

// A mean is over the places that all columns have; a figure far away is marked.
func TestMeansAndMarks(t *testing.T) {
	cell := func(set, method string, nll float64, published ...Figure) Cell {
		return Cell{Cell: compare.Cell{Dataset: set, Method: method, Splits: 2, Error: nll / 2, NLL: nll, NLLSE: 0.01}, Fraction: 0.1, Published: published}
	}
	ep := func(nll float64) Figure { return Figure{Method: "EP", Error: 0.2, NLL: nll} }
	cells := []Cell{
		cell("a", "ep", 0.4, ep(0.42)), cell("a", "vi", 0.6, ep(0.42)),
		cell("b", "ep", 0.2, ep(0.30)), cell("b", "vi", 0.8, ep(0.30)),
		cell("c", "ep", 9, ep(0)), cell("c", "vi", 9, ep(0)), // not known
		cell("d", "ep", 9, ep(1)), // without vi
	}
	means, places := meansOf(cells)
	want := []Mean{{"ep", 0.15, 0.3, false}, {"vi", 0.35, 0.7, false}, {"EP", 0.2, 0.36, true}}
	if places != 2 || len(means) != len(want) {
		t.Fatalf("%d places, %+v", places, means)
	}
	for i, m := range means {
		if m.Column != want[i].Column || math.Abs(m.Error-want[i].Error) > 1e-12 || math.Abs(m.NLL-want[i].NLL) > 1e-12 {
			t.Errorf("%+v, want %+v", m, want[i])
		}
	}
	for i, differs := range []bool{false, false, true, false, false, false, true} {
		if cells[i].Differs() != differs {
			t.Errorf("cell %d differs: %v, want %v", i, cells[i].Differs(), differs)
		}
	}
	var out bytes.Buffer
	if err := Print(&out, cells); err != nil || !strings.Contains(out.String(), "mean of the 2 sets") || strings.Count(out.String(), mark) != 3 {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestSettingsOutOfRange(t *testing.T) {
	for want, change := range map[string]func(*TablesConfig){
		"no method":  func(c *TablesConfig) { c.Methods = []string{"svm"} },
		"--methods":  func(c *TablesConfig) { c.Methods = nil },
		"--only":     func(c *TablesConfig) { c.Only = []string{"iris"} },
		"--inducing": func(c *TablesConfig) { c.Inducing = []float64{0} },
		"--repeats":  func(c *TablesConfig) { c.Splits = 1 },
		"--updates":  func(c *TablesConfig) { c.Updates = 0 },
		"rate":       func(c *TablesConfig) { c.Training.Rate = -1 },
	} {
		c := DefaultTables()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
