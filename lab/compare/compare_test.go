package compare

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/lab"
	"edge/lab/labtest"
	"edge/test/files"
)

// Every method learns: its loss on held-back rows is far below that of the class
// frequencies. That of VTP2 does not: its largest value is at predictions of 1/2.
func TestMethodsLearn(t *testing.T) {
	cfg := Config{Inducing: 0.1, Train: 0.5, Seed: 1, Updates: 15, Shared: true}
	for _, m := range Methods() {
		t.Run(m.Name, func(t *testing.T) {
			classes := 3
			if m.Classes > 0 {
				classes = m.Classes
			}
			cfg := cfg
			if m.Name == "tp-grid" { // the slowest one, and the one that needs fewest updates
				cfg.Updates = 4
			}
			s := Splits{Dataset: "waveform", Data: labtest.Waveform(120, classes), Config: cfg}
			r, err := s.run(t.Context(), &m, 0)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(m.Name, "vtp2") {
				if r.Failure != "" || math.Abs(r.NLL-math.Ln2) > 0.1 {
					t.Errorf("%+v, want the loss of a coin", r)
				}
				return
			}
			if r.Failure != "" || r.M != 6 || !(r.NLL > 0 && r.NLL < 0.9*math.Log(float64(classes))) || !(r.Error < 0.35) || r.Seconds < 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestSplitIsStandardisedByTheRowsToLearn(t *testing.T) {
	d := &lab.Data{D: 2, C: 2, X: []float64{1, 5, 2, 5, 3, 5, 4, 5, 100, 5}, Y: []int{0, 1, 0, 1, 0}}
	s, err := NewSplit(d, Config{Train: 0.8, Seed: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var mean, square float64
	for i := range s.Learn.Y {
		mean += s.Learn.Row(i)[0] / 4
		square += s.Learn.Row(i)[0] * s.Learn.Row(i)[0] / 4
		if s.Learn.Row(i)[1] != 0 {
			t.Errorf("a constant feature is %g, want 0", s.Learn.Row(i)[1])
		}
	}
	if math.Abs(mean) > 1e-12 || math.Abs(square-1) > 1e-12 || s.Judge.N() != 1 {
		t.Errorf("mean %g, variance %g, %d rows judge", mean, square, s.Judge.N())
	}
	if _, err := NewSplit(d.Rows([]int{0, 1}), Config{Train: 0.5}, 0); err == nil {
		t.Error("no error for one row to learn")
	}
}

func TestRowsThatLackFeaturesAreLeftOut(t *testing.T) {
	path := files.Write(t, "gaps.csv", "a,b,label\n1,2,x\n3,,y\n4,5,y\n")
	table, err := dataset.LoadTable(path, dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	if d, leftOut := Set(table); d.N() != 2 || leftOut != 1 || d.C != 2 {
		t.Errorf("%d rows, %d left out", d.N(), leftOut)
	}
}

// A comparison continues from the runs in its journal, also after a torn last line, and
// not from those of another configuration.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	methods, err := Named([]string{"ep"})
	if err != nil {
		t.Fatal(err)
	}
	d, cfg := labtest.Waveform(60, 3), Config{Inducing: 0.1, Train: 0.5, Seed: 1, Updates: 3}
	compare := func(ctx context.Context, cfg Config) (*Cell, error) {
		j, err := OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		s := Splits{Dataset: "waveform", Data: d, Config: cfg, Number: 3, Journal: j, Done: func(*Run) {}}
		runs, err := s.Runs(ctx, &methods[0])
		if err != nil {
			return nil, err
		}
		return Mean(runs), nil
	}
	first, err := compare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // a run would be an error now
	if again, err := compare(ended, cfg); err != nil || *again != *first {
		t.Errorf("from the journal: %+v, %v, want %+v", again, err, first)
	}
	other := cfg
	other.Seed = 2
	if _, err := compare(ended, other); err == nil {
		t.Error("runs of another seed were taken from the journal")
	}
	torn := whole[:len(whole)-10]
	if err := os.WriteFile(path, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := compare(t.Context(), cfg)
	if err != nil || again.NLL != first.NLL || again.Error != first.Error || again.Splits != 3 {
		t.Errorf("after a torn line: %+v, %v, want %+v", again, err, first)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Count(data, []byte("\n")) != 3 {
		t.Errorf("%d lines, want 3: %v", bytes.Count(data, []byte("\n")), err)
	}
	if err := os.WriteFile(path, []byte("a,b,c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path); err == nil || !strings.Contains(err.Error(), "runs.jsonl:1: not a run") {
		t.Errorf("another file: %v", err)
	}
	const note = "a file of one line without an end"
	if err := os.WriteFile(path, []byte(note), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path); err == nil {
		t.Error("a file of one line is taken for a journal")
	}
	if kept, err := os.ReadFile(path); string(kept) != note {
		t.Errorf("a file that is no journal is now %q, %v", kept, err)
	}
}

func TestFailedRunsAreCountedAndLeftOut(t *testing.T) {
	c := Mean([]Run{{Error: 0.1, NLL: 0.5, Seconds: 2}, {Failure: "no factor"}, {Error: 0.3, NLL: 0.7, Seconds: 4}})
	if c.Splits != 2 || c.Failed != 1 || math.Abs(c.NLL-0.6) > 1e-12 || math.Abs(c.NLLSE-0.1) > 1e-12 || c.Seconds != 3 {
		t.Errorf("%+v", c)
	}
	if c := Mean([]Run{{Failure: "no factor"}}); c.Splits != 0 || c.Failed != 1 {
		t.Errorf("%+v", c)
	}
}

func TestNamed(t *testing.T) {
	if _, err := Named([]string{"ep", "svm"}); err == nil || !strings.Contains(err.Error(), `"svm"`) {
		t.Errorf("error %v for an unknown name", err)
	}
	all, err := Named(Defaults())
	if err != nil || len(all) != len(Defaults()) {
		t.Errorf("%d defaults: %v", len(all), err)
	}
	binary, err := Named([]string{"laplace", "full-ep"})
	if err != nil || binary[0].Unfit(10, 3) == "" || binary[0].Unfit(10, 2) != "" || binary[1].Unfit(10_000, 2) == "" {
		t.Errorf("unfit methods are not known: %v", err)
	}
}
