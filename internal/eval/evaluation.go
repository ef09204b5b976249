package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/online/active"
	"edge/online/conformal"
	"edge/online/train"
	"edge/stream/codec"
)

// Evaluation holds the options of edge eval.
type Evaluation struct {
	ConfigPath, Model string
	Data              dataset.Options
	Selection         dataset.Selection
	Seeds             int // repeats, in mode prequential
	Overrides
	Mode    string // prequential, holdout or cv
	Splits  Splits
	Arrival Arrival
	Queries Queries
	Labels  string // LabelsAtOnce or LabelsPerBatch; "": per minibatch of Batch, if that is given
	Swap    int    // rows after which features swap their columns; 0: never

	config *config.Config // at ConfigPath; nil without
	learnt online.Config  // of the model in it

	progress io.Writer // of the progress line, which begins with title; nil: errOut, and the file's name
	title    string
}

// New returns the options of edge eval without flags.
func New() *Evaluation {
	return &Evaluation{
		Seeds: 1, Mode: "prequential",
		Overrides: Overrides{Noise: -1, Coverage: -1, Abstain: conformal.Abstain{NoveltyAbove: -1, ConfidenceBelow: -1}},
		Splits:    Splits{Fraction: 0.9, Repeats: 20, Seed: 1, How: train.Default()},
		Arrival:   Arrival{Fraction: 1},
		Queries:   Queries{Budgets: []float64{active.Default().Budget}},
	}
}

// check reports options that contradict each other or are out of range.
func (e *Evaluation) check(files []string) error {
	if err := cmp.Or(e.Selection.Check(), e.checkRanges()); err != nil {
		return err
	}
	switch {
	case e.Mode != "prequential" && e.Mode != "holdout" && e.Mode != "cv":
		return fmt.Errorf("--mode %s: want prequential, holdout or cv", e.Mode)
	case e.Mode == "prequential" && (e.Splits.Offline || e.Splits.Flips > 0):
		return errors.New("--passes and --flip-labels need --mode holdout or cv")
	case e.Mode != "prequential" && e.Seeds > 1:
		return errors.New("--seeds is for scores over the stream, not for held-out rows")
	case e.Mode != "prequential" && !e.Arrival.Plain():
		return errors.New("late or missing labels and features are for scores over the stream, not for held-out rows")
	case e.Mode != "prequential" && (e.Selection.First > 0 || e.Selection.Shuffle != nil):
		return errors.New("--first and --shuffle select rows of a stream; held-out rows have permutations of their own: give --seed")
	case len(e.Queries.Strategies) > 0 && (e.Mode != "prequential" || !e.Arrival.Plain()):
		return errors.New("--query is for --mode prequential, without late or missing labels")
	case e.Queries.Full && len(e.Queries.Strategies) == 0:
		return errors.New("--against-full needs --query")
	case e.Selection.Within != nil && len(files) > 1:
		return errors.New("--shuffle-within describes one file: give one file")
	case e.Model != "" && e.ConfigPath == "":
		return errors.New("--model names a model of a configuration: give -c FILE")
	case e.Data.Stream != "" && e.ConfigPath == "":
		return errors.New("--stream names a stream of a configuration: give -c FILE")
	}
	if err := errors.Join(e.checkLabels(), e.checkSplit(), e.Overrides.check()); err != nil {
		return err
	}
	if e.Splits.Offline {
		if err := checkFlags(&e.Splits.How); err != nil {
			return err
		}
	}
	_, err := e.Queries.each()
	return err
}

// checkRanges reports an option that is out of range. It names that one alone: a
// program may lack the flags of others.
func (e *Evaluation) checkRanges() error {
	s, a := &e.Splits, &e.Arrival
	for _, o := range []struct {
		flag string
		ok   bool
		want string
	}{
		{"batch", e.Batch >= 0, "0 or more"},
		{"inducing", e.Inducing >= 0, "0 or more"},
		{"abrupt", e.Swap >= 0, "0 or more"},
		{"delay", a.Delay >= 0, "0 or more"},
		{"label-fraction", a.Fraction >= 0 && a.Fraction <= 1, "0 to 1"},
		{"missing", a.Missing >= 0 && a.Missing < 1, "0 to below 1"},
		{"seeds", e.Seeds >= 1, "1 or more"},
		{"repeats", s.Repeats >= 1, "1 or more"},
		{"train-fraction", s.Fraction > 0 && s.Fraction < 1, "above 0 and below 1"},
		{"flip-labels", s.Flips >= 0 && s.Flips < 1, "0 to below 1"},
	} {
		if !o.ok {
			return fmt.Errorf("--%s: want %s", o.flag, o.want)
		}
	}
	return checkOnMissing(a.OnMissing)
}

// Prepare checks the options, reads the configuration and opens each file once, so that a
// file that is missing is known before others are evaluated.
func (e *Evaluation) Prepare(files []string) error {
	e.Arrival.Seed = e.Splits.Seed
	if err := e.check(files); err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := e.configure(); err != nil {
		return err
	}
	for _, path := range files {
		if err := dataset.Try(path, e.Data.Of(e.learnt.Features), e.Mode == "prequential"); err != nil {
			return err
		}
	}
	return nil
}

// Each evaluates one file, once for each strategy and budget of active learning,
// and passes every report to use.
func (e *Evaluation) Each(ctx context.Context, file string, errOut io.Writer, use func(*report.Report) error) error {
	queries, err := e.Queries.each()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	for _, q := range queries {
		r, err := e.file(ctx, file, q, errOut)
		if errors.Is(err, ErrInterrupted) {
			return fmt.Errorf("eval: %w", err)
		}
		if err != nil {
			return err
		}
		if err := use(r); err != nil {
			return err
		}
	}
	return nil
}

// file evaluates one file, with as many shuffles as the options demand.
func (e *Evaluation) file(ctx context.Context, path string, query active.Config, errOut io.Writer) (*report.Report, error) {
	if e.Mode != "prequential" {
		return e.splits(ctx, path, errOut)
	}
	columns, err := summarize(ctx, path, e.Data.Of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	e.Data.Warn(errOut, path, columns.Warning)
	warnOfLabels(errOut, path, e.config, e.Model, columns.Classes)
	if len(columns.Classes) == 0 && columns.Raw {
		return nil, columns.Tally.Unlabelled(path)
	} else if len(columns.Classes) == 0 {
		return nil, fmt.Errorf("%s: no row with a label", path)
	}
	if columns.Raw {
		fmt.Fprintf(errOut, "%s: %s\n", dataset.BaseName(path), columns.Tally)
	}
	if err := e.checkOverlap(errOut, dataset.BaseName(path)); err != nil {
		return nil, err
	}
	if n := len(columns.Classes); e.Selection.Shuffle == nil && columns.Runs == n && n > 1 && columns.Rows >= 2*n {
		remedy := "; --shuffle 1 judges them in random order"
		if e.overlaps() { // it would learn rows on both sides of the windows that it judges
			remedy = ""
		}
		fmt.Fprintf(errOut, "%s: the rows are sorted by their labels, so that each class is new when it comes, and stays%s\n", dataset.BaseName(path), remedy)
	}
	var reports []*report.Report
	for i := range e.Seeds {
		r, err := e.once(ctx, path, columns, query, i, errOut)
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

// ordered returns the rows of d that s selects, in the order in which the model receives them.
func (e *Evaluation) ordered(d *dataset.File, s dataset.Selection) (dataset.Rows, error) {
	all, err := s.Of(d)
	return &swappedRows{rows: all, period: e.Swap}, err
}

// Usable opens a file and returns the rows of the first order that can be learnt,
// and the configuration of the model that learns them. The caller closes the file.
func (e *Evaluation) Usable(ctx context.Context, path string) (d *dataset.File, rows dataset.Rows, cfg online.Config, classes []string, err error) {
	columns, err := dataset.Summarize(ctx, path, e.Data.Of(e.learnt.Features))
	if err != nil {
		return nil, nil, cfg, nil, err
	}
	if d, err = dataset.Open(path, e.Data.Of(e.learnt.Features)); err != nil {
		return nil, nil, cfg, nil, err
	}
	all, err := e.ordered(d, e.Selection)
	if err != nil {
		return nil, nil, cfg, nil, errors.Join(err, d.Close())
	}
	return d, &usableRows{rows: all, how: e.Arrival.OnMissing}, e.learnerConfig(d, columns), columns.Classes, nil
}

// once evaluates one file in one order; repeat counts the earlier evaluations of
// the file, which had other seeds.
func (e *Evaluation) once(ctx context.Context, path string, columns dataset.Summary, query active.Config, repeat int, errOut io.Writer) (*report.Report, error) {
	d, err := dataset.Open(path, e.Data.Of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := dataset.CheckWidth(path, d.Features); err != nil {
		return nil, err
	}
	cfg, s := e.learnerConfig(d, columns), e.Selection
	cfg.ApplyDefaults(query)
	if s.Shuffle != nil {
		seed := *s.Shuffle + uint64(repeat)
		s.Shuffle = &seed
	} else {
		cfg.Seed += uint64(repeat)
	}
	var rows dataset.Rows
	if err := await(ctx, func() (err error) { rows, err = e.ordered(d, s); return err }); err != nil {
		return nil, err
	}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	total := columns.Rows
	if s.First > 0 {
		total = min(total, s.First)
	}
	bar := e.bar(errOut, total, d.Name)
	defer bar.Close()
	policy, rows, leftOut := e.policy(learner, rows, query, total)
	result, err := runStream(ctx, d.Name, learner, rows, policy, bar.Add)
	if err != nil {
		return nil, err
	}
	if n := leftOut(); n == total {
		return nil, noRows(path, e.Arrival.OnMissing)
	} else if n > 0 {
		fmt.Fprintf(errOut, "%s: %d of %d rows are left out, which lack %s\n", d.Name, n, total, lack(e.Arrival.OnMissing, columns.Lacking > 0))
	}
	if c := learner.Counters(); c.StepsRefused+c.LabelsRefused > 0 {
		fmt.Fprintf(errOut, "%s: not learnt: %d minibatches that gave no sound posterior, %d labels beyond the declared classes or classes.max\n",
			d.Name, c.StepsRefused, c.LabelsRefused)
	}
	result.Labels = e.protocol(&cfg, &query)
	result.Charts.Settings = settings(learner.Config())
	if result.Seed = cfg.Seed; s.Shuffle != nil {
		result.Seed = *s.Shuffle
	}
	return result, nil
}

// bar starts the progress line of one evaluation.
func (e *Evaluation) bar(errOut io.Writer, total int, name string) terminal.Progress {
	if e.progress != nil {
		errOut, name = e.progress, e.title
	}
	return terminal.NewProgress(errOut, total, name)
}

// policy returns the policy that the options demand, the rows as it receives them,
// and a function that counts the rows left out for missing features or labels.
func (e *Evaluation) policy(learner *online.Learner, rows dataset.Rows, query active.Config, total int) (streamPolicy, dataset.Rows, func() int) {
	cfg := learner.Config()
	hold := e.hold(&cfg)
	usable := &usableRows{rows: rows, how: e.Arrival.OnMissing, post: learner.Posterior}
	leftOut := func() int { return usable.leftOut }
	switch {
	case query.Enabled():
		size := max(e.Batch, 1)
		if query.Strategy == report.EveryLabel {
			size = learner.Config().Batch.MaxSize
		}
		return newActive(query, learner, size, total), usable, leftOut
	case e.Arrival.Plain():
		return newPrequential(learner, total, e.slow(&cfg), hold, leftOut), usable, leftOut
	}
	p := newDelayed(e.Arrival, learner, e.slow(&cfg), hold)
	return p, rows, func() int { return p.rejected }
}

// configure reads the configuration, and takes on_missing from it unless a flag
// sets it.
func (e *Evaluation) configure() error {
	if err := e.Data.Check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	if e.ConfigPath == "" {
		e.Arrival.OnMissing = cmp.Or(e.Arrival.OnMissing, codec.OnMissingMarginalise)
		return nil
	}
	c, err := config.Load(e.ConfigPath)
	if err != nil {
		return err
	}
	if e.Model, err = c.ModelName(e.Model); err == nil {
		e.learnt, err = c.Learner(e.Model)
	}
	if err != nil {
		return exit.With(exit.Config, err)
	}
	if err := e.Data.Configure(c, e.Model); err != nil {
		return exit.With(exit.Usage, err)
	}
	e.config = c
	e.Arrival.OnMissing = cmp.Or(e.Arrival.OnMissing, onMissing(c, e.Model))
	return nil
}

// learnerConfig returns the configuration of the model that learns d.
func (e *Evaluation) learnerConfig(d *dataset.File, columns dataset.Summary) online.Config {
	cfg := e.learnt
	if e.config == nil {
		cfg = online.DefaultConfig()
		cfg.Inducing = 0 // the default depends on active learning
		cfg.Features = d.Features
		cfg.Classes.Names = columns.Classes
		cfg.Classes.Max = max(cfg.Classes.Max, len(columns.Classes))
	} else if c := e.config; len(e.Queries.Strategies) > 0 && c.Models[e.Model].Learner.Inducing == 0 {
		cfg.Inducing = 0 // the default depends on --query, not on the model
	}
	e.apply(&cfg, e.Splits.Offline)
	return cfg
}
