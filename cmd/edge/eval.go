package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"edge/cmd/edge/internal/dataset"
	"edge/online"
	"edge/stream/codec"
)

// evaluation is what the flags of eval ask for.
type evaluation struct {
	configPath, model string
	data              dataFlags
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
	asJSON            bool
	plot, plotSets    string
	linear            bool
}

func newEvalCommand() *cobra.Command {
	var e evaluation
	var shuffle uint64
	e.cut.how = online.DefaultTraining()
	var finish func()
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Score data files without a broker",
		Long: `eval teaches the rows of CSV files (gzip'd or not, with a header line) to a new
model, one after the other, and judges each row before it is learnt. A daemon
that has been sent the same rows under the same configuration (minibatches
closed by count: batch.max_wait 0) has the same scores and the same digest.

Without -c the default configuration is used, the features are the file's
columns and the classes its labels. With -c it is that of a model in the file,
exactly as the daemon would run it.

--mode holdout learns a part of the rows and judges the others, --mode cv every
fold once; both print the mean over the splits, and with --json every split and
the standard errors. They learn the rows in one pass as the daemon does; with
--passes N offline, as train does (then --batch is that of train: 0 are all rows).

--query STRATEGY teaches only the labels that the strategy asks for, within
--budget, and judges every row all the same; each is learnt before the next row
(or in minibatches of --batch). Several strategies and budgets give a curve, and
--against-full how many labels each strategy needs for the error of all labels.`,
		Example: `  edge eval gas.csv.gz
  edge eval gas.csv.gz --first 6000 --json
  edge eval iris.csv --shuffle 1 --seeds 5
  edge eval iris.csv --mode holdout --train-fraction 0.9 --repeats 20 --passes 250 --sites explicit --schedule constant --rate 0.02
  edge eval drift.csv --shuffle 1 --shuffle-within 445,1244,1586
  edge eval gas.csv.gz --query margin,random --budget 0.01,0.02,0.05,0.1,0.2,1 --seeds 3 --plot gas.svg
  edge eval bearing.csv -c /etc/edge/edge.yaml --model bearing --plot bearing.svg`,
		Args: cobra.MinimumNArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			finish()
			e.cut.offline = cmd.Flags().Changed("passes")
			e.cut.how.Batch = min(e.batch, 1e6)
			if e.batch == 0 && !cmd.Flags().Changed("damping") {
				e.cut.how.Damping = 0.5
			}
			if cmd.Flags().Changed("shuffle") {
				e.selection.Shuffle = &shuffle
			}
			e.late.Seed = e.cut.seed
			if err := e.check(args); err != nil {
				return coded(exitUsage, err)
			}
			if err := e.configure(); err != nil {
				return err
			}
			return e.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&e.configPath, "config", "c", "", "take a model's configuration from this `FILE`")
	f.StringVar(&e.model, "model", "", "`NAME` of the model in the configuration, if it has several")
	e.data.add(cmd, "`NAME` of the label's column (default the last one)")
	f.IntVar(&e.selection.First, "first", 0, "only the first `N` rows, after the shuffle (0: all)")
	f.Uint64Var(&shuffle, "shuffle", 0, "shuffle the whole file by this `SEED`")
	f.IntSliceVar(&e.selection.Within, "shuffle-within", nil, "sizes of consecutive batches of rows; only rows of the same batch are shuffled")
	f.IntVar(&e.seeds, "seeds", 1, "repeat with `K` shuffles, seeds SEED, SEED+1, …, or without --shuffle with K seeds of the model, and print the means")
	f.StringSliceVar(&e.ask.strategies, "query", nil, "teach only labels that are asked for: `STRATEGY` margin, entropy, bald or random, or several")
	f.Float64SliceVar(&e.ask.budgets, "budget", []float64{online.DefaultAsking().Budget}, "`FRACTION` of the samples that --query may ask for, or several")
	f.IntVar(&e.batch, "batch", 0, "minibatches of `N` samples (default as configured: 16)")
	f.IntVar(&e.inducing, "inducing", 0, "`M` inducing points and a window of 2·M (default as configured: 50)")
	f.StringVar(&e.kernel, "kernel", "", "shared or per-class (default as configured: shared)")
	f.Float64Var(&e.noise, "label-noise", -1, "`PROBABILITY` of a wrong label to start with; 0: labels are believed (default as configured: 0.01)")
	f.Float64Var(&e.coverage, "coverage", -1, "`FRACTION` of the prediction sets that should hold the label; 0: no sets (default as configured: 0.9)")
	f.Float64Var(&e.abstain.NoveltyAbove, "abstain-novelty", -1, "abstain where the novelty is above this `FRACTION` (default as configured: never)")
	f.Float64Var(&e.abstain.ConfidenceBelow, "abstain-confidence", -1, "abstain where the top probability is below this (default as configured: never)")
	f.Var(textFlag{(*string)(&e.weights.Mode), "MODE"}, "class-weights", "none or balanced (default as configured: none)")
	f.BoolVar(&e.undeclared, "undeclared", false, "no class is known from the start: each is new when its first label comes")
	f.IntVar(&e.confirm, "confirm", 0, "samples that must have a new label before it is a class (default as configured: 1)")
	f.Float64Var(&e.weights.Max, "class-weight-max", 0, "largest `WEIGHT` of a class (default as configured: 10)")
	f.Var(textFlag{(*string)(&e.drift.Detector), "DETECTOR"}, "drift-detector", "adwin, page-hinkley or off (default as configured: adwin)")
	f.Var(textFlag{(*string)(&e.drift.On), "SIGNAL"}, "drift-on", "what the detector watches: log_loss, error or novelty (default as configured: log_loss)")
	f.Var(textFlag{(*string)(&e.drift.Action), "ACTION"}, "drift-action", "none, forget, reseed or rollback (default as configured: none)")
	f.Float64Var(&e.drift.Delta, "drift-delta", 0, "sensitivity of adwin (default as configured: 0.002)")
	f.Float64Var(&e.drift.Lambda, "drift-lambda", 0, "sensitivity of page-hinkley (default as configured: 50)")
	f.IntVar(&e.abrupt, "abrupt", 0, "after every `N` rows the features change their columns, and after as many they change them back: an abrupt drift, for measurements")
	f.BoolVar(&e.ask.full, "against-full", false, "with --query: teach every label, too, in minibatches as without questions, and print how many labels are as good")
	f.StringVar(&e.mode, "mode", "prequential", "how to judge: prequential, holdout or cv")
	f.Float64Var(&e.cut.fraction, "train-fraction", 0.9, "`FRACTION` of the rows that are learnt, with --mode holdout")
	f.IntVar(&e.cut.repeats, "repeats", 20, "splits, with --mode holdout; folds, with --mode cv")
	f.Uint64Var(&e.cut.seed, "seed", 1, "`SEED` of the first split; others follow it; of what --label-fraction and --missing draw")
	f.Float64Var(&e.cut.flips, "flip-labels", 0, "draw this `FRACTION` of the labels that are learnt anew from all classes, with --mode holdout or cv; scores are those of the true classes, the learnt label noise taken out of the probabilities")
	f.IntVar(&e.late.Delay, "delay", 0, "labels come `N` rows after their row; every answer is judged, also those whose label never comes")
	f.Float64Var(&e.late.Fraction, "label-fraction", 1, "`FRACTION` of the rows that get a label at all, drawn by --seed")
	f.Float64Var(&e.late.Missing, "missing", 0, "each feature of a row is missing with this `PROBABILITY`")
	f.StringVar(&e.late.OnMissing, "on-missing", "", "what becomes of rows that lack features: reject, impute or marginalise; rejected ones are not judged (default as the model's stream has it, else marginalise)")
	finish = trainingFlags(cmd, &e.cut.how)
	f.BoolVar(&e.linear, "linear", false, "also judge soft-max regression on the same rows, labels after every minibatch, at the best of four learning rates")
	f.BoolVar(&e.asJSON, "json", false, "print a JSON object a line for each file")
	f.StringVar(&e.plot, "plot", "", "draw error and log loss over the stream into this SVG `FILE`")
	f.StringVar(&e.plotSets, "plot-sets", "", "draw coverage and size of the prediction sets, by tenths of the stream, into this SVG `FILE`")
	return cmd
}

func (e *evaluation) check(files []string) error {
	switch {
	case e.mode != "prequential" && e.mode != "holdout" && e.mode != "cv":
		return fmt.Errorf("--mode %s: want prequential, holdout or cv", e.mode)
	case e.mode == "prequential" && (e.cut.offline || e.cut.flips > 0):
		return errors.New("--passes and --flip-labels: give --mode holdout or cv, too")
	case e.linear && (e.mode != "prequential" || e.seeds > 1 || !e.late.plain()):
		return errors.New("--linear is for --mode prequential with one seed, all labels and no delay")
	case e.mode != "prequential" && (e.plot != "" || e.plotSets != "" || e.seeds > 1):
		return errors.New("--plot, --plot-sets and --seeds are for --mode prequential; --mode holdout has --repeats and --seed")
	case e.late.check() != nil:
		return e.late.check()
	case e.mode != "prequential" && !e.late.plain():
		return errors.New("--delay, --label-fraction and --missing are for --mode prequential")
	case e.cut.repeats < 1 || e.cut.fraction <= 0 || e.cut.fraction >= 1 || e.cut.flips < 0 || e.cut.flips >= 1:
		return errors.New("--repeats, --train-fraction and --flip-labels: want a number above 0 and fractions below 1")
	case e.seeds < 1:
		return errors.New("--seeds: want 1 or more")
	case len(e.ask.strategies) > 0 && (e.mode != "prequential" || e.plotSets != "" || e.linear || !e.late.plain()):
		return errors.New("--query is for --mode prequential, without --plot-sets, --linear and labels that come late or never")
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
	return nil
}

func (e *evaluation) run(ctx context.Context, files []string, out, errOut io.Writer) error {
	askings, err := e.ask.askings()
	if err != nil {
		return coded(exitUsage, err)
	}
	var reports []*Report
	report := func(r *Report, err error) error {
		if err != nil {
			return err
		}
		reports = append(reports, r)
		if e.asJSON {
			return printJSON(out, r)
		}
		return nil
	}
	for _, file := range files {
		for _, ask := range askings {
			if err := report(e.file(ctx, file, ask, errOut)); err != nil {
				return err
			}
		}
		if e.linear {
			if err := report(e.beside(file)); err != nil {
				return err
			}
		}
	}
	table, draw := printReports, plotCurves
	if len(e.ask.strategies) > 0 {
		table, draw = printAsked, plotAsked
	}
	if !e.asJSON {
		if err := table(out, reports); err != nil {
			return err
		}
	}
	if e.plot != "" {
		if err := draw(e.plot, reports); err != nil {
			return err
		}
	}
	if e.plotSets != "" {
		return plotSets(e.plotSets, reports)
	}
	return nil
}

// file evaluates one file, with as many shuffles as were asked for.
func (e *evaluation) file(ctx context.Context, path string, ask online.Asking, errOut io.Writer) (*Report, error) {
	if e.mode != "prequential" {
		return e.splits(ctx, path, errOut)
	}
	census, err := dataset.TakeCensus(path, e.data.of(e.learnt.Features))
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

// beside judges soft-max regression on the rows that file judges.
func (e *evaluation) beside(path string) (*Report, error) {
	census, err := dataset.TakeCensus(path, e.data.of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	d, err := dataset.Open(path, e.data.of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	cfg, all, err := e.stream(d, e.selection, census)
	if err != nil {
		return nil, err
	}
	rows := &usableRows{rows: all, how: e.late.OnMissing} // whose means the regression keeps
	return linear(rows, len(cfg.Features), census.Classes, cfg.Batch.MaxSize, d.Name)
}

// stream is the configuration of the model that learns d, and the rows of s as
// it takes them.
func (e *evaluation) stream(d *dataset.File, s dataset.Selection, census dataset.Census) (cfg online.Config, rows *driftingRows, err error) {
	cfg = e.learnerConfig(d, census)
	all, err := s.Of(d)
	return cfg, &driftingRows{rows: all, abrupt: e.abrupt}, err
}

// once evaluates one file in one order; repeat is how many times that was done
// before in this one.
func (e *evaluation) once(ctx context.Context, path string, s dataset.Selection, census dataset.Census, ask online.Asking, repeat int, errOut io.Writer) (*Report, error) {
	d, err := dataset.Open(path, e.data.of(e.learnt.Features))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	e.data.warn(errOut, path, d)
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
			d.Name, leftOut, total, e.late.OnMissing, codec.OnMissingMarginalise)
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
	if err := e.data.check(); err != nil {
		return err
	}
	if e.configPath == "" {
		e.late.OnMissing = cmp.Or(e.late.OnMissing, codec.OnMissingMarginalise)
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
	e.late.OnMissing = cmp.Or(e.late.OnMissing, c.onMissing(e.model))
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
	} else if c := e.config; len(e.ask.strategies) > 0 && c.Models[cmp.Or(e.model, sortedKeys(c.Models)[0])].Learner.Inducing == 0 {
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

// textFlag is a flag whose text is checked with the configuration.
type textFlag struct {
	text *string
	name string
}

func (f textFlag) String() string     { return "" }
func (f textFlag) Set(s string) error { *f.text = s; return nil }
func (f textFlag) Type() string       { return f.name }

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
