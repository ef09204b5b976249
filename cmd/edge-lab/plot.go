package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/report"
)

func newPlotCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "plot [FILE]...",
		Short: "Draw error and log loss of reports that edge printed as JSON",
		Long: `plot reads what edge eval, edge eval ask and edge replay print with --json, from
files or the standard input, and draws error and log loss over the stream, a
curve for each report; reports of eval ask over the number of labels.`,
		Example: "  edge replay gas.csv.gz -c edge.yaml --json | edge-lab plot --output gas.svg",
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			reports, err := readReports(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			if reports[0].Asked != nil {
				return plotAsked(out, reports)
			}
			return plotCurves(out, reports)
		}),
	}
	cmd.Flags().StringVarP(&out, "output", "o", "plot.svg", "SVG `FILE` to write")
	return cmd
}

// readReports reads reports, one JSON object after the other, from files, or from
// in if none is named.
func readReports(files []string, in io.Reader) ([]*report.Report, error) {
	readers := []io.Reader{in}
	if len(files) > 0 {
		readers = nil
	}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("plot: %w", err)
		}
		defer f.Close()
		readers = append(readers, f)
	}
	var reports []*report.Report
	for dec := json.NewDecoder(io.MultiReader(readers...)); ; {
		r := new(report.Report)
		if err := dec.Decode(r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("plot: want the output of --json: %w", err)
		}
		if r.Dataset == "" {
			return nil, errors.New("plot: an object is no report: want the output of --json of edge eval or edge replay")
		}
		if (r.Asked != nil) != (len(reports) > 0 && reports[0].Asked != nil) && len(reports) > 0 {
			return nil, errors.New("plot: reports of eval ask and others have no common figure")
		}
		reports = append(reports, r)
	}
	if len(reports) == 0 {
		return nil, errors.New("plot: no report")
	}
	return reports, nil
}

// plotAsked draws the error over the number of labels, a curve for each data
// set and strategy.
func plotAsked(path string, reports []*report.Report) error {
	var curves []scoreCurve
	for _, r := range reports {
		name := r.Dataset + ", " + string(r.Asked.Strategy)
		if len(curves) == 0 || curves[len(curves)-1].name != name {
			curves = append(curves, scoreCurve{name: name})
		}
		c := &curves[len(curves)-1]
		c.x, c.left, c.right = append(c.x, r.Asked.Labels), append(c.left, r.Error), append(c.right, r.Asked.LastHalf.Error)
	}
	return drawCurves(path, "Error, all samples", "Error, last half", "labels asked for", curves)
}

// scoreCurve is the course of two scores, such as error and log loss.
type scoreCurve struct {
	name           string
	x, left, right []float64
}

// plotCurves draws error and log loss of the reports, side by side, into an
// SVG file.
func plotCurves(path string, reports []*report.Report) error {
	var curves []scoreCurve
	for _, r := range reports {
		c := scoreCurve{name: r.Dataset}
		for _, p := range r.Curve {
			c.x, c.left, c.right = append(c.x, float64(p.N)), append(c.left, p.Error), append(c.right, p.NLL)
		}
		curves = append(curves, c)
	}
	return drawCurves(path, "Prequential error", "Prequential log loss, nats", "samples", curves)
}

// plotTraining draws error and log loss of held-out samples over the CPU time
// of training, and those of the online pass if there was one.
func plotTraining(path string, r *report.Training) error {
	curves := []scoreCurve{trainingCurve(r.Dataset, r.Curve)}
	if len(r.Online) > 0 {
		curves[0].name += ", offline"
		curves = append(curves, trainingCurve("one pass online", r.Online))
	}
	return drawCurves(path, "Held-out error", "Held-out log loss, nats", "CPU seconds", curves)
}

func trainingCurve(name string, points []report.TrainingPoint) scoreCurve {
	c := scoreCurve{name: name}
	for _, p := range points {
		c.x, c.left, c.right = append(c.x, p.CPUSeconds), append(c.left, float64(p.Error)), append(c.right, float64(p.NLL))
	}
	return c
}

// plotSets draws coverage and size of the prediction sets by tenths of the
// streams, of the reports that have sets.
func plotSets(path string, reports []*report.Report) error {
	var curves []scoreCurve
	for _, r := range reports {
		c := scoreCurve{name: r.Dataset}
		for i, t := range r.Tenths {
			if t.Coverage == t.Coverage {
				c.x, c.left, c.right = append(c.x, float64(i+1)), append(c.left, float64(t.Coverage)), append(c.right, float64(t.Size))
			}
		}
		if len(c.x) > 0 { // soft-max regression has none
			curves = append(curves, c)
		}
	}
	if len(curves) == 0 {
		return errors.New("there are no prediction sets to draw; give --coverage")
	}
	return drawCurves(path, "Coverage of the prediction sets", "Classes in a prediction set", "tenth of the stream", curves)
}
