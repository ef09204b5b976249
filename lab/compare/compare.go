// Package compare runs the methods of the laboratory on the same splits of a data set, from
// the same inducing points and kernel, with the same number of updates.
//
//	methods.go  the methods by name
//	compare.go  Config, Split, Judge: the task of every method
//	splits.go   Splits: the runs of methods on the splits of a data set
//	journal.go  Journal: the runs that are done, so that a comparison continues
//	table.go    Cell: the mean over the splits; tables
//
// Split and Start of a number are the same for all methods: from different starts they cannot
// be compared.
package compare

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"edge/internal/dataset"
	"edge/lab"
)

// Config are the conditions of a comparison.
type Config struct {
	Inducing float64 `json:"inducing_fraction"` // M, as a fraction of the rows learnt
	Train    float64 `json:"train_fraction"`    // of the rows that is learnt; the others judge
	Judge    int     `json:"judge,omitempty"`   // number of the first of them; 0: all
	Seed     uint64  `json:"seed"`              // of the first split
	Updates  int     `json:"updates"`           // of the parameters: iterations, or evaluations of L-BFGS
	Shared   bool    `json:"shared_kernel"`     // one kernel for all classes

	Settings string `json:"settings,omitempty"` // of the method, if not its defaults
}

// Default are the conditions of the published tables.
func Default() Config { return Config{Inducing: 0.1, Train: 0.9, Seed: 1, Updates: 250} }

// Validate reports settings out of range.
func (c *Config) Validate() error {
	switch {
	case !(c.Inducing > 0 && c.Inducing <= 1):
		return errors.New("--inducing: want a fraction of the rows learnt above 0, at most 1")
	case !(c.Train > 0 && c.Train < 1):
		return errors.New("--train-fraction: want a number between 0 and 1")
	case c.Updates < 1:
		return errors.New("--updates: want 1 or more")
	}
	return nil
}

// Split is one division of a data set, standardised by the rows to learn.
type Split struct {
	Learn, Judge *lab.Data
}

// Set is the rows of a table without missing features.
func Set(t *dataset.Table) (d *lab.Data, leftOut int) {
	d = Complete(t.Samples(t.All()))
	return d, len(t.Labels) - d.N()
}

// Complete is the rows of a part of a table without missing features.
func Complete(part *dataset.Part) *lab.Data {
	d, row := &lab.Data{D: len(part.Table.Features), C: len(part.Table.Classes)}, make([]float64, len(part.Table.Features))
	for i := range part.Len() {
		part.Row(i, row)
		complete := true
		for _, v := range row {
			complete = complete && !math.IsNaN(v) && !math.IsInf(v, 0)
		}
		if complete {
			d.X, d.Y = append(d.X, row...), append(d.Y, part.Class(i))
		}
	}
	return d
}

// NewSplit divides d by a permutation of the seed, the same for every method.
func NewSplit(d *lab.Data, cfg Config, split int) (*Split, error) {
	n := d.N()
	learn := int(math.Round(cfg.Train * float64(n)))
	if learn < 2 || learn >= n {
		return nil, fmt.Errorf("compare: %d rows cannot be divided into rows to learn and rows to judge", n)
	}
	order := rand.New(rand.NewPCG(cfg.Seed+uint64(split), 0)).Perm(n)
	judge := order[learn:]
	if cfg.Judge > 0 && cfg.Judge < len(judge) {
		judge = judge[:cfg.Judge]
	}
	s := &Split{d.Rows(order[:learn]), d.Rows(judge)}
	Standardise(s.Learn, s.Judge)
	return s, nil
}

// Standardise gives each feature mean 0 and standard deviation 1 in the rows to learn.
func Standardise(learn, judge *lab.Data) {
	n := float64(learn.N())
	for j := range learn.D {
		var mean, square float64
		for i := range learn.Y {
			mean += learn.Row(i)[j] / n
		}
		for i := range learn.Y {
			square += (learn.Row(i)[j] - mean) * (learn.Row(i)[j] - mean) / n
		}
		sd := math.Sqrt(square)
		if sd < 1e-12*(1+math.Abs(mean)) {
			sd = 1
		}
		for _, d := range []*lab.Data{learn, judge} {
			for i := range d.Y {
				d.Row(i)[j] = (d.Row(i)[j] - mean) / sd
			}
		}
	}
}

// Problem is the task of every method on the rows of a split.
func (c *Config) Problem(learn *lab.Data, split int) *lab.Problem {
	m := min(max(2, int(math.Round(c.Inducing*float64(learn.N())))), learn.N())
	kernels := learn.C
	if c.Shared {
		kernels = 1
	}
	seed := c.Seed + uint64(split)
	return &lab.Problem{
		Data: learn, Updates: c.Updates, Seed: seed,
		Start: lab.Start(learn, m, kernels, rand.New(rand.NewPCG(seed, 1))),
	}
}

// Judge returns the error and the mean negative log probability, nats, of the rows of d.
func Judge(c lab.Classifier, d *lab.Data) (wrong, nll float64, err error) {
	p, err := c.Predict(d.X)
	if err != nil {
		return 0, 0, err
	}
	const least = 1e-12 // a probability below counts as this
	n := float64(d.N())
	for i, y := range d.Y {
		row, best := p.RawRowView(i), 0
		for k, v := range row {
			if math.IsNaN(v) {
				return 0, 0, errors.New("a probability is not a number")
			}
			if v > row[best] {
				best = k
			}
		}
		if best != y {
			wrong += 1 / n
		}
		nll -= math.Log(max(row[y], least)) / n
	}
	return wrong, nll, nil
}
