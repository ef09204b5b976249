package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/process"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/online/active"
	"edge/online/score"
	"edge/online/train"
	"edge/persist"
	"edge/stream/codec"
)

// Training holds the options of edge train.
type Training struct {
	ConfigPath, Model string
	Data              dataset.Options
	OnMissing         string
	Output, Test      string
	Inducing          int
	Kernel            string
	Noise             float64
	Seed              uint64 // 0: as configured
	Holdout           float64
	Resume, Quiet     bool // Quiet: no line after each pass
	Online            bool // also train a learner online, for comparison
	How               train.Config

	// Transform, if set, replaces the rows that are learnt and those that judge,
	// nil without any. The first rows that are learnt stay those of the file.
	Transform func(rows, judged *dataset.Part) (_, _ *dataset.Part, err error)
}

// NewTraining returns the options of edge train without flags.
func NewTraining() *Training { return &Training{Noise: -1, How: train.Default()} }

// Check reports options that contradict each other or are out of range.
func (t *Training) Check() error {
	switch {
	case checkOnMissing(t.OnMissing) != nil:
		return checkOnMissing(t.OnMissing)
	case t.Output != "" && t.ConfigPath == "":
		return errors.New("-o: a state belongs to a model of a configuration: give -c FILE")
	case t.Model != "" && t.ConfigPath == "":
		return errors.New("--model names a model of a configuration: give -c FILE")
	case !(t.Holdout >= 0 && t.Holdout < 1):
		return errors.New("--holdout: want a fraction of the rows, such as 0.1")
	case t.Holdout > 0 && t.Test != "":
		return errors.New("--holdout and --test: give one of them")
	case t.Resume && t.Output == "":
		return errors.New("--resume needs the same -o FILE")
	case t.Online && t.Holdout == 0 && t.Test == "":
		return errors.New("--online is judged by held-out rows: give --holdout or --test")
	}
	return cmp.Or(checkFlags(&t.How), (&Overrides{Inducing: t.Inducing, Kernel: t.Kernel, Noise: t.Noise}).check())
}

// checkFlags reports every setting of the training that is out of range, by the flag of its name.
func checkFlags(how *train.Config) error {
	err := how.Validate()
	if err == nil {
		return nil
	}
	return errors.New("--" + strings.ReplaceAll(err.Error(), "\n", "\n--"))
}

// learnerConfig returns the configuration of the model, and the configuration file
// that it comes from; nil without.
func (t *Training) learnerConfig() (cfg online.Config, file *config.Config, err error) {
	cfg = online.DefaultConfig()
	if t.ConfigPath != "" {
		if file, err = config.Load(t.ConfigPath); err != nil {
			return cfg, nil, err
		}
		if t.Model, err = file.ModelName(t.Model); err == nil {
			cfg, err = file.Learner(t.Model)
		}
		if err != nil {
			return cfg, nil, exit.With(exit.Config, err)
		}
	}
	shape := cfg.Shape()
	if t.Inducing > 0 {
		cfg.Inducing = t.Inducing
		if t.ConfigPath == "" {
			cfg.Window = 2 * t.Inducing
		}
	}
	if t.Kernel != "" {
		cfg.Kernel = online.Kernel(t.Kernel)
	}
	if t.Seed > 0 {
		cfg.Seed = t.Seed
	}
	if !(t.Noise < 0) {
		cfg.LabelNoise.Start = t.Noise
	}
	if t.Output != "" && cfg.Shape() != shape {
		return cfg, nil, exit.With(exit.Usage, fmt.Errorf("--inducing or --kernel differ from model %s in %s, so that edge run could not use the result: change them there", t.Model, t.ConfigPath))
	}
	return cfg, file, nil
}

// Run trains on a file, and writes a line to out after each pass.
func (t *Training) Run(ctx context.Context, path string, out, errOut io.Writer) (*report.Training, error) {
	if err := t.Data.Check(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	cfg, file, err := t.learnerConfig()
	if err != nil {
		return nil, err
	}
	if file != nil {
		t.OnMissing = cmp.Or(t.OnMissing, onMissing(file, t.Model))
		if err := t.Data.Configure(file, t.Model); err != nil {
			return nil, exit.With(exit.Usage, err)
		}
	}
	t.OnMissing = cmp.Or(t.OnMissing, codec.OnMissingMarginalise)
	table, err := loadTable(ctx, path, &t.Data, cfg.Features, t.OnMissing, errOut)
	if err != nil {
		return nil, err
	}
	warnOfLabels(errOut, path, file, t.Model, table.Classes)
	if cfg.ClassWeights.Mode == online.Balanced {
		fmt.Fprintf(errOut, "%s: class_weights is balanced, and training in many passes counts each row once: edge run weighs the labels that follow\n", path)
	}
	printLeftOut(table, t.OnMissing, errOut)
	if t.Holdout > 0 && t.Data.Raw != nil && t.Data.Raw.Stream.StageConfig().Overlaps() {
		fmt.Fprintf(errOut, "%s: the windows that --holdout draws share rows with those that are learnt, so that the scores are too good; --test FILE judges by other recordings\n", table.Name)
	}
	cfg.Classes.Max = max(cfg.Classes.Max, len(table.Classes))
	rows, judged, err := t.split(ctx, table, cfg, errOut)
	if err != nil {
		return nil, err
	}
	began, given := process.CPUTime(), rows.Len()
	if t.Transform != nil {
		if rows, judged, err = t.Transform(rows, judged); err != nil {
			return nil, err
		}
	}
	cfg.Features = rows.Table.Features
	if t.Output != "" {
		if err := t.checkOutput(cfg.Shape()); err != nil {
			return nil, exit.With(exit.Store, err)
		}
	}
	trainer, err := t.open(cfg, rows)
	if err != nil {
		return nil, err
	}
	report, err := t.train(ctx, trainer, rows, judged, process.CPUTime()-began, out, errOut)
	if err != nil {
		return nil, err
	}
	learner, err := trainer.Learner()
	if err != nil {
		return nil, err
	}
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	report.StateBytes, report.Digest = len(state), learner.Digest()
	if t.Output != "" {
		if err := t.store(file, cfg, state); err != nil {
			return nil, exit.With(exit.Store, err)
		}
	}
	if t.Online {
		rows = rows.First(given)
		bar := terminal.NewProgress(errOut, rows.Len(), rows.Table.Name+", online")
		defer bar.Close()
		if report.Online, err = t.onlinePass(ctx, cfg, rows, judged, bar.Add); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// split returns the rows to learn and those to judge; judged is nil without
// --test and --holdout.
func (t *Training) split(ctx context.Context, table *dataset.Table, cfg online.Config, errOut io.Writer) (rows, judged *dataset.Part, err error) {
	all := table.All()
	switch {
	case t.Test != "":
		test, err := loadTable(ctx, t.Test, &t.Data, table.Features, t.OnMissing, errOut)
		if err != nil {
			return nil, nil, err
		}
		if judged, err = test.Translate(table.Classes); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.Test, err)
		}
	case t.Holdout > 0:
		rng := rand.New(rand.NewPCG(cfg.Seed, 0))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		n := int(math.Round(t.Holdout * float64(len(all))))
		if n == 0 || n == len(all) {
			return nil, nil, fmt.Errorf("--holdout %g of %s leaves nothing to learn or to judge", t.Holdout, terminal.Count(len(all), "row"))
		}
		judged, all = table.Samples(all[:n]), all[n:]
	}
	return table.Samples(all), judged, nil
}

// unfinished returns the path of the file that holds an interrupted training.
func (t *Training) unfinished() string { return t.Output + ".training" }

// checkEnough returns an error for rows of which offline training makes no model.
func checkEnough(rows *dataset.Part) error {
	n, name, classes := rows.Len(), rows.Table.Name, rows.Table.Classes
	switch {
	case len(classes) == 1:
		return fmt.Errorf("%s: %s is the label of all rows: training in many passes wants two classes or more; edge run and edge eval learn classes as they come", name, classes[0])
	case n < active.FirstLabels:
		return fmt.Errorf("%s: %s to learn: training in many passes wants %d or more; edge run and edge eval learn from the first one on", name, terminal.Count(n, "row"), active.FirstLabels)
	}
	return nil
}

func (t *Training) open(cfg online.Config, rows *dataset.Part) (*train.Trainer, error) {
	if err := cmp.Or(checkEnough(rows), dataset.CheckWidth(rows.Table.Name, rows.Table.Features)); err != nil {
		return nil, err
	}
	if !t.Resume {
		return train.New(cfg, t.How, rows.Table.Classes, rows)
	}
	data, err := os.ReadFile(t.unfinished())
	if err != nil {
		return nil, fmt.Errorf("--resume: %w; without it training begins anew", err)
	}
	trainer, err := train.Restore(cfg, t.How, rows.Table.Classes, rows, data)
	if err != nil {
		return nil, fmt.Errorf("--resume %s: %w; give the same file, configuration and options, or begin anew without it", t.unfinished(), err)
	}
	return trainer, nil
}

// saveEvery is the time between two saves of an unfinished training.
const saveEvery = 30 * time.Second

// save writes the unfinished training atomically.
func (t *Training) save(trainer *train.Trainer) error {
	if t.Output == "" {
		return nil
	}
	data, err := trainer.AppendBinary(nil)
	if err != nil {
		return err
	}
	f, err := persist.CreateTemp(t.unfinished())
	if err != nil {
		return fmt.Errorf("save the training: %w", err)
	}
	defer f.Close()
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Sync()); err == nil {
		err = persist.Rename(f.Name(), t.unfinished())
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("save the training: %w", persist.Named(err, t.unfinished()))
	}
	return nil
}

// train runs the passes of the trainer and judges each; spent is the processor
// time of its start.
func (t *Training) train(ctx context.Context, trainer *train.Trainer, rows, judged *dataset.Part, spent time.Duration, out, errOut io.Writer) (*report.Training, error) {
	r := &report.Training{Dataset: rows.Table.Name, Mode: "train", Samples: rows.Len(), Classes: rows.Table.Classes, Curve: []report.TrainingPoint{}}
	r.CPUSeconds = spent.Seconds()
	bar := terminal.NewProgress(errOut, t.How.Passes*rows.Len(), rows.Table.Name)
	defer bar.Close()
	bar.Add(int(trainer.Passes() * float64(rows.Len())))
	var learnt int
	saved := time.Now()
	for !trainer.Done() {
		start := process.CPUTime()
		n, err := trainer.Step()
		if err != nil {
			return nil, err
		}
		r.CPUSeconds += (process.CPUTime() - start).Seconds()
		learnt += n
		bar.Add(n)
		if ctx.Err() != nil || time.Since(saved) > saveEvery {
			if err := t.save(trainer); err != nil {
				return nil, err
			}
			saved = time.Now()
		}
		if ctx.Err() != nil {
			if t.Output == "" {
				return nil, errors.New("train: interrupted")
			}
			return nil, fmt.Errorf("train: interrupted after %.1f passes; --resume goes on", trainer.Passes())
		}
		whole := trainer.Passes() == math.Trunc(trainer.Passes())
		if !whole || (t.How.Batch == 0 && !trainer.Done() && int(trainer.Passes())%10 != 0) {
			continue
		}
		line, err := addPoint(r, trainer, learnt, judged)
		if err != nil {
			return nil, err
		}
		bar.Describe(line)
		if !terminal.IsTerminal(errOut) && !t.Quiet {
			fmt.Fprintln(out, line)
		}
	}
	r.Passes, r.LogEvidence, r.PeakRSS = trainer.Passes(), trainer.Evidence(), process.PeakRSS()
	if r.CPUSeconds > 0 {
		r.Rate = float64(learnt) / r.CPUSeconds
	}
	return r, nil
}

// addPoint adds a point to the curve of a report, with the scores of the rows that judge, if there are
// some, and returns it as a line. learnt are the samples that were learnt in the time of the report.
func addPoint(r *report.Training, trainer *train.Trainer, learnt int, judged *dataset.Part) (line string, err error) {
	point := report.TrainingPoint{Passes: trainer.Passes(), CPUSeconds: r.CPUSeconds, LogEvidence: trainer.Evidence(), Error: score.Real(math.NaN()), NLL: score.Real(math.NaN())}
	line = fmt.Sprintf("pass %g  %.1f s  %.0f samples/s  log evidence %.4f", point.Passes, r.CPUSeconds, float64(learnt)/r.CPUSeconds, point.LogEvidence)
	if judged != nil {
		s, err := trainer.Score(judged)
		if err != nil {
			return "", err
		}
		point.Error, point.NLL = score.Real(s.Error), score.Real(s.NLL)
		r.Error, r.NLL, r.Brier, r.ECE, r.MacroF1 = &s.Error, &s.NLL, &s.Brier, &s.ECE, &s.MacroF1
		line += fmt.Sprintf("  held out: error %.4f  nll %.4f", s.Error, s.NLL)
	}
	r.Curve = append(r.Curve, point)
	return line, nil
}

// checkOutput returns the error with which store would end after the last pass, as far as
// it is known before the first one. It creates no file.
func (t *Training) checkOutput(shape string) error {
	if err := process.Writable(filepath.Dir(t.Output)); err != nil {
		return fmt.Errorf("train: %w%s", err, persist.Remedy(err))
	}
	if _, err := os.Stat(t.Output); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := process.Writable(t.Output); err != nil {
		return fmt.Errorf("train: %w%s", err, persist.Remedy(err))
	}
	store, err := persist.OpenReadOnly(t.Output, persist.Options{})
	if errors.Is(err, persist.ErrDamaged) {
		return nil // store repairs the file
	}
	if err != nil {
		return err
	}
	defer store.Close()
	kept, err := store.Load(t.Model, shape)
	if errors.Is(err, persist.ErrModel) {
		return nil
	}
	if err != nil {
		return err
	}
	return t.checkEmpty(kept)
}

// checkEmpty returns an error if the model has learnt something.
func (t *Training) checkEmpty(kept *persist.Recovered) error {
	if kept.State == nil && len(kept.Records) == 0 {
		return nil
	}
	return fmt.Errorf("train: %s already holds a state of model %s; write to another file, or delete it first: edge reset --state %s --model %s", t.Output, t.Model, t.Output, t.Model)
}

// store writes the state as the model's first checkpoint.
func (t *Training) store(file *config.Config, cfg online.Config, state []byte) (err error) {
	store, err := persist.Open(t.Output, persist.Options{MaxSize: int64(file.Store.MaxSize), Dedupe: file.Store.Dedupe})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	kept, err := store.Load(t.Model, cfg.Shape())
	if err != nil {
		return err
	}
	if err := t.checkEmpty(kept); err != nil {
		return err
	}
	if err := store.Checkpoint(t.Model, 0, state); err != nil {
		return err
	}
	if err := os.Remove(t.unfinished()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("train: the result is stored; %w", err)
	}
	return nil
}
