package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"edge/cmd/edge/internal/dataset"
	"edge/online"
	"edge/persist"
	"edge/stream/codec"
)

// training is what the flags of train ask for.
type training struct {
	configPath, model string
	data              dataFlags
	onMissing         string
	output, test      string
	inducing          int
	kernel            string
	noise             float64
	components        int
	seed              uint64 // 0: as configured
	shifted           bool
	holdout           float64
	resume, asJSON    bool
	plot              string
	online            bool
	how               online.Training
}

func newTrainCommand() *cobra.Command {
	t := training{how: online.DefaultTraining()}
	var finish func()
	cmd := &cobra.Command{
		Use:   "train FILE",
		Short: "Train offline, many passes; the daemon carries on from the result",
		Long: `train learns a data file by many passes: CSV (gzip'd or not, with a header line),
or images in the idx format with their labels beside them. With -c and -o the
result is a state file of a model of that configuration: edge run carries on
from it. Every horizon then begins with all that was learnt, with an empty
window; the feature scaling is the training set's.

Minibatches learn large sets: their sites are tied to one (stochastic EP), so
that memory does not grow with the set. --sites explicit keeps one for each sample
and class (EP), which is better wherever memory allows it. --batch 0 takes all
samples in each step, for small sets; then --optimizer sign is possible.

An interrupted training, saved beside the output as FILE.training, goes on with
--resume, to the same result.`,
		Example: `  edge train history.csv.gz -c edge.yaml -o edge.db --passes 20 --holdout 0.1
  edge train small.csv --batch 0 --passes 250 --rate 0.02 --schedule constant --sites explicit --holdout 0.1
  edge train train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz --kernel per-class --inducing 200 --batch 200 --scale common`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			finish()
			if t.how.Batch == 0 && !cmd.Flags().Changed("damping") {
				t.how.Damping = 0.5
			}
			if err := t.check(); err != nil {
				return coded(exitUsage, err)
			}
			return t.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&t.configPath, "config", "c", "", "take the model's configuration from this `FILE`")
	f.StringVar(&t.model, "model", "", "`NAME` of the model in the configuration, if it has several")
	f.StringVarP(&t.output, "output", "o", "", "state `FILE` to write; it must not hold that model yet")
	t.data.add(cmd, "`NAME` of the label's column (default the last one)")
	f.StringVar(&t.onMissing, "on-missing", "", "what becomes of rows that lack features: reject leaves them out, impute or marginalise learns them (default as the model's stream has it, else marginalise)")
	f.StringVar(&t.test, "test", "", "judge by this `FILE` after each pass")
	f.Float64Var(&t.holdout, "holdout", 0, "keep this `FRACTION` of the rows back and judge by them after each pass")
	f.IntVar(&t.inducing, "inducing", 0, "`M` inducing points (default as configured: 50)")
	f.StringVar(&t.kernel, "kernel", "", "shared or per-class (default as configured: shared)")
	f.Float64Var(&t.noise, "label-noise", -1, "`PROBABILITY` of a wrong label to start with; 0: labels are believed (default as configured: 0.01)")
	f.IntVar(&t.how.Batch, "batch", t.how.Batch, "samples a minibatch; 0: all of them")
	f.IntVar(&t.components, "components", 0, "learn the first `K` principal components instead of the features; for measurements, without -o")
	f.BoolVar(&t.shifted, "shifted", false, "also learn each image moved by one pixel to the left, to the right, up and down; those that judge, and --online, stay as they are")
	f.Uint64Var(&t.seed, "seed", 0, "`SEED` of the first inducing points and of the order (default as configured: 1)")
	finish = trainingFlags(cmd, &t.how)
	f.BoolVar(&t.resume, "resume", false, "go on where an earlier training was interrupted")
	f.BoolVar(&t.asJSON, "json", false, "print a JSON object")
	f.StringVar(&t.plot, "plot", "", "draw error and log loss over CPU time into this SVG `FILE`")
	f.BoolVar(&t.online, "online", false, "also learn the rows once online, as the daemon does, with one shared kernel and an infinite horizon, and print and draw that beside")
	return cmd
}

// trainingFlags adds the flags that say how a set is trained offline; the
// function that it returns completes how once they are parsed.
func trainingFlags(cmd *cobra.Command, how *online.Training) (finish func()) {
	f := cmd.Flags()
	f.IntVar(&how.Passes, "passes", how.Passes, "passes over the data, at most")
	optimizer := f.String("optimizer", string(how.Optimizer), "adam, or sign with --batch 0")
	sites := f.String("sites", string(how.Sites), "tied, or explicit: a cavity leaves out the sample's own site (EP)")
	f.Float64Var(&how.Rate, "rate", how.Rate, "learning rate of kernel and inducing inputs; 0 keeps them")
	schedule := f.String("schedule", string(how.Schedule), "of the learning rate: constant, cosine or sqrt")
	f.Float64Var(&how.Damping, "damping", how.Damping, "of the sites: 1 replaces them (0.5 with --batch 0)")
	f.Float64Var(&how.Prior, "prior", how.Prior, "precision of a prior that holds the log lengthscales together; 0: none")
	f.IntVar(&how.Patience, "patience", how.Patience, "end after `N` passes without a better log evidence; 0: never")
	scaling := f.String("scale", string(how.Scaling), "standardise by feature, by plain feature (wild values count), or all by one common deviation")
	start := f.String("start", string(how.Start), "inducing points from kmeans, a random subset, or classes: half from the class itself")
	f.Float64Var(&how.Length, "length", how.Length, "first lengthscale, in median distances of two samples")
	return func() {
		how.Optimizer, how.Sites = online.Optimizer(*optimizer), online.Sites(*sites)
		how.Schedule, how.Scaling, how.Start = online.Schedule(*schedule), online.Scaling(*scaling), online.Start(*start)
	}
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
	case t.plot != "" && t.holdout == 0 && t.test == "":
		return errors.New("--plot draws the scores: give --holdout or --test, too")
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
			t.model = sortedKeys(file.Models)[0]
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

func (t *training) run(ctx context.Context, path string, out, errOut io.Writer) error {
	if err := t.data.check(); err != nil {
		return err
	}
	cfg, file, err := t.learnerConfig()
	if err != nil {
		return err
	}
	if file != nil {
		t.onMissing = cmp.Or(t.onMissing, file.onMissing(t.model))
	}
	t.onMissing = cmp.Or(t.onMissing, codec.OnMissingMarginalise)
	table, err := loadTable(path, t.data.of(cfg.Features), t.onMissing)
	if err != nil {
		return err
	}
	if table.LeftOut > 0 {
		fmt.Fprintf(errOut, "%s: %d rows without a label or with too few features are left out; on_missing is %s\n", table.Name, table.LeftOut, t.onMissing)
	}
	if some, _ := table.Lacking(); len(some) > 0 && t.components > 0 {
		return coded(exitUsage, fmt.Errorf("--components: %d rows lack features: --on-missing impute or reject makes them complete", len(some)))
	}
	cfg.Classes.Max = max(cfg.Classes.Max, len(table.Classes))
	rows, judged, err := t.split(table, cfg)
	if err != nil {
		return err
	}
	began, given := cpuTime(), rows.Len()
	if t.shifted {
		if rows, err = rows.Shifted(); err != nil {
			return coded(exitUsage, fmt.Errorf("--shifted: %w", err))
		}
		table = rows.Table
	}
	if t.components > 0 {
		if rows, judged, err = dataset.InComponents(t.components, rows, judged); err != nil {
			return err
		}
		table = rows.Table
	}
	cfg.Features = table.Features
	trainer, err := t.open(cfg, table.Classes, rows)
	if err != nil {
		return err
	}
	report, err := t.train(ctx, trainer, table, rows, judged, cpuTime()-began, out, errOut)
	if err != nil {
		return err
	}
	learner, err := trainer.Learner()
	if err != nil {
		return err
	}
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return err
	}
	report.StateBytes, report.Digest = len(state), learner.Digest()
	if t.output != "" {
		if err := t.store(file, cfg, state); err != nil {
			return coded(exitStore, err)
		}
	}
	if t.online {
		if t.shifted {
			rows = table.Samples(table.All()[:given])
		}
		bar := newProgress(errOut, rows.Len(), table.Name+", online")
		defer bar.Close()
		if report.Online, err = t.onlinePass(ctx, cfg, table, rows, judged, bar.Add); err != nil {
			return err
		}
	}
	if t.plot != "" {
		if err := plotTraining(t.plot, report); err != nil {
			return err
		}
	}
	if t.asJSON {
		return printJSON(out, report)
	}
	for _, p := range report.Online {
		fmt.Fprintf(out, "online, pass %.2f  %.1f s  held out: error %.4f  nll %.4f\n", p.Passes, p.CPUSeconds, p.Error, p.NLL)
	}
	_, err = fmt.Fprintf(out, "%s: %d samples, %.1f passes in %.1f CPU seconds; state of %s, digest %s\n",
		report.Dataset, report.Samples, report.Passes, report.CPUSeconds, byteSize(uint64(report.StateBytes)), report.Digest[:12])
	return err
}

// split says which rows are learnt and which judge; judged is nil if none do.
func (t *training) split(table *dataset.Table, cfg online.Config) (rows, judged *dataset.Part, err error) {
	all := table.All()
	switch {
	case t.test != "":
		test, err := loadTable(t.test, t.data.of(table.Features), t.onMissing)
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
		if !isTerminal(errOut) && !t.asJSON {
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
