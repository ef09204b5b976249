package published

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"edge/internal/dataset"
	"edge/lab"
	"edge/lab/compare"
	"edge/lab/offline"
	"edge/online/train"
)

// Set is one data set of the tables.
type Set struct {
	Name     string
	fraction float64 // of the rows that is learnt
	learn    int     // rows that are learnt, if fraction is 0
	judge    int     // rows that judge; 0: all others
}

// Sets are the eight of the paper, Section 5.1.
var Sets = []Set{
	{Name: "glass", fraction: 0.9},
	{Name: "new_thyroid", fraction: 0.9},
	{Name: "satellite", fraction: 0.2},
	{Name: "svmguide2", fraction: 0.9},
	{Name: "vehicle", fraction: 0.9},
	{Name: "vowel6", fraction: 0.9},
	{Name: "waveform", learn: 300, judge: 700},
	{Name: "wine", fraction: 0.9},
}

// Fractions are those of the rows learnt that become inducing points.
var Fractions = []float64{0.05, 0.10, 0.20}

// sizes returns the fraction of n rows that is learnt, and the rows that judge, 0 for all.
func (s *Set) sizes(n int) (fraction float64, judge int) {
	if s.fraction > 0 {
		return s.fraction, 0
	}
	return float64(min(s.learn, n-1)) / float64(n), s.judge
}

// Edge is the name of edge's own training among the methods.
const Edge = "edge"

// TablesConfig are the conditions of the tables.
type TablesConfig struct {
	Methods  []string  // the others are compared with the first, split by split
	Only     []string  // sets; nil: all
	Inducing []float64 // fractions of the rows learnt
	Splits   int
	Seed     uint64 // of the first split
	Updates  int    // of the methods but edge
	Shared   bool   // one kernel for all classes
	Training train.Config
}

// DefaultTables are the published conditions.
func DefaultTables() TablesConfig {
	return TablesConfig{
		Methods: []string{"ep", Edge, "sep-pairs", "gfitc", "vi"}, Inducing: Fractions,
		Splits: 20, Seed: 1, Updates: compare.Default().Updates, Training: offline.Default(),
	}
}

// Validate reports settings out of range.
func (c *TablesConfig) Validate() error {
	_, err := c.methods()
	return err
}

// methods validates, and returns the methods.
func (c *TablesConfig) methods() ([]compare.Method, error) {
	methods, err := compare.Named(c.Methods)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Only {
		if !slices.ContainsFunc(Sets, func(s Set) bool { return s.Name == name }) {
			return nil, fmt.Errorf("--only: %q is none of the eight sets", name)
		}
	}
	for _, v := range c.Inducing {
		if !(v > 0 && v <= 1) {
			return nil, errors.New("--inducing: want fractions of the rows learnt above 0, at most 1")
		}
	}
	switch {
	case len(methods) == 0:
		return nil, errors.New("--methods: want one or more")
	case c.Splits < 2:
		return nil, errors.New("--repeats: want 2 or more, for a standard error")
	case c.Updates < 1:
		return nil, errors.New("--updates: want 1 or more")
	}
	return methods, c.Training.Validate()
}

// Cell is one method on one set at one number of inducing points.
type Cell struct {
	compare.Cell
	Fraction  float64  `json:"inducing_fraction"`
	Learnt    int      `json:"learnt"`
	Paired    float64  `json:"paired_nll"`    // mean difference of nll from the first method, split by split
	PairedSE  float64  `json:"paired_nll_se"` // its standard error
	Published []Figure `json:"published,omitempty"`
}

// Own is the published figure of the cell's own method, or nil.
func (c *Cell) Own() *Figure { return find(c.Published, columns[c.Method]) }

// Differs reports whether the mean nll is more than two standard errors from the published
// figure of the same method, beyond the rounding of that.
func (c *Cell) Differs() bool {
	const rounding = 0.005
	f := c.Own()
	return f != nil && math.Abs(c.NLL-f.NLL) > 2*c.NLLSE+rounding
}

// ErrNoSets is the error of a folder with none of the eight sets.
var ErrNoSets = errors.New("none of the data sets: want NAME.csv or NAME.csv.gz, such as glass.csv.gz")

// Progress is called with each event.
type Progress interface {
	Message(text string)                       // something is left out
	Begin(what string, runs int) (done func()) // of one cell; done is called after each run
}

// Tables are the tables of the paper, repeated.
type Tables struct {
	TablesConfig
	Figures  []Figure         // the published ones
	Journal  *compare.Journal // of the runs that are done
	Progress Progress
	Cell     func(*Cell) error // called with each cell, those of a set and fraction one after the other
}

// Run runs the methods on the sets of a folder.
func (t *Tables) Run(ctx context.Context, folder string) error {
	methods, err := t.methods()
	if err != nil {
		return err
	}
	found := false
	for i := range Sets {
		set := &Sets[i]
		if t.Only != nil && !slices.Contains(t.Only, set.Name) {
			continue
		}
		table, err := loadNamed(folder, set.Name)
		if errors.Is(err, os.ErrNotExist) {
			t.Progress.Message(fmt.Sprintf("%s: not in %s, left out", set.Name, folder))
			continue
		} else if err != nil {
			return err
		}
		found = true
		data, _ := compare.Set(table)
		for _, fraction := range t.Inducing {
			if err := t.set(ctx, methods, set, data, fraction); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("%s holds %w", folder, ErrNoSets)
	}
	return nil
}

// loadNamed loads NAME.csv.gz or NAME.csv.
func loadNamed(folder, name string) (*dataset.Table, error) {
	t, err := dataset.LoadTable(filepath.Join(folder, name+".csv.gz"), dataset.Format{})
	if errors.Is(err, os.ErrNotExist) {
		return dataset.LoadTable(filepath.Join(folder, name+".csv"), dataset.Format{})
	}
	return t, err
}

// set runs the methods on the rows of one set, with that fraction of inducing points.
func (t *Tables) set(ctx context.Context, methods []compare.Method, set *Set, d *lab.Data, fraction float64) error {
	cfg := compare.Config{Inducing: fraction, Seed: t.Seed, Updates: t.Updates, Shared: t.Shared}
	cfg.Train, cfg.Judge = set.sizes(d.N())
	learnt := int(math.Round(cfg.Train * float64(d.N())))
	var first []compare.Run
	for i := range methods {
		m := &methods[i]
		if why := m.Unfit(learnt, d.C); why != "" {
			t.Progress.Message(fmt.Sprintf("%s, %s: left out: %s", set.Name, m.Name, why))
			continue
		}
		cfg := cfg
		if m.Name == Edge {
			m = t.edge(m, &cfg)
		}
		done := t.Progress.Begin(fmt.Sprintf("%s, %g, %s", set.Name, fraction, m.Name), t.Splits)
		splits := compare.Splits{Dataset: set.Name, Data: d, Config: cfg, Number: t.Splits, Journal: t.Journal, Done: func(r *compare.Run) {
			done()
			if r.Failure != "" {
				t.Progress.Message(fmt.Sprintf("%s, split %d: left out of the means: %s", set.Name, r.Split, r.Failure))
			}
		}}
		runs, err := splits.Runs(ctx, m)
		if err != nil {
			return err
		}
		if i == 0 {
			first = runs
		}
		out := &Cell{Cell: *compare.Mean(runs), Fraction: fraction, Learnt: learnt, Published: figuresOf(t.Figures, set.Name, fraction)}
		out.Paired, out.PairedSE = paired(runs, first)
		if err := t.Cell(out); err != nil {
			return err
		}
	}
	return nil
}

// edge is the training with its own settings, which replace the number of updates.
func (c *TablesConfig) edge(m *compare.Method, cfg *compare.Config) *compare.Method {
	cfg.Updates = c.Training.Passes
	usual := offline.Default()
	usual.Passes = c.Training.Passes
	if c.Training != usual {
		text, err := json.Marshal(c.Training)
		if err != nil {
			panic(err) // plain fields, validated as finite
		}
		cfg.Settings = string(text)
	}
	return m.With(offline.With(c.Training))
}

// paired is the mean difference of nll between runs of the same splits, and its standard
// error. Runs that failed are left out.
func paired(a, b []compare.Run) (mean, se float64) {
	var differences []float64
	for i := range min(len(a), len(b)) {
		if a[i].Failure == "" && b[i].Failure == "" {
			differences = append(differences, a[i].NLL-b[i].NLL)
		}
	}
	if len(differences) == 0 {
		return 0, 0
	}
	return compare.MeanAndSE(differences)
}
