package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"edge/internal/dataset"
	"edge/online"
	"edge/stream"
)

// evaluation is what the flags of eval ask for.
type evaluation struct {
	configPath, model string
	data              dataset.Options
	config            *Config       // at configPath; nil: none
	learnt            online.Config // of the model there
	selection         dataset.Selection
	seeds             int
	batch, inducing   int
	kernel            string
	noise             float64
	mode              string // prequential, holdout or cv
	cut               splits
	coverage          float64
	abstain           online.Abstain
	late              arrivals
	ask               questions
	drift             online.Drift
	weights           online.ClassWeights
	undeclared        bool
	confirm           int
	abrupt            int
}

// newEvaluation returns the evaluation that no flag changes.
func newEvaluation() *evaluation {
	return &evaluation{
		seeds: 1, noise: -1, mode: "prequential", coverage: -1,
		cut:     splits{fraction: 0.9, repeats: 20, seed: 1, how: online.DefaultTraining()},
		late:    arrivals{Fraction: 1},
		ask:     questions{budgets: []float64{online.DefaultAsking().Budget}},
		abstain: online.Abstain{NoveltyAbove: -1, ConfidenceBelow: -1},
	}
}

// check reports what the flags cannot mean together, and reads the configuration.
func (e *evaluation) check(files []string) error {
	switch {
	case e.mode != "prequential" && e.mode != "holdout" && e.mode != "cv":
		return fmt.Errorf("--mode %s: want prequential, holdout or cv", e.mode)
	case e.mode == "prequential" && (e.cut.offline || e.cut.flips > 0):
		return errors.New("--passes and --flip-labels: give --mode holdout or cv, too")
	case e.mode != "prequential" && e.seeds > 1:
		return errors.New("--seeds is for --mode prequential; --mode holdout has --repeats and --seed")
	case e.late.check() != nil:
		return e.late.check()
	case e.mode != "prequential" && !e.late.plain():
		return errors.New("--delay, --label-fraction and --missing are for --mode prequential")
	case e.cut.repeats < 1 || e.cut.fraction <= 0 || e.cut.fraction >= 1 || e.cut.flips < 0 || e.cut.flips >= 1:
		return errors.New("--repeats, --train-fraction and --flip-labels: want a number above 0 and fractions below 1")
	case e.seeds < 1:
		return errors.New("--seeds: want 1 or more")
	case len(e.ask.strategies) > 0 && (e.mode != "prequential" || !e.late.plain()):
		return errors.New("--query is for --mode prequential, without labels that come late or never")
	case e.ask.full && len(e.ask.strategies) == 0:
		return errors.New("--against-full: give --query, too")
	case e.selection.Within != nil && e.selection.Shuffle == nil:
		return errors.New("--shuffle-within: give --shuffle SEED, too")
	case e.selection.Within != nil && len(files) > 1:
		return errors.New("--shuffle-within describes one file: give one file")
	case slices.ContainsFunc(e.selection.Within, func(n int) bool { return n < 1 }):
		return errors.New("--shuffle-within: want sizes above 0, such as 445,1244")
	case e.selection.First < 0 || e.batch < 0 || e.inducing < 0 || e.abrupt < 0:
		return errors.New("--first, --batch, --inducing and --abrupt: want a number above 0")
	case e.model != "" && e.configPath == "":
		return errors.New("--model names a model of a configuration: give -c FILE, too")
	}
	if _, err := e.ask.askings(); err != nil {
		return err
	}
	return nil
}

// prepare checks what is asked for and reads the configuration.
func (e *evaluation) prepare(files []string) error {
	e.late.Seed = e.cut.seed
	if err := e.check(files); err != nil {
		return coded(exitUsage, err)
	}
	return e.configure()
}

// each evaluates one file, once for each strategy and budget of --query, and
// passes every report to use.
func (e *evaluation) each(ctx context.Context, file string, errOut io.Writer, use func(*Report) error) error {
	askings, err := e.ask.askings()
	if err != nil {
		return coded(exitUsage, err)
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
func (e *evaluation) file(ctx context.Context, path string, ask online.Asking, errOut io.Writer) (*Report, error) {
	if e.mode != "prequential" {
		return e.splits(ctx, path, errOut)
	}
	census, err := dataset.TakeCensus(path, e.data.Of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	var reports []*Report
	for i := range e.seeds {
		s := e.selection
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
	if e.seeds == 1 {
		return reports[0], nil
	}
	return meanReport(reports), nil
}

// stream is the configuration of the model that learns d, and the rows of s as
// it takes them.
func (e *evaluation) stream(d *dataset.File, s dataset.Selection, census dataset.Census) (cfg online.Config, rows *driftingRows, err error) {
	cfg = e.learnerConfig(d, census)
	all, err := s.Of(d)
	return cfg, &driftingRows{rows: all, abrupt: e.abrupt}, err
}

// usable opens a file and returns the rows of the first order that can be learnt,
// and the configuration of the model that learns them. Close the file.
func (e *evaluation) usable(path string) (d *dataset.File, rows dataset.Rows, cfg online.Config, classes []string, err error) {
	census, err := dataset.TakeCensus(path, e.data.Of(e.learnt.Features))
	if err != nil {
		return nil, nil, cfg, nil, err
	}
	if d, err = dataset.Open(path, e.data.Of(e.learnt.Features)); err != nil {
		return nil, nil, cfg, nil, err
	}
	cfg, all, err := e.stream(d, e.selection, census)
	if err != nil {
		return nil, nil, cfg, nil, errors.Join(err, d.Close())
	}
	return d, &usableRows{rows: all, how: e.late.OnMissing}, cfg, census.Classes, nil
}

// once evaluates one file in one order; repeat is how many times that was done
// before in this one.
func (e *evaluation) once(ctx context.Context, path string, s dataset.Selection, census dataset.Census, ask online.Asking, repeat int, errOut io.Writer) (*Report, error) {
	d, err := dataset.Open(path, e.data.Of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	e.data.Warn(errOut, path, d)
	cfg, rows, err := e.stream(d, s, census)
	if err != nil {
		return nil, err
	}
	ask.Suit(&cfg)
	if s.Shuffle == nil {
		cfg.Seed += uint64(repeat)
	}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		return nil, coded(exitConfig, err)
	}
	total := census.Rows
	if s.First > 0 {
		total = min(total, s.First)
	}
	bar := newProgress(errOut, total, d.Name)
	defer bar.Close()
	var report *Report
	late, leftOut := e.late.anew(), 0
	switch {
	case ask.Enabled():
		size := max(e.batch, 1)
		if ask.Strategy == everyLabel {
			size = cfg.Batch.MaxSize
		}
		usable := &usableRows{rows: rows, how: e.late.OnMissing, means: func() []float64 { return meansOf(learner.Posterior()) }}
		report, err = askingEval(ctx, learner, usable, d.Name, ask, size, total, bar.Add)
		leftOut = usable.leftOut
	case e.late.plain() && census.Gaps == 0:
		report, err = prequential(ctx, learner, rows, d.Name, total, bar.Add)
	default:
		report, err = late.run(ctx, learner, rows, d.Name, bar.Add)
		leftOut = late.rejected
	}
	if err == nil && leftOut == total {
		err = fmt.Errorf("%s: %w", path, errNoRows)
	} else if err == nil && leftOut > 0 {
		fmt.Fprintf(errOut, "%s: %d of %d rows lack features or a label and are left out; on_missing is %s: --on-missing %s takes those that have some features\n",
			d.Name, leftOut, total, e.late.OnMissing, stream.OnMissingMarginalise)
	}
	if c := learner.Counters(); err == nil && c.StepsRefused+c.LabelsRefused > 0 {
		fmt.Fprintf(errOut, "%s: not learnt: %d minibatches that gave no sound posterior, %d labels beyond the declared classes or classes.max\n",
			d.Name, c.StepsRefused, c.LabelsRefused)
	}
	if err != nil {
		return nil, err
	}
	if report.seed = cfg.Seed; s.Shuffle != nil {
		report.seed = *s.Shuffle
	}
	return report, nil
}

// configure reads the configuration, and takes from it what no flag sets.
func (e *evaluation) configure() error {
	if err := e.data.Check(); err != nil {
		return coded(exitUsage, err)
	}
	if e.configPath == "" {
		e.late.OnMissing = cmp.Or(e.late.OnMissing, stream.OnMissingMarginalise)
		return nil
	}
	c, err := LoadConfig(e.configPath)
	if err != nil {
		return err
	}
	if e.learnt, err = c.Learner(e.model); err != nil {
		return coded(exitConfig, err)
	}
	e.config = c
	e.late.OnMissing = cmp.Or(e.late.OnMissing, onMissing(c, e.model))
	return nil
}

// learnerConfig is the configuration of the model that learns d.
func (e *evaluation) learnerConfig(d *dataset.File, census dataset.Census) online.Config {
	cfg := e.learnt
	if e.config == nil {
		cfg = online.DefaultConfig()
		cfg.Inducing = 0 // depends on what is asked for
		cfg.Features = d.Features
		cfg.Classes.Names = census.Classes
		cfg.Classes.Max = max(cfg.Classes.Max, len(census.Classes))
	} else if c := e.config; len(e.ask.strategies) > 0 && c.Models[cmp.Or(e.model, slices.Sorted(maps.Keys(c.Models))[0])].Learner.Inducing == 0 {
		cfg.Inducing = 0 // depends on what --query asks for, not the model
	}
	e.adjust(&cfg)
	return cfg
}

// adjust puts what the flags say into the configuration.
func (e *evaluation) adjust(cfg *online.Config) {
	if e.batch > 0 && !e.cut.offline {
		cfg.Batch.MaxSize = e.batch
	}
	if e.inducing > 0 {
		cfg.Inducing, cfg.Window = e.inducing, 2*e.inducing
	}
	if e.kernel != "" {
		cfg.Kernel = online.Kernel(e.kernel)
	}
	if e.noise >= 0 {
		cfg.LabelNoise.Start = e.noise
	}
	if e.coverage >= 0 {
		cfg.Conformal.Coverage = e.coverage
	}
	if e.undeclared {
		cfg.Classes.Names, cfg.Classes.Open = nil, true
	}
	cfg.Classes.Confirm = cmp.Or(e.confirm, cfg.Classes.Confirm)
	cfg.ClassWeights.Mode, cfg.ClassWeights.Max = cmp.Or(e.weights.Mode, cfg.ClassWeights.Mode), cmp.Or(e.weights.Max, cfg.ClassWeights.Max)
	d := &cfg.Drift
	d.Detector, d.On, d.Action = cmp.Or(e.drift.Detector, d.Detector), cmp.Or(e.drift.On, d.On), cmp.Or(e.drift.Action, d.Action)
	d.Delta, d.Lambda = cmp.Or(e.drift.Delta, d.Delta), cmp.Or(e.drift.Lambda, d.Lambda)
	if e.abstain.NoveltyAbove >= 0 {
		cfg.Abstain.NoveltyAbove = e.abstain.NoveltyAbove
	}
	if e.abstain.ConfidenceBelow >= 0 {
		cfg.Abstain.ConfidenceBelow = e.abstain.ConfidenceBelow
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
func prequential(ctx context.Context, learner *online.Learner, rows dataset.Rows, name string, total int, progress func(int)) (*Report, error) {
	var (
		row    dataset.Row
		curve  Curve
		tenths Tenths
		drifts = []DriftReport{}
		states earlier
		judged uint64
		taken  time.Duration
		ev     = online.Event{Kind: online.Observe}
	)
	for taught := 1; ; taught++ {
		if err := rows.Next(&row); errors.Is(err, io.EOF) {
			r, err := newReport(name, learner, curve, taken)
			if err == nil {
				r.Tenths, r.Drifts = tenths.list, drifts
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
		if taught*10/total > len(tenths.list) {
			tenths.Add(learner.Scores())
		}
		if outcome.Change == online.NoticeDrift {
			drifts = append(drifts, DriftReport{taught, outcome.Since, outcome.Detail})
		}
		if learner.Config().Drift.Action == online.ActionRollback {
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
