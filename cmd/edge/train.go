package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"edge/internal/dataset"
	"edge/online"
	"edge/persist"
	"edge/stream"
)

// training is what the flags of train ask for.
type training struct {
	configPath, model string
	data              dataset.Options
	onMissing         string
	output, test      string
	inducing          int
	kernel            string
	noise             float64
	components        int
	seed              uint64 // 0: as configured
	shifted           bool
	holdout           float64
	resume, quiet     bool // quiet: no line after each pass
	online            bool
	how               online.Training
}

func (t *training) check() error {
	switch {
	case checkOnMissing(t.onMissing) != nil:
		return checkOnMissing(t.onMissing)
	case t.output != "" && t.configPath == "":
		return errors.New("-o: a state belongs to a model of a configuration: give -c FILE, too")
	case t.model != "" && t.configPath == "":
		return errors.New("--model names a model of a configuration: give -c FILE, too")
	case t.components < 0 || t.components > 0 && t.output != "":
		return errors.New("--components: want a number above 0, and no -o: the daemon has no principal components")
	case t.holdout < 0 || t.holdout >= 1:
		return errors.New("--holdout: want a fraction of the rows, such as 0.1")
	case t.holdout > 0 && t.test != "":
		return errors.New("--holdout and --test: give one of them")
	case t.resume && t.output == "":
		return errors.New("--resume: give the same -o FILE, too")
	case t.online && t.holdout == 0 && t.test == "":
		return errors.New("--online is judged by held-out rows: give --holdout or --test, too")
	}
	return nil
}

// TrainReport is what train --json prints.
type TrainReport struct {
	Dataset     string       `json:"dataset"`
	Mode        string       `json:"mode"`
	Samples     int          `json:"samples"`
	Classes     []string     `json:"classes"`
	Passes      float64      `json:"passes"`
	LogEvidence float64      `json:"log_evidence"` // nats a sample, leave-one-out cavities
	Error       *float64     `json:"error"`        // of the held-out samples; null if there are none
	NLL         *float64     `json:"nll"`
	Brier       *float64     `json:"brier"`
	ECE         *float64     `json:"ece"`
	MacroF1     *float64     `json:"macro_f1"`
	CPUSeconds  float64      `json:"cpu_seconds"` // of training; judging is not in it
	Rate        float64      `json:"samples_per_second"`
	PeakRSS     uint64       `json:"peak_rss_bytes"`
	StateBytes  int          `json:"state_bytes"`
	Digest      string       `json:"digest"`
	Curve       []TrainPoint `json:"curve"`
	Online      []TrainPoint `json:"online,omitempty"` // one pass online beside it
}

// TrainPoint is how good the model was after so many passes.
type TrainPoint struct {
	Passes      float64 `json:"passes"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	LogEvidence float64 `json:"log_evidence"`
	Error       float64 `json:"error"`
	NLL         float64 `json:"nll"`
}

// learnerConfig is the configuration of the model, and the features that it
// takes from the file; nil are all.
func (t *training) learnerConfig() (cfg online.Config, file *Config, err error) {
	cfg = online.DefaultConfig()
	if t.configPath != "" {
		if file, err = LoadConfig(t.configPath); err != nil {
			return cfg, nil, err
		}
		if cfg, err = file.Learner(t.model); err != nil {
			return cfg, nil, coded(exitConfig, err)
		}
		if t.model == "" {
			t.model = slices.Sorted(maps.Keys(file.Models))[0]
		}
	}
	shape := cfg.Shape()
	if t.inducing > 0 {
		cfg.Inducing = t.inducing
		if t.configPath == "" {
			cfg.Window = 2 * t.inducing
		}
	}
	if t.kernel != "" {
		cfg.Kernel = online.Kernel(t.kernel)
	}
	if t.seed > 0 {
		cfg.Seed = t.seed
	}
	if t.noise >= 0 {
		cfg.LabelNoise.Start = t.noise
	}
	if t.output != "" && cfg.Shape() != shape {
		return cfg, nil, coded(exitUsage, fmt.Errorf("--inducing or --kernel differ from model %s in %s, so that edge run could not use the result: change them there", t.model, t.configPath))
	}
	return cfg, file, nil
}

// run trains on a file, and writes a line to out after each pass.
func (t *training) run(ctx context.Context, path string, out, errOut io.Writer) (*TrainReport, error) {
	if err := t.data.Check(); err != nil {
		return nil, coded(exitUsage, err)
	}
	cfg, file, err := t.learnerConfig()
	if err != nil {
		return nil, err
	}
	if file != nil {
		t.onMissing = cmp.Or(t.onMissing, onMissing(file, t.model))
	}
	t.onMissing = cmp.Or(t.onMissing, stream.OnMissingMarginalise)
	table, err := loadTable(path, t.data.Of(cfg.Features), t.onMissing)
	if err != nil {
		return nil, err
	}
	if table.LeftOut > 0 {
		fmt.Fprintf(errOut, "%s: %d rows without a label or with too few features are left out; on_missing is %s\n", table.Name, table.LeftOut, t.onMissing)
	}
	if some, _ := table.Lacking(); len(some) > 0 && t.components > 0 {
		return nil, coded(exitUsage, fmt.Errorf("--components: %d rows lack features: --on-missing impute or reject makes them complete", len(some)))
	}
	cfg.Classes.Max = max(cfg.Classes.Max, len(table.Classes))
	rows, judged, err := t.split(table, cfg)
	if err != nil {
		return nil, err
	}
	began, given := cpuTime(), rows.Len()
	if t.shifted {
		if rows, err = rows.Shifted(); err != nil {
			return nil, coded(exitUsage, fmt.Errorf("--shifted: %w", err))
		}
		table = rows.Table
	}
	if t.components > 0 {
		if rows, judged, err = dataset.InComponents(t.components, rows, judged); err != nil {
			return nil, err
		}
		table = rows.Table
	}
	cfg.Features = table.Features
	trainer, err := t.open(cfg, table.Classes, rows)
	if err != nil {
		return nil, err
	}
	report, err := t.train(ctx, trainer, table, rows, judged, cpuTime()-began, out, errOut)
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
	if t.output != "" {
		if err := t.store(file, cfg, state); err != nil {
			return nil, coded(exitStore, err)
		}
	}
	if t.online {
		if t.shifted {
			rows = table.Samples(table.All()[:given])
		}
		bar := newProgress(errOut, rows.Len(), table.Name+", online")
		defer bar.Close()
		if report.Online, err = t.onlinePass(ctx, cfg, table, rows, judged, bar.Add); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// split says which rows are learnt and which judge; judged is nil if none do.
func (t *training) split(table *dataset.Table, cfg online.Config) (rows, judged *dataset.Part, err error) {
	all := table.All()
	switch {
	case t.test != "":
		test, err := loadTable(t.test, t.data.Of(table.Features), t.onMissing)
		if err != nil {
			return nil, nil, err
		}
		if judged, err = test.Translate(table.Classes); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.test, err)
		}
	case t.holdout > 0:
		rng := rand.New(rand.NewPCG(cfg.Seed, 0))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		n := int(math.Round(t.holdout * float64(len(all))))
		if n == 0 || n == len(all) {
			return nil, nil, fmt.Errorf("--holdout %g of %d rows leaves nothing to learn or to judge", t.holdout, len(all))
		}
		judged, all = table.Samples(all[:n]), all[n:]
	}
	return table.Samples(all), judged, nil
}

// unfinished is the file of an interrupted training.
func (t *training) unfinished() string { return t.output + ".training" }

func (t *training) open(cfg online.Config, classes []string, rows *dataset.Part) (*online.Trainer, error) {
	if !t.resume {
		return online.NewTrainer(cfg, t.how, classes, rows)
	}
	data, err := os.ReadFile(t.unfinished())
	if err != nil {
		return nil, fmt.Errorf("--resume: %w; without it training begins anew", err)
	}
	trainer, err := online.RestoreTrainer(cfg, t.how, classes, rows, data)
	if err != nil {
		return nil, fmt.Errorf("--resume %s: %w; give the same file, configuration and options, or begin anew without it", t.unfinished(), err)
	}
	return trainer, nil
}

// saveEvery is how often an unfinished training is saved.
const saveEvery = 30 * time.Second

// save writes the unfinished training, whole or not at all.
func (t *training) save(trainer *online.Trainer) error {
	if t.output == "" {
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
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(f.Name(), t.unfinished())
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("save the training: %w", err)
	}
	return nil
}

// train takes the trainer through its passes and judges it after each; spent is
// what its start has cost.
func (t *training) train(ctx context.Context, trainer *online.Trainer, table *dataset.Table, rows, judged *dataset.Part, spent time.Duration, out, errOut io.Writer) (*TrainReport, error) {
	r := &TrainReport{Dataset: table.Name, Mode: "train", Samples: rows.Len(), Classes: table.Classes, Curve: []TrainPoint{}}
	r.CPUSeconds = spent.Seconds()
	bar := newProgress(errOut, t.how.Passes*rows.Len(), table.Name)
	defer bar.Close()
	bar.Add(int(trainer.Passes() * float64(rows.Len())))
	var learnt int
	saved := time.Now()
	for !trainer.Done() {
		start := cpuTime()
		n, err := trainer.Step()
		if err != nil {
			return nil, err
		}
		r.CPUSeconds += (cpuTime() - start).Seconds()
		learnt += n
		bar.Add(n)
		if ctx.Err() != nil || time.Since(saved) > saveEvery {
			if err := t.save(trainer); err != nil {
				return nil, err
			}
			saved = time.Now()
		}
		if ctx.Err() != nil {
			if t.output == "" {
				return nil, errors.New("train: interrupted")
			}
			return nil, fmt.Errorf("train: interrupted after %.1f passes; --resume goes on", trainer.Passes())
		}
		whole := trainer.Passes() == math.Trunc(trainer.Passes())
		if !whole || (t.how.Batch == 0 && !trainer.Done() && int(trainer.Passes())%10 != 0) {
			continue
		}
		point := TrainPoint{Passes: trainer.Passes(), CPUSeconds: r.CPUSeconds, LogEvidence: trainer.Evidence()}
		line := fmt.Sprintf("pass %g  %.1f s  %.0f samples/s  log evidence %.4f", point.Passes, r.CPUSeconds, float64(learnt)/r.CPUSeconds, point.LogEvidence)
		if judged != nil {
			s, err := trainer.Score(judged)
			if err != nil {
				return nil, err
			}
			point.Error, point.NLL = s.Error, s.NLL
			r.Error, r.NLL, r.Brier, r.ECE, r.MacroF1 = &s.Error, &s.NLL, &s.Brier, &s.ECE, &s.MacroF1
			line += fmt.Sprintf("  held out: error %.4f  nll %.4f", s.Error, s.NLL)
		}
		r.Curve = append(r.Curve, point)
		bar.Describe(line)
		if !isTerminal(errOut) && !t.quiet {
			fmt.Fprintln(out, line)
		}
	}
	r.Passes, r.LogEvidence, r.PeakRSS = trainer.Passes(), trainer.Evidence(), peakRSS()
	if r.CPUSeconds > 0 {
		r.Rate = float64(learnt) / r.CPUSeconds
	}
	return r, nil
}

// store writes the state as the model's first checkpoint.
func (t *training) store(file *Config, cfg online.Config, state []byte) (err error) {
	store, err := persist.Open(t.output, persist.Options{MaxSize: int64(file.Store.MaxSize), Dedupe: file.Store.Dedupe})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	kept, err := store.Load(t.model, cfg.Shape())
	if err != nil {
		return err
	}
	if kept.State != nil || len(kept.Records) > 0 {
		return fmt.Errorf("train: %s already holds what model %s has learnt; write to another file, or give it up first: edge reset -c %s --model %s", t.output, t.model, t.configPath, t.model)
	}
	if err := store.Checkpoint(t.model, 0, state); err != nil {
		return err
	}
	if err := os.Remove(t.unfinished()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("train: the result is stored; %w", err)
	}
	return nil
}

// print writes the end of a training for people.
func (r *TrainReport) print(out io.Writer) error {
	for _, p := range r.Online {
		fmt.Fprintf(out, "online, pass %.2f  %.1f s  held out: error %.4f  nll %.4f\n", p.Passes, p.CPUSeconds, p.Error, p.NLL)
	}
	_, err := fmt.Fprintf(out, "%s: %d samples, %.1f passes in %.1f CPU seconds; state of %s, digest %s\n",
		r.Dataset, r.Samples, r.Passes, r.CPUSeconds, byteSize(uint64(r.StateBytes)), r.Digest[:12])
	return err
}

// newTraining returns the training that no flag changes.
func newTraining() *training { return &training{noise: -1, how: online.DefaultTraining()} }
