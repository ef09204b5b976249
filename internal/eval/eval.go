package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/online/active"
	"edge/online/conformal"
	"edge/online/drift"
	"edge/online/train"
	"edge/stream/codec"
)

// Evaluation is what the flags of eval ask for.
type Evaluation struct {
	ConfigPath, Model string
	Data              dataset.Options
	config            *config.Config // at configPath; nil: none
	learnt            online.Config  // of the model there
	Selection         dataset.Selection
	Seeds             int
	Batch, Inducing   int
	Kernel            string
	Noise             float64
	Mode              string // prequential, holdout or cv
	Cut               Splits
	Coverage          float64
	Abstain           conformal.Abstain
	Late              Delayed
	Ask               Questions
	Drift             drift.Config
	Weights           online.ClassWeights
	Undeclared        bool
	Confirm           int
	Abrupt            int
}

// New returns the evaluation that no flag changes.
func New() *Evaluation {
	return &Evaluation{
		Seeds: 1, Noise: -1, Mode: "prequential", Coverage: -1,
		Cut:     Splits{Fraction: 0.9, Repeats: 20, Seed: 1, How: train.Default()},
		Late:    Delayed{Fraction: 1},
		Ask:     Questions{Budgets: []float64{active.Default().Budget}},
		Abstain: conformal.Abstain{NoveltyAbove: -1, ConfidenceBelow: -1},
	}
}

// check reports what the flags cannot mean together, and reads the configuration.
func (e *Evaluation) check(files []string) error {
	switch {
	case e.Mode != "prequential" && e.Mode != "holdout" && e.Mode != "cv":
		return fmt.Errorf("--mode %s: want prequential, holdout or cv", e.Mode)
	case e.Mode == "prequential" && (e.Cut.Offline || e.Cut.Flips > 0):
		return errors.New("--passes and --flip-labels: give --mode holdout or cv, too")
	case e.Mode != "prequential" && e.Seeds > 1:
		return errors.New("--seeds is for --mode prequential; --mode holdout has --repeats and --seed")
	case e.Late.check() != nil:
		return e.Late.check()
	case e.Mode != "prequential" && !e.Late.Plain():
		return errors.New("--delay, --label-fraction and --missing are for --mode prequential")
	case e.Cut.Repeats < 1 || e.Cut.Fraction <= 0 || e.Cut.Fraction >= 1 || e.Cut.Flips < 0 || e.Cut.Flips >= 1:
		return errors.New("--repeats, --train-fraction and --flip-labels: want a number above 0 and fractions below 1")
	case e.Seeds < 1:
		return errors.New("--seeds: want 1 or more")
	case len(e.Ask.Strategies) > 0 && (e.Mode != "prequential" || !e.Late.Plain()):
		return errors.New("--query is for --mode prequential, without labels that come late or never")
	case e.Ask.Full && len(e.Ask.Strategies) == 0:
		return errors.New("--against-full: give --query, too")
	case e.Selection.Within != nil && e.Selection.Shuffle == nil:
		return errors.New("--shuffle-within: give --shuffle SEED, too")
	case e.Selection.Within != nil && len(files) > 1:
		return errors.New("--shuffle-within describes one file: give one file")
	case slices.ContainsFunc(e.Selection.Within, func(n int) bool { return n < 1 }):
		return errors.New("--shuffle-within: want sizes above 0, such as 445,1244")
	case e.Selection.First < 0 || e.Batch < 0 || e.Inducing < 0 || e.Abrupt < 0:
		return errors.New("--first, --batch, --inducing and --abrupt: want a number above 0")
	case e.Model != "" && e.ConfigPath == "":
		return errors.New("--model names a model of a configuration: give -c FILE, too")
	}
	if _, err := e.Ask.askings(); err != nil {
		return err
	}
	return nil
}

// Prepare checks what is asked for and reads the configuration.
func (e *Evaluation) Prepare(files []string) error {
	e.Late.Seed = e.Cut.Seed
	if err := e.check(files); err != nil {
		return exit.With(exit.Usage, err)
	}
	return e.configure()
}

// Each evaluates one file, once for each strategy and budget of --query, and
// passes every report to use.
func (e *Evaluation) Each(ctx context.Context, file string, errOut io.Writer, use func(*report.Report) error) error {
	askings, err := e.Ask.askings()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	for _, ask := range askings {
		r, err := e.file(ctx, file, ask, errOut)
		if err != nil {
			return err
		}
		if err := use(r); err != nil {
			return err
		}
	}
	return nil
}

// file evaluates one file, with as many shuffles as were asked for.
func (e *Evaluation) file(ctx context.Context, path string, ask active.Config, errOut io.Writer) (*report.Report, error) {
	if e.Mode != "prequential" {
		return e.splits(ctx, path, errOut)
	}
	census, err := dataset.Summarize(path, e.Data.Of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	var reports []*report.Report
	for i := range e.Seeds {
		s := e.Selection
		if s.Shuffle != nil {
			seed := *s.Shuffle + uint64(i)
			s.Shuffle = &seed
		}
		r, err := e.once(ctx, path, s, census, ask, i, errOut)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	if e.Seeds == 1 {
		return reports[0], nil
	}
	return report.Mean(reports), nil
}

// stream is the configuration of the model that learns d, and the rows of s as
// it takes them.
func (e *Evaluation) stream(d *dataset.File, s dataset.Selection, census dataset.Summary) (cfg online.Config, rows *driftingRows, err error) {
	cfg = e.learnerConfig(d, census)
	all, err := s.Of(d)
	return cfg, &driftingRows{rows: all, abrupt: e.Abrupt}, err
}

// Usable opens a file and returns the rows of the first order that can be learnt,
// and the configuration of the model that learns them. Close the file.
func (e *Evaluation) Usable(path string) (d *dataset.File, rows dataset.Rows, cfg online.Config, classes []string, err error) {
	census, err := dataset.Summarize(path, e.Data.Of(e.learnt.Features))
	if err != nil {
		return nil, nil, cfg, nil, err
	}
	if d, err = dataset.Open(path, e.Data.Of(e.learnt.Features)); err != nil {
		return nil, nil, cfg, nil, err
	}
	cfg, all, err := e.stream(d, e.Selection, census)
	if err != nil {
		return nil, nil, cfg, nil, errors.Join(err, d.Close())
	}
	return d, &usableRows{rows: all, how: e.Late.OnMissing}, cfg, census.Classes, nil
}

// once evaluates one file in one order; repeat is how many times that was done
// before in this one.
func (e *Evaluation) once(ctx context.Context, path string, s dataset.Selection, census dataset.Summary, ask active.Config, repeat int, errOut io.Writer) (*report.Report, error) {
	d, err := dataset.Open(path, e.Data.Of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	e.Data.Warn(errOut, path, d)
	cfg, rows, err := e.stream(d, s, census)
	if err != nil {
		return nil, err
	}
	cfg.ApplyDefaults(ask)
	if s.Shuffle == nil {
		cfg.Seed += uint64(repeat)
	}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	total := census.Rows
	if s.First > 0 {
		total = min(total, s.First)
	}
	bar := terminal.NewProgress(errOut, total, d.Name)
	defer bar.Close()
	var result *report.Report
	late, leftOut := e.Late.anew(), 0
	switch {
	case ask.Enabled():
		size := max(e.Batch, 1)
		if ask.Strategy == report.EveryLabel {
			size = cfg.Batch.MaxSize
		}
		usable := &usableRows{rows: rows, how: e.Late.OnMissing, means: func() []float64 { return meansOf(learner.Posterior()) }}
		result, err = askingEval(ctx, learner, usable, d.Name, ask, size, total, bar.Add)
		leftOut = usable.leftOut
	case e.Late.Plain() && census.Gaps == 0:
		result, err = prequential(ctx, learner, rows, d.Name, total, bar.Add)
	default:
		result, err = late.run(ctx, learner, rows, d.Name, bar.Add)
		leftOut = late.rejected
	}
	if err == nil && leftOut == total {
		err = fmt.Errorf("%s: %w", path, errNoRows)
	} else if err == nil && leftOut > 0 {
		fmt.Fprintf(errOut, "%s: %d of %d rows lack features or a label and are left out; on_missing is %s: --on-missing %s takes those that have some features\n",
			d.Name, leftOut, total, e.Late.OnMissing, codec.OnMissingMarginalise)
	}
	if c := learner.Counters(); err == nil && c.StepsRefused+c.LabelsRefused > 0 {
		fmt.Fprintf(errOut, "%s: not learnt: %d minibatches that gave no sound posterior, %d labels beyond the declared classes or classes.max\n",
			d.Name, c.StepsRefused, c.LabelsRefused)
	}
	if err != nil {
		return nil, err
	}
	if result.Seed = cfg.Seed; s.Shuffle != nil {
		result.Seed = *s.Shuffle
	}
	return result, nil
}

// configure reads the configuration, and takes from it what no flag sets.
func (e *Evaluation) configure() error {
	if err := e.Data.Check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	if e.ConfigPath == "" {
		e.Late.OnMissing = cmp.Or(e.Late.OnMissing, codec.OnMissingMarginalise)
		return nil
	}
	c, err := config.Load(e.ConfigPath)
	if err != nil {
		return err
	}
	if e.learnt, err = c.Learner(e.Model); err != nil {
		return exit.With(exit.Config, err)
	}
	e.config = c
	e.Late.OnMissing = cmp.Or(e.Late.OnMissing, onMissing(c, e.Model))
	return nil
}

// learnerConfig is the configuration of the model that learns d.
func (e *Evaluation) learnerConfig(d *dataset.File, census dataset.Summary) online.Config {
	cfg := e.learnt
	if e.config == nil {
		cfg = online.DefaultConfig()
		cfg.Inducing = 0 // depends on what is asked for
		cfg.Features = d.Features
		cfg.Classes.Names = census.Classes
		cfg.Classes.Max = max(cfg.Classes.Max, len(census.Classes))
	} else if c := e.config; len(e.Ask.Strategies) > 0 && c.Models[cmp.Or(e.Model, slices.Sorted(maps.Keys(c.Models))[0])].Learner.Inducing == 0 {
		cfg.Inducing = 0 // depends on what --query asks for, not the model
	}
	e.adjust(&cfg)
	return cfg
}

// adjust puts what the flags say into the configuration.
func (e *Evaluation) adjust(cfg *online.Config) {
	if e.Batch > 0 && !e.Cut.Offline {
		cfg.Batch.MaxSize = e.Batch
	}
	if e.Inducing > 0 {
		cfg.Inducing, cfg.Window = e.Inducing, 2*e.Inducing
	}
	if e.Kernel != "" {
		cfg.Kernel = online.Kernel(e.Kernel)
	}
	if e.Noise >= 0 {
		cfg.LabelNoise.Start = e.Noise
	}
	if e.Coverage >= 0 {
		cfg.Conformal.Coverage = e.Coverage
	}
	if e.Undeclared {
		cfg.Classes.Names, cfg.Classes.Open = nil, true
	}
	cfg.Classes.Confirm = cmp.Or(e.Confirm, cfg.Classes.Confirm)
	cfg.ClassWeights.Mode, cfg.ClassWeights.Max = cmp.Or(e.Weights.Mode, cfg.ClassWeights.Mode), cmp.Or(e.Weights.Max, cfg.ClassWeights.Max)
	d := &cfg.Drift
	d.Detector, d.On, d.Action = cmp.Or(e.Drift.Detector, d.Detector), cmp.Or(e.Drift.On, d.On), cmp.Or(e.Drift.Action, d.Action)
	d.Delta, d.Lambda = cmp.Or(e.Drift.Delta, d.Delta), cmp.Or(e.Drift.Lambda, d.Lambda)
	if e.Abstain.NoveltyAbove >= 0 {
		cfg.Abstain.NoveltyAbove = e.Abstain.NoveltyAbove
	}
	if e.Abstain.ConfidenceBelow >= 0 {
		cfg.Abstain.ConfidenceBelow = e.Abstain.ConfidenceBelow
	}
}

// driftingRows lets the features drift.
type driftingRows struct {
	rows   dataset.Rows
	x      []float64
	abrupt int // rows after which features take the place of others, and of their own again; 0: never
	taken  int
}

func (p *driftingRows) Next(row *dataset.Row) error {
	if err := p.rows.Next(row); err != nil || p.abrupt == 0 {
		return err
	}
	p.x = append(p.x[:0], row.X...)
	turn := p.taken / p.abrupt % 2 * (len(p.x) + 1) / 2
	p.taken++
	for i := range row.X {
		row.X[i] = p.x[(i+turn)%len(p.x)]
	}
	return nil
}

// earlier keeps states of a learner, for a rollback when the stream has changed.
type earlier struct {
	states [][]byte // latest last
	since  uint64   // labels since then
}

const (
	stateEvery = 500 // labels
	keptStates = 20
)

// follow keeps a state now and then, or goes back to one of before the change.
func (e *earlier) follow(l *online.Learner, out *online.Outcome) {
	e.since++
	if out.Change == online.NoticeDrift && len(e.states) > 0 {
		at := len(e.states) - 1
		for before := e.since; at > 0 && before <= out.Since; at-- {
			before += stateEvery
		}
		l.Add(&online.Event{Kind: online.Replace, Name: online.OnlyModel, State: e.states[at]})
		e.states, e.since = e.states[:at+1], 0
		return
	}
	if e.since == stateEvery && l.WarmedUp() {
		state, _ := l.AppendBinary(nil)
		e.states = append(keepLast(e.states, keptStates-1), state)
	}
	e.since %= stateEvery
}

// prequential teaches total rows to learner and reports how it did. A minibatch
// that is not full at the end stays open, as it does in the daemon.
func prequential(ctx context.Context, learner *online.Learner, rows dataset.Rows, name string, total int, progress func(int)) (*report.Report, error) {
	var (
		row    dataset.Row
		curve  report.Curve
		tenths report.Tenths
		drifts = []report.Drift{}
		states earlier
		judged uint64
		taken  time.Duration
		ev     = online.Event{Kind: online.Observe}
	)
	for taught := 1; ; taught++ {
		if err := rows.Next(&row); errors.Is(err, io.EOF) {
			r, err := report.New(name, learner, curve, taken)
			if err == nil {
				r.Tenths, r.Drifts = tenths.List, drifts
			}
			return r, err
		} else if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errors.New("eval: interrupted")
		}
		ev.X, ev.Label = row.X, row.Label
		start := time.Now()
		outcome := learner.Add(&ev)
		taken += time.Since(start)
		progress(1)
		if taught*10/total > len(tenths.List) {
			tenths.Add(learner.Scores())
		}
		if outcome.Change == online.NoticeDrift {
			drifts = append(drifts, report.Drift{N: taught, Since: outcome.Since, Detail: outcome.Detail})
		}
		if learner.Config().Drift.Action == drift.ActionRollback {
			start := time.Now()
			states.follow(learner, &outcome)
			taken += time.Since(start)
		}
		if errors.Is(outcome.Refused, online.ErrClass) {
			continue // as the daemon does, which counts it
		}
		if judged++; curve.Due(judged) {
			curve.Add(learner.Scores())
		}
	}
}

// keepLast drops all but the last n, in place.
func keepLast[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return append(list[:0], list[len(list)-n:]...)
}
