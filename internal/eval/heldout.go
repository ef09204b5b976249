package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/process"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/model"
	"edge/online"
	"edge/online/score"
	"edge/online/train"
)

// Splits says how a table is cut, again and again, into samples to learn and
// samples to judge, and how they are learnt.
type Splits struct {
	Fraction float64      // learnt, in mode holdout
	Repeats  int          // of holdout; folds of cv
	Seed     uint64       // of the first permutation
	Flips    float64      // of the labels that are learnt
	How      train.Config // offline
	Offline  bool         // many passes instead of one online
}

// split is one way to cut a table.
type split struct {
	seed         uint64
	learn, judge []int
}

// cut lists the splits of n rows. In mode holdout every repeat has a
// permutation of its own; in mode cv one permutation is cut into folds.
func (s *Splits) cut(mode string, n int) ([]split, error) {
	var all []split
	if mode == "cv" {
		if s.Repeats < 2 || s.Repeats > n {
			return nil, fmt.Errorf("%d folds of %d rows: want 2 to %d", s.Repeats, n, n)
		}
		rows := rand.New(rand.NewPCG(s.Seed, 0)).Perm(n)
		for f := range s.Repeats {
			from, to := f*n/s.Repeats, (f+1)*n/s.Repeats
			learn := append(append([]int(nil), rows[:from]...), rows[to:]...)
			all = append(all, split{s.Seed, learn, rows[from:to]})
		}
		return all, nil
	}
	learnt := int(math.Round(s.Fraction * float64(n)))
	if learnt == 0 || learnt == n {
		return nil, fmt.Errorf("--train-fraction %g of %d rows leaves nothing to learn or to judge", s.Fraction, n)
	}
	for r := range uint64(s.Repeats) {
		rows := rand.New(rand.NewPCG(s.Seed+r, 0)).Perm(n)
		all = append(all, split{s.Seed + r, rows[:learnt], rows[learnt:]})
	}
	return all, nil
}

// splits judges a file by repeated splits.
func (e *Evaluation) splits(ctx context.Context, path string, errOut io.Writer) (*report.Report, error) {
	cfg, features := e.tableConfig()
	table, err := loadTable(path, e.Data.Of(features), e.Late.OnMissing)
	if err != nil {
		return nil, err
	}
	if table.LeftOut > 0 {
		fmt.Fprintf(errOut, "%s: %d rows without a label or with too few features are left out; on_missing is %s\n", table.Name, table.LeftOut, e.Late.OnMissing)
	}
	cfg.Features = table.Features
	cfg.Classes.Max = max(cfg.Classes.Max, len(table.Classes))
	if e.Selection.First > 0 || e.Selection.Shuffle != nil {
		return nil, errors.New("--first and --shuffle choose rows of a stream; --mode " + e.Mode + " has its own permutations: give --seed")
	}
	all, err := e.Cut.cut(e.Mode, len(table.Labels))
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	bar := terminal.NewProgress(errOut, len(all), table.Name)
	defer bar.Close()
	var reports []*report.Report
	for _, s := range all {
		if ctx.Err() != nil {
			return nil, errors.New("eval: interrupted")
		}
		r, err := e.split(table, cfg, s)
		if err != nil {
			return nil, err
		}
		r.Seed = s.seed
		reports = append(reports, r)
		bar.Add(1)
	}
	r := report.Mean(reports)
	r.PeakRSS = process.PeakRSS()
	return r, nil
}

// tableConfig is the configuration of the model that learns a table, and the
// columns that it takes; nil: all.
func (e *Evaluation) tableConfig() (cfg online.Config, features []string) {
	cfg = online.DefaultConfig()
	if e.config != nil {
		cfg, features = e.learnt, e.learnt.Features
	}
	e.adjust(&cfg)
	return cfg, features
}

// split learns one split and judges it, by labels that are not flipped.
func (e *Evaluation) split(table *dataset.Table, cfg online.Config, s split) (*report.Report, error) {
	learn, judge := table.Samples(s.learn), table.Samples(s.judge)
	if e.Cut.Flips > 0 {
		learn.Flip(e.Cut.Flips, s.seed)
	}
	start := time.Now()
	learner, err := e.learn(table, cfg, learn)
	if err != nil {
		return nil, err
	}
	taken := time.Since(start)
	scores, err := judgeAll(learner.Posterior(), table.Classes, judge, e.Cut.Flips > 0)
	if err != nil {
		return nil, err
	}
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	r := &report.Report{
		Dataset: table.Name, Mode: e.Mode, Samples: uint64(learn.Len()), Classes: table.Classes,
		Error: scores.Error, NLL: scores.NLL, Brier: scores.Brier, ECE: scores.ECE, MacroF1: scores.MacroF1,
		Balanced: scores.Balanced, Kappa: scores.Kappa, PerClass: scores.PerClass,
		Seconds: taken.Seconds(), StateBytes: len(state), Digest: learner.Digest(), Curve: []report.CurvePoint{}, Runs: []report.Run{},
	}
	return r, nil
}

// learn takes samples through one pass online, in their order, or through many
// offline.
func (e *Evaluation) learn(table *dataset.Table, cfg online.Config, learn *dataset.Part) (*online.Learner, error) {
	if e.Cut.Offline {
		t, err := train.New(cfg, e.Cut.How, table.Classes, learn)
		if err != nil {
			return nil, exit.With(exit.Config, err)
		}
		for !t.Done() {
			if _, err := t.Step(); err != nil {
				return nil, err
			}
		}
		return t.Learner()
	}
	if len(cfg.Classes.Names) == 0 {
		cfg.Classes.Names = table.Classes
	}
	l, err := online.NewLearner(cfg)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	ev := online.Event{Kind: online.Observe, X: make([]float64, len(table.Features))}
	for i := range learn.Len() {
		learn.Row(i, ev.X)
		ev.Label = table.Classes[learn.Class(i)]
		l.Add(&ev)
	}
	l.Add(&online.Event{Kind: online.Boundary})
	return l, nil
}

// judgeAll scores the posterior's predictions. What it publishes are the
// probabilities of labels, which may be wrong; truth asks for those of the true
// classes, with the learnt label noise taken out,
//
//	p_true = (p − ε/C)/(1−ε)
func judgeAll(p *model.Posterior, classes []string, judge *dataset.Part, truth bool) (score.Scores, error) {
	at := make(map[string]int, len(classes))
	for k, name := range p.Classes() {
		at[name] = k
	}
	const together = 64
	d := len(judge.Table.Features)
	x, ws := make([]float64, together*d), model.NewWorkspace()
	var probs []float64
	var j score.Judge
	for i := range judge.Len() {
		if i%together == 0 {
			n := min(together, judge.Len()-i)
			for r := range n {
				judge.Row(i+r, x[r*d:(r+1)*d])
			}
			if err := p.Load(x[:n*d], n, ws); err != nil {
				return score.Scores{}, err
			}
		}
		probs, _ = p.AnswerTo(probs, i%together, -1, 0, ws)
		if eps := p.Eps(); truth && eps > 0 {
			for i, v := range probs {
				probs[i] = max((v-eps/float64(len(p.Latent)))/(1-eps), 0)
			}
		}
		k, known := at[classes[judge.Class(i)]]
		if !known {
			k = len(at) // a class that was not learnt: its probability is 0
		}
		j.Add(probs, k)
	}
	return j.Scores(p.Classes()), nil
}
