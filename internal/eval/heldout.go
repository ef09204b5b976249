package eval

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
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

// Splits describes how a table is cut repeatedly into rows to learn and rows to
// judge, and how the first are learnt.
type Splits struct {
	Fraction float64      // learnt, in mode holdout
	Repeats  int          // of holdout; folds of cv
	Seed     uint64       // of the first permutation
	Flips    float64      // fraction of the learnt labels that is replaced
	How      train.Config // offline
	Offline  bool         // many passes instead of one online
	By       string       // SplitRows, SplitDevice or SplitBlock; "": SplitRows
	Folds    int          // of devices or recordings; 0: each of at most 20 devices, else 10
	Force    bool         // rows are drawn even if they are windows that share rows
}

// split is one way to cut a table.
type split struct {
	seed         uint64
	learn, judge []int
	held         string // the device or recordings that judge; "": rows
}

// cuts are the ways to cut a table. Each is made when it is needed: of a large table they would
// not fit in memory together.
type cuts struct {
	n, learnt int // splits; rows that they learn together
	at        func(i int) split
}

// cut returns the splits of a table. In mode holdout every repeat has a
// permutation of its own; in mode cv one permutation is cut into folds.
func (s *Splits) cut(mode string, t *dataset.Table) (cuts, error) {
	if s.By != "" && s.By != SplitRows {
		return s.cutGroups(t)
	}
	n, repeats := len(t.Labels), s.Repeats
	if mode == "cv" {
		if repeats < 2 || repeats > n {
			return cuts{}, fmt.Errorf("%d folds of %s: want 2 to %d", repeats, terminal.Count(n, "row"), n)
		}
		rows := rand.New(rand.NewPCG(s.Seed, 0)).Perm(n)
		begin := func(fold int) int { return int(int64(fold) * int64(n) / int64(repeats)) }
		return cuts{repeats, (repeats - 1) * n, func(f int) split {
			from, to := begin(f), begin(f+1)
			return split{seed: s.Seed, learn: slices.Concat(rows[:from], rows[to:]), judge: rows[from:to]}
		}}, nil
	}
	learnt := int(math.Round(s.Fraction * float64(n)))
	if learnt == 0 || learnt == n {
		return cuts{}, fmt.Errorf("--train-fraction %g of %s leaves nothing to learn or to judge", s.Fraction, terminal.Count(n, "row"))
	}
	return cuts{repeats, repeats * learnt, func(r int) split {
		seed := s.Seed + uint64(r)
		rows := rand.New(rand.NewPCG(seed, 0)).Perm(n)
		return split{seed: seed, learn: rows[:learnt], judge: rows[learnt:]}
	}}, nil
}

// splits evaluates a file by repeated splits.
func (e *Evaluation) splits(ctx context.Context, path string, errOut io.Writer) (*report.Report, error) {
	cfg, features := e.tableConfig()
	table, err := loadTable(ctx, path, &e.Data, features, e.Arrival.OnMissing, errOut)
	if err != nil {
		return nil, err
	}
	warnOfLabels(errOut, path, e.config, e.Model, table.Classes)
	printLeftOut(table, e.Arrival.OnMissing, errOut)
	if err := dataset.CheckWidth(path, table.Features); err != nil {
		return nil, err
	}
	cfg.Features = table.Features
	cfg.Classes.Max = max(cfg.Classes.Max, len(table.Classes))
	if err := e.checkOverlap(errOut, table.Name); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	all, err := e.Splits.cut(e.Mode, table)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	bar := terminal.NewProgress(errOut, all.learnt, table.Name)
	defer bar.Close()
	var reports []*report.Report
	for i := range all.n {
		s := all.at(i)
		r, err := e.split(ctx, table, cfg, s, bar.Add)
		if err != nil {
			return nil, err
		}
		r.Seed, r.Held = s.seed, s.held
		if s.held != "" {
			r.Judges = uint64(len(s.judge))
		}
		reports = append(reports, r)
	}
	r := report.Mean(reports)
	r.PeakRSS = process.PeakRSS()
	return r, nil
}

// tableConfig returns the configuration of the model that learns a table, and the
// columns of its features; nil: all.
func (e *Evaluation) tableConfig() (cfg online.Config, features []string) {
	cfg = online.DefaultConfig()
	if e.config != nil {
		cfg, features = e.learnt, e.learnt.Features
	}
	e.apply(&cfg, e.Splits.Offline)
	return cfg, features
}

// split learns one split and judges it by its true labels. progress counts the learnt rows.
func (e *Evaluation) split(ctx context.Context, table *dataset.Table, cfg online.Config, s split, progress func(int)) (*report.Report, error) {
	learn, judge := table.Samples(s.learn), table.Samples(s.judge)
	if e.Splits.Flips > 0 {
		learn.Flip(e.Splits.Flips, s.seed)
	}
	start := time.Now()
	learner, err := e.learn(ctx, cfg, learn, progress)
	if err != nil {
		return nil, err
	}
	taken := time.Since(start)
	scores, err := judgeAll(learner.Posterior(), table.Classes, judge, e.Splits.Flips > 0)
	if err != nil {
		return nil, err
	}
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	r := &report.Report{
		Dataset: table.Name, Mode: e.Mode, Samples: uint64(learn.Len()), Classes: table.Classes, Figures: report.FiguresOf(&scores),
		Seconds: taken.Seconds(), StateBytes: len(state), Digest: learner.Digest(), Curve: []report.CurvePoint{}, Runs: []report.Run{},
		Charts: report.ChartsOf(&scores),
	}
	r.Charts.Settings = settings(learner.Config())
	return r, nil
}

// learn learns samples in one pass online, in their order, or in many offline.
func (e *Evaluation) learn(ctx context.Context, cfg online.Config, learn *dataset.Part, progress func(int)) (*online.Learner, error) {
	if e.Splits.Offline {
		defer progress(learn.Len())
		if err := checkEnough(learn); err != nil {
			return nil, err
		}
		t, err := train.New(cfg, e.Splits.How, learn.Table.Classes, learn)
		if err != nil {
			return nil, exit.With(exit.Config, err)
		}
		for !t.Done() {
			if ctx.Err() != nil {
				return nil, ErrInterrupted
			}
			if _, err := t.Step(); err != nil {
				return nil, err
			}
		}
		return t.Learner()
	}
	p, err := newHeldOut(cfg, learn.Table.Classes)
	if err != nil {
		return nil, err
	}
	if _, err := Run(ctx, &partRows{part: learn}, p, progress); err != nil {
		return nil, err
	}
	p.learner.Add(&online.Event{Kind: online.Boundary})
	return p.learner, nil
}

// heldOut learns every row as the daemon does. Rows that it does not learn judge
// the result afterwards (judgeAll), so that it has no curve.
type heldOut struct {
	learner *online.Learner
	event   online.Event // reused
}

func newHeldOut(cfg online.Config, classes []string) (*heldOut, error) {
	if len(cfg.Classes.Names) == 0 {
		cfg.Classes.Names = classes
	}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return &heldOut{learner: learner, event: online.Event{Kind: online.Observe}}, nil
}

func (h *heldOut) Row(row *dataset.Row) error {
	h.event.X, h.event.Label = row.X, row.Label
	h.learner.Add(&h.event)
	return nil
}

func (h *heldOut) Position() uint64 { return 0 }

func (h *heldOut) Scores() score.Scores { return h.learner.Scores() }

// partRows are the rows of a part of a table, in its order.
type partRows struct {
	part *dataset.Part
	next int
}

func (p *partRows) Next(row *dataset.Row) error {
	if p.next == p.part.Len() {
		return io.EOF
	}
	if row.X == nil {
		row.X = make([]float64, len(p.part.Table.Features))
	}
	p.part.Row(p.next, row.X)
	row.Label = p.part.Table.Classes[p.part.Class(p.next)]
	p.next++
	row.Number = p.next
	return nil
}

// judgeAll scores the predictions of a posterior. A class that it does not know has the
// probability 0. These are the probabilities of labels, which may be wrong; with truth they
// become those of the true classes, without the learnt label noise ε,
//
//	p_true = (p − ε/C)/(1−ε)
func judgeAll(p *model.Posterior, classes []string, judge *dataset.Part, truth bool) (score.Scores, error) {
	var book report.ClassBook
	for _, name := range p.Classes() {
		book.ClassOf(name)
	}
	const batch = 64
	d := len(judge.Table.Features)
	x, ws := make([]float64, batch*d), model.NewWorkspace()
	var probs []float64
	var j score.Judge
	for i := range judge.Len() {
		if i%batch == 0 {
			n := min(batch, judge.Len()-i)
			for r := range n {
				judge.Row(i+r, x[r*d:(r+1)*d])
			}
			if err := p.Load(x[:n*d], n, ws); err != nil {
				return score.Scores{}, err
			}
		}
		probs, _ = p.AnswerTo(probs, i%batch, 0, ws)
		if eps := p.Eps(); truth && eps > 0 {
			for i, v := range probs {
				probs[i] = max((v-eps/float64(len(p.Latent)))/(1-eps), 0)
			}
		}
		j.Add(probs, book.ClassOf(classes[judge.Class(i)]))
	}
	return j.Scores(book.Names), nil
}
