package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/process"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/online/train"
)

// paperSet is one data set of the paper's experiments, with the figures of its
// column SEP for M = 5, 10 and 20 % of the training set.
type paperSet struct {
	name      string
	fraction  float64 // of the rows that is learnt
	learn     int     // rows that are learnt, if fraction is 0
	judge     int     // rows that judge; 0: all others
	err, loss [3]float64
}

// Source: Villacampa-Calvo & Hernández-Lobato (ICML 2017), Section 5.1. The
// zeros of vehicle and svmguide2 stand for unknown figures.
var paperSets = []paperSet{
	{name: "glass", fraction: 0.9, err: [3]float64{.31, .30, .28}, loss: [3]float64{.77, .79, .81}},
	{name: "new_thyroid", fraction: 0.9, err: [3]float64{.02, .03, .02}, loss: [3]float64{.06, .06, .05}},
	{name: "satellite", fraction: 0.2, err: [3]float64{.12, .12, .12}, loss: [3]float64{.33, .34, .36}},
	{name: "svmguide2", fraction: 0.9},
	{name: "vehicle", fraction: 0.9},
	{name: "vowel6", fraction: 0.9, err: [3]float64{.09, .06, .05}, loss: [3]float64{.25, .19, .18}},
	{name: "waveform", learn: 300, judge: 700, err: [3]float64{.16, .16, .17}, loss: [3]float64{.39, .41, .45}},
	{name: "wine", fraction: 0.9, err: [3]float64{.03, .03, .03}, loss: [3]float64{.08, .07, .06}},
}

var paperInducing = [3]float64{0.05, 0.10, 0.20}

// paper holds the options of the command.
type paper struct {
	repeats  int
	seed     uint64
	only     []string
	inducing []float64
	kernel   string
	stack    train.Stacking
	asJSON   bool
	how      train.Config

	figuresPath string
	figures     []PaperFigure
}

// PaperFigure is a published result of a method on one set, at one fraction of
// inducing points.
type PaperFigure struct {
	set      string
	fraction float64
	Method   string  `json:"method"`
	Error    float64 `json:"error"`
	NLL      float64 `json:"nll"`
}

// loadFigures reads lines of set,inducing,method,error,nll under a header.
func loadFigures(path string) ([]PaperFigure, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 20 // bytes
	rows, err := csv.NewReader(io.LimitReader(f, most)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var figures []PaperFigure
	for i, row := range rows {
		var numbers [3]float64
		var errs [3]error
		if len(row) == 5 {
			for j, at := range []int{1, 3, 4} {
				if numbers[j], errs[j] = strconv.ParseFloat(row[at], 64); !(math.Abs(numbers[j]) <= math.MaxFloat64) {
					errs[j] = strconv.ErrRange
				}
			}
		}
		switch {
		case i == 0 && slices.Equal(row, []string{"set", "inducing", "method", "error", "nll"}):
		case i == 0 || len(row) != 5 || errors.Join(errs[:]...) != nil:
			return nil, fmt.Errorf("%s:%d: want set,inducing,method,error,nll, and under it such as glass,0.05,EP,0.3,0.8", path, i+1)
		default:
			figures = append(figures, PaperFigure{row[0], numbers[0], row[2], numbers[1], numbers[2]})
		}
	}
	return figures, nil
}

func newPaperCommand() *cobra.Command {
	p := paper{how: train.Default()}
	h := &p.how
	h.Batch, h.Passes, h.Sites, h.Schedule, h.Rate, h.Damping, h.Prior = 0, 250, train.Merged, train.Constant, 0.02, 0.5, 0.3
	var finish func()
	cmd := &cobra.Command{
		Use:   "paper FOLDER",
		Short: "The batch experiments of the paper behind the model",
		Long: `paper repeats the experiments on small data sets of "Scalable Multi-Class Gaussian
Process Classification using Expectation Propagation" (Villacampa-Calvo and
Hernández-Lobato, ICML 2017): 20 random splits, 90 % of the rows learnt (satellite
20 %; waveform 300 rows, judged by 700), 250 iterations over all samples, M of 5, 10
and 20 % of the samples learnt. Three models are combined (--members, --folds), by the
rows learnt alone. FOLDER holds NAME.csv or NAME.csv.gz; missing sets
are left out with a message.

The program contains the paper's column SEP of six sets. --figures adds others,
such as GFITC, EP or VI, from a CSV file:

  set,inducing,method,error,nll`,
		Example: `  edge-lab paper data
  edge-lab paper data --only wine,glass --repeats 5 --kernel shared --prior 1`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			finish()
			if p.repeats < 2 {
				return exit.With(exit.Usage, errors.New("--repeats: want 2 or more, for a standard error"))
			}
			if p.figuresPath != "" {
				var err error
				if p.figures, err = loadFigures(p.figuresPath); err != nil {
					return err
				}
			}
			return p.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.IntVar(&p.repeats, "repeats", 20, "random splits of each set")
	f.Uint64Var(&p.seed, "seed", 1, "`SEED` of the first split; others follow it")
	f.StringSliceVar(&p.only, "only", nil, "`NAMES` of the sets (default all)")
	f.Float64SliceVar(&p.inducing, "inducing", paperInducing[:], "inducing points as `FRACTIONS` of the samples learnt")
	f.StringVar(&p.kernel, "kernel", string(online.PerClass), "shared or per-class")
	f.IntVar(&p.stack.Members, "members", 3, "models whose probabilities are combined; with a kernel per class, every third shares one. 1: the model that edge train stores")
	f.IntVar(&p.stack.Folds, "folds", 3, "of the samples learnt, to combine per-class and shared kernels; 0: average the members")
	f.StringVar(&p.figuresPath, "figures", "", "`FILE` of other columns to print beside")
	f.BoolVar(&p.asJSON, "json", false, "print a JSON object a line for each cell")
	finish = cli.TrainingFlags(cmd, h)
	return cmd
}

// PaperCell is the result on one set at one number of inducing points: the object
// of paper --json.
type PaperCell struct {
	Dataset  string       `json:"dataset"`
	Inducing int          `json:"inducing"`
	Fraction float64      `json:"inducing_fraction"`
	Samples  int          `json:"samples"` // learnt
	Error    float64      `json:"error"`
	ErrorSE  float64      `json:"error_se"`
	NLL      float64      `json:"nll"`
	NLLSE    float64      `json:"nll_se"`
	PaperErr float64      `json:"paper_error,omitempty"` // its column SEP
	PaperNLL float64      `json:"paper_nll,omitempty"`
	CPU      float64      `json:"cpu_seconds"` // of one training
	Runs     []report.Run `json:"runs"`

	Others []PaperFigure `json:"others,omitempty"` // of --figures
}

func (p *paper) run(ctx context.Context, folder string, out, errOut io.Writer) error {
	var cells []PaperCell
	for _, set := range paperSets {
		if p.only != nil && !slices.Contains(p.only, set.name) {
			continue
		}
		table, err := loadNamed(folder, set.name)
		if errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(errOut, "%s: not in %s, left out\n", set.name, folder)
			continue
		}
		if err != nil {
			return err
		}
		for _, fraction := range p.inducing {
			cell, err := p.cell(ctx, &set, table, fraction, errOut)
			if err != nil {
				return err
			}
			cells = append(cells, *cell)
			if p.asJSON {
				if err := terminal.PrintJSON(out, cell); err != nil {
					return err
				}
			}
		}
	}
	if len(cells) == 0 {
		return fmt.Errorf("%s holds none of the data sets: want NAME.csv or NAME.csv.gz, such as glass.csv.gz", folder)
	}
	if p.asJSON {
		return nil
	}
	return printPaper(out, cells)
}

// loadNamed loads NAME.csv.gz or NAME.csv.
func loadNamed(folder, name string) (*dataset.Table, error) {
	t, err := dataset.LoadTable(filepath.Join(folder, name+".csv.gz"), dataset.Format{})
	if errors.Is(err, os.ErrNotExist) {
		return dataset.LoadTable(filepath.Join(folder, name+".csv"), dataset.Format{})
	}
	return t, err
}

// sizes returns the number of rows to learn, and of rows to learn or to judge.
func (s *paperSet) sizes(n int) (learn, both int) {
	if s.fraction > 0 {
		return int(math.Round(s.fraction * float64(n))), n
	}
	return min(s.learn, n-1), min(s.learn+s.judge, n)
}

// cell trains on every split.
func (p *paper) cell(ctx context.Context, set *paperSet, table *dataset.Table, fraction float64, errOut io.Writer) (*PaperCell, error) {
	n := len(table.Labels)
	learn, both := set.sizes(n)
	c := &PaperCell{Dataset: set.name, Fraction: fraction, Samples: learn, Inducing: max(2, int(math.Round(fraction*float64(learn))))}
	if at := slices.Index(paperInducing[:], fraction); at >= 0 {
		c.PaperErr, c.PaperNLL = set.err[at], set.loss[at]
	}
	for _, figure := range p.figures {
		if figure.set == set.name && figure.fraction == fraction {
			c.Others = append(c.Others, figure)
		}
	}
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Kernel, cfg.LabelNoise.Start = table.Features, c.Inducing, online.Kernel(p.kernel), 0
	bar := terminal.NewProgress(errOut, p.repeats, fmt.Sprintf("%s, M = %d", set.name, c.Inducing))
	defer bar.Close()
	for r := range uint64(p.repeats) {
		if ctx.Err() != nil {
			return nil, errors.New("paper: interrupted")
		}
		rows := rand.New(rand.NewPCG(p.seed+r, 0)).Perm(n)
		start := process.CPUTime()
		t, err := train.NewEnsemble(cfg, p.how, table.Classes, table.Samples(rows[:learn]), p.stack)
		if err != nil {
			return nil, exit.With(exit.Config, err)
		}
		if err := t.Train(ctx.Err); err != nil {
			return nil, fmt.Errorf("paper: %w", err)
		}
		c.CPU += (process.CPUTime() - start).Seconds() / float64(p.repeats)
		s, err := t.Score(table.Samples(rows[learn:both]))
		if err != nil {
			return nil, err
		}
		c.Error, c.NLL = c.Error+s.Error/float64(p.repeats), c.NLL+s.NLL/float64(p.repeats)
		c.Runs = append(c.Runs, report.Run{Seed: p.seed + r, Error: s.Error, NLL: s.NLL, Brier: s.Brier, ECE: s.ECE, MacroF1: s.MacroF1, Balanced: s.Balanced, Kappa: s.Kappa})
		bar.Add(1)
	}
	c.ErrorSE, c.NLLSE = report.StandardError(c.Runs, report.RunError), report.StandardError(c.Runs, report.RunNLL)
	return c, nil
}

// printPaper writes a line for each cell, and the mean of those that the paper also
// has.
func printPaper(w io.Writer, cells []PaperCell) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	var methods []string
	for _, c := range cells {
		for _, other := range c.Others {
			if !slices.Contains(methods, other.Method) {
				methods = append(methods, other.Method)
			}
		}
	}
	fmt.Fprint(t, "data set\tlearnt\tM\terror\tpaper\tnll\tpaper\tCPU s\t")
	for _, method := range methods {
		fmt.Fprintf(t, "%s\t", method)
	}
	fmt.Fprintln(t)
	var ours, theirs float64
	var compared int
	figure := func(v float64) string {
		if v == 0 {
			return "–"
		}
		return strings.TrimPrefix(fmt.Sprintf("%.2f", v), "0")
	}
	for _, c := range cells {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3f ± %.3f\t%s\t%.3f ± %.3f\t%s\t%.2f\t", c.Dataset, c.Samples, c.Inducing,
			c.Error, c.ErrorSE, figure(c.PaperErr), c.NLL, c.NLLSE, figure(c.PaperNLL), c.CPU)
		for _, method := range methods {
			cell := "–"
			if at := slices.IndexFunc(c.Others, func(f PaperFigure) bool { return f.Method == method }); at >= 0 {
				cell = figure(c.Others[at].Error) + " / " + figure(c.Others[at].NLL)
			}
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
		if c.PaperNLL > 0 {
			ours, theirs, compared = ours+c.NLL, theirs+c.PaperNLL, compared+1
		}
	}
	if compared > 1 {
		n := float64(compared)
		fmt.Fprintf(t, "mean of %d\t\t\t\t\t%.3f\t%.3f\t\t\n", compared, ours/n, theirs/n)
	}
	return t.Flush()
}
