package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/lab"
	"edge/lab/compare"
	"edge/lab/published"
)

// figure holds the output options of a figure.
type figure struct {
	plot   string
	asJSON bool
}

func (f *figure) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.plot, "plot", "", "draw the figure into this SVG `FILE`")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print a JSON object a line for each method and number of inducing points")
}

// show prints and draws curves. A table has at most that many points of a curve.
func (f *figure) show(cmd *cobra.Command, curves []published.Curve, most int) error {
	if f.plot != "" {
		if err := plotCourses(f.plot, curves); err != nil {
			return err
		}
	}
	if !f.asJSON {
		return published.PrintCurves(cmd.OutOrStdout(), curves, most)
	}
	return terminal.PrintJSONLines(cmd.OutOrStdout(), curves)
}

func newSchedulesCommand() *cobra.Command {
	c := compare.Default()
	c.Inducing = 0.2
	var out figure
	cmd := &cobra.Command{
		Use:   "figure1 FILE",
		Short: "Log evidence over time in three schedules of EP",
		Long: `figure1 learns a data file by EP in the three schedules of the paper: to convergence
between the updates of the parameters (outer), or one sweep between them, along the
gradient that holds the cavities fixed (approximate) or the exact one. It prints the
log evidence over processor time. Published: vehicle, M = N/5, 250 updates.`,
		Example: "  edge-lab published figure1 vowel6.csv.gz --plot figure1.svg",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := c.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			_, d, err := loadSet(cmd, args[0])
			if err != nil {
				return err
			}
			bar := terminal.NewProgress(cmd.ErrOrStderr(), len(published.Schedules), "schedules")
			defer bar.Close()
			curves, err := published.Evidence(cmd.Context(), d, c, func() { bar.Add(1) })
			if err != nil {
				return err
			}
			return out.show(cmd, curves, 10)
		}),
	}
	f := cmd.Flags()
	f.Float64Var(&c.Inducing, "inducing", c.Inducing, "inducing points as a `FRACTION` of the rows learnt")
	f.Float64Var(&c.Train, "train-fraction", c.Train, "`FRACTION` of the rows that is learnt")
	f.IntVar(&c.Updates, "updates", c.Updates, "updates of the parameters")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "`SEED` of the split and the first inducing points")
	out.flags(cmd)
	return cmd
}

func newPlaneCommand() *cobra.Command {
	c := published.DefaultPlane()
	var out figure
	cmd := &cobra.Command{
		Use:   "figure3",
		Short: "Decision boundaries and inducing points in two dimensions",
		Long: `figure3 draws a problem of three classes from the process itself, and learns the
inducing points alone, with the true kernel, from the same first ones by each method.
It prints error and nll on as many other rows, and draws the true boundaries in grey,
the predicted ones in black, and where the inducing points are. Published: M = 1, 2, 4
to 256 and 2000 updates; the default takes about a minute.`,
		Example: "  edge-lab published figure3 --inducing 1,4,16 --plot figure3.svg",
		Args:    cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := c.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			bar := terminal.NewProgress(cmd.ErrOrStderr(), len(c.Methods)*len(c.Inducing), "panels")
			defer bar.Close()
			plane, err := published.Draw(cmd.Context(), c, func(*published.Panel) { bar.Add(1) })
			if err != nil {
				return err
			}
			if out.plot != "" {
				if err := plotPlane(out.plot, plane); err != nil {
					return err
				}
			}
			if !out.asJSON {
				return published.PrintPanels(cmd.OutOrStdout(), plane)
			}
			return terminal.PrintJSONLines(cmd.OutOrStdout(), plane.Panels)
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.Methods, "methods", c.Methods, "`NAMES` of the methods, of edge-lab compare")
	f.IntSliceVar(&c.Inducing, "inducing", c.Inducing, "`NUMBERS` of inducing points")
	f.IntVar(&c.Rows, "rows", c.Rows, "rows learnt; as many judge")
	f.IntVar(&c.Updates, "updates", c.Updates, "updates of the inducing points")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "`SEED` of the problem and of the first inducing points")
	f.IntVar(&c.Grid, "grid", c.Grid, "`POINTS` on a side of the pictures")
	out.flags(cmd)
	return cmd
}

// courseFlags adds the flags that all figures over time have.
func courseFlags(cmd *cobra.Command, c *published.CourseConfig) {
	f := cmd.Flags()
	f.IntSliceVar(&c.Inducing, "inducing", c.Inducing, "`NUMBERS` of inducing points")
	f.Float64Var(&c.Seconds, "seconds", c.Seconds, "processor `TIME` of one training")
	f.IntVar(&c.Points, "points", c.Points, "moments at which it is scored, whose time is not counted")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "`SEED` of the split and the first inducing points")
	f.BoolVar(&c.Shared, "shared-kernel", false, "one kernel for all classes; else one for each")
}

func newOverTimeCommand() *cobra.Command {
	c := published.DefaultBatches()
	var out figure
	cmd := &cobra.Command{
		Use:   "figure4 FILE",
		Short: "Error and nll over training time, in full batches",
		Long: `figure4 learns a data file by each method with each number of inducing points, and
prints error and nll of the other rows over the processor time of training. L-BFGS
(gfitc, vi) is scored at the best point so far. Published: satellite, 20 % learnt,
M = 4, 20 and 100, 100 splits.`,
		Example: "  edge-lab published figure4 satellite.csv.gz --seconds 120 --plot figure4.svg",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := c.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			_, d, err := loadSet(cmd, args[0])
			if err != nil {
				return err
			}
			bar := terminal.NewProgress(cmd.ErrOrStderr(), len(c.Methods)*len(c.Inducing)*c.Splits, "trainings")
			defer bar.Close()
			curves, err := published.Batches(cmd.Context(), d, c, func(string) { bar.Add(1) })
			if err != nil {
				return err
			}
			return out.show(cmd, curves, c.Points)
		}),
	}
	cmd.Flags().StringSliceVar(&c.Methods, "methods", c.Methods, "`NAMES` of the methods, of edge-lab compare")
	cmd.Flags().IntVar(&c.Splits, "repeats", c.Splits, "random splits")
	cmd.Flags().Float64Var(&c.Train, "train-fraction", c.Train, "`FRACTION` of the rows that is learnt")
	courseFlags(cmd, &c)
	out.flags(cmd)
	return cmd
}

// large holds the options of the figures about large sets.
type large struct {
	published.CourseConfig
	figure
	test       string
	judge      int
	components int
	common     bool
}

func (l *large) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.test, "test", "", "judge by this `FILE`")
	f.IntVar(&l.judge, "judge", 10000, "without --test, judge by this `NUMBER` of random rows, and learn the others")
	f.IntVar(&l.components, "components", 0, "learn the first `K` principal components instead of the features")
	f.BoolVar(&l.common, "common-scale", false, "divide all features by one deviation, for pixels; else each by its own")
	f.IntVar(&l.Batch, "batch", l.Batch, "rows of a minibatch")
	f.Float64Var(&l.Rate, "rate", l.Rate, "of Adam")
	courseFlags(cmd, &l.CourseConfig)
	l.figure.flags(cmd)
}

// load returns standardised rows to learn and to judge by.
func (l *large) load(path string) (learn, judge *lab.Data, err error) {
	table, err := dataset.LoadTable(path, dataset.Format{})
	if err != nil {
		return nil, nil, err
	}
	order := rand.New(rand.NewPCG(l.Seed, 0)).Perm(len(table.Labels))
	var rows, judged *dataset.Part
	if l.test != "" {
		other, err := dataset.LoadTable(l.test, dataset.Format{})
		if err != nil {
			return nil, nil, err
		}
		rows = table.Samples(order)
		if judged, err = other.Translate(table.Classes); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.test, err)
		}
		if len(other.Features) != len(table.Features) {
			return nil, nil, fmt.Errorf("%s has %d features, %s has %d", l.test, len(other.Features), path, len(table.Features))
		}
	} else {
		if l.judge < 1 || l.judge > len(order)-2 {
			return nil, nil, exit.With(exit.Usage, fmt.Errorf("--judge: want 1 to %d rows of this file", len(order)-2))
		}
		judged, rows = table.Samples(order[:l.judge]), table.Samples(order[l.judge:])
	}
	if l.components > 0 {
		if rows, judged, err = inComponents(l.components, rows, judged); err != nil {
			return nil, nil, err
		}
	}
	learn, judge = compare.Complete(rows), compare.Complete(judged)
	if learn.N() == 0 || judge.N() == 0 {
		return nil, nil, errors.New("no row has all features")
	}
	if l.common {
		published.CommonScale(learn, judge)
	} else {
		compare.Standardise(learn, judge)
	}
	return learn, judge, nil
}

func newMinibatchesCommand() *cobra.Command {
	l := large{CourseConfig: published.DefaultMinibatches()}
	cmd := &cobra.Command{
		Use:   "figure5 FILE",
		Short: "Error and nll over training time, in minibatches",
		Long: `figure5 learns a large data file in minibatches by EP, tied sites (sep), variational
inference (vi) and soft-max regression at the best of four rates (linear), and prints
error and nll of other rows over the processor time of training. Published: M = 200,
minibatches of 200, Adam at 0.001; on MNIST sep at last 0.0208 and 0.0725, vi 0.0202
and 0.0686; on flights of 2008 curves alone.`,
		Example: `  edge-lab published figure5 hflights2011.csv.gz --plot airline.svg
  edge-lab published figure5 train-images-idx3-ubyte.gz --test t10k-images-idx3-ubyte.gz --common-scale --components 40`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := l.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			learn, judge, err := l.load(args[0])
			if err != nil {
				return err
			}
			bar := terminal.NewProgress(cmd.ErrOrStderr(), len(l.Methods)*len(l.Inducing), strings.Join(l.Methods, ", "))
			defer bar.Close()
			curves, err := published.Minibatches(cmd.Context(), learn, judge, l.CourseConfig, func(string) { bar.Add(1) })
			if err != nil {
				return err
			}
			return l.show(cmd, curves, l.Points)
		}),
	}
	cmd.Flags().StringSliceVar(&l.Methods, "methods", l.Methods, "`NAMES` of the methods: ep, sep, vi, linear")
	l.flags(cmd)
	return cmd
}

func newObjectivesCommand() *cobra.Command {
	l := large{CourseConfig: published.DefaultMinibatches()}
	l.Methods = []string{"vi"}
	cmd := &cobra.Command{
		Use:   "figure7 FILE",
		Short: "Mean of the log and log of the mean under variational inference",
		Long: `figure7 learns a large data file in minibatches by variational inference, and prints
over the processor time of training two means over other rows: of E[log p], which its
bound sees (expected_log), and of log E[p], by which predictions are scored
(log_expected). Published: on flights of 2008 the first rises throughout, the second
falls late.`,
		Example: "  edge-lab published figure7 hflights2011.csv.gz --seconds 300 --plot figure7.svg",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := l.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			learn, judge, err := l.load(args[0])
			if err != nil {
				return err
			}
			curves, err := published.Objectives(cmd.Context(), learn, judge, l.CourseConfig)
			if err != nil {
				return err
			}
			return l.show(cmd, curves, l.Points)
		}),
	}
	l.flags(cmd)
	return cmd
}
