package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"edge/cmd/internal/cli"
)

// costAxes are the dimensions in the order of the panels.
var costAxes = []struct{ name, label string }{
	{"M", "inducing points M"}, {"C", "classes C"}, {"D", "features D"}, {"B", "samples of a minibatch B"},
}

// costKinds are the benchmarks of each dimension.
var costKinds = []string{"step", "prediction"}

// costLine is a benchmark's name, with axis, size and kind, and its processor time.
var costLine = regexp.MustCompile(`^BenchmarkCost/(\w)=(\d+)/(step|prediction)\S*\s.*?([\d.]+) cpu-µs/op`)

func newCostCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cost SVG",
		Short: "Draw the cost of a step and a prediction from benchmarks",
		Long: `cost reads the output of BenchmarkCost on the standard input, draws processor
time over the size of each dimension into the SVG file and prints a table with
the slope from each size to the next.`,
		Example: "  go test ./online -run '^$' -bench '^BenchmarkCost$' | edge-lab cost docs/results/cost.svg",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			return cost(cmd.InOrStdin(), cmd.OutOrStdout(), args[0])
		}),
	}
}

// cost reads benchmarks, prints a table and draws a figure into the file at path.
func cost(benchmarks io.Reader, out io.Writer, path string) error {
	curves := map[string]plotter.XYs{} // by kind and axis, microseconds
	in := bufio.NewScanner(benchmarks)
	for in.Scan() {
		f := costLine.FindStringSubmatch(in.Text())
		if f == nil {
			continue
		}
		size, _ := strconv.ParseFloat(f[2], 64)
		micros, _ := strconv.ParseFloat(f[4], 64)
		keepLeast(curves, f[3]+f[1], size, micros)
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	if len(curves) == 0 {
		return errors.New("cost: no line of BenchmarkCost on the standard input")
	}
	for _, kind := range costKinds {
		for _, a := range costAxes {
			if c := curves[kind+a.name]; len(c) > 0 {
				printSlopes(out, kind, a.name, c)
			}
		}
	}
	return drawCost(path, curves)
}

// keepLeast keeps the least time of a size.
func keepLeast(curves map[string]plotter.XYs, key string, size, micros float64) {
	c := curves[key]
	for i := range c {
		if c[i].X == size {
			c[i].Y = min(c[i].Y, micros)
			return
		}
	}
	curves[key] = append(c, plotter.XY{X: size, Y: micros})
}

// printSlopes prints a curve, with the slope from each point to the next in logarithms.
func printSlopes(out io.Writer, kind, axis string, c plotter.XYs) {
	var sizes, times, slopes strings.Builder
	for i, p := range c {
		fmt.Fprintf(&sizes, " %g |", p.X)
		fmt.Fprintf(&times, " %s |", threeDigits(p.Y))
		if i == 0 {
			slopes.WriteString(" |")
			continue
		}
		fmt.Fprintf(&slopes, " %.1f |", math.Log(p.Y/c[i-1].Y)/math.Log(p.X/c[i-1].X))
	}
	fmt.Fprintf(out, "| %s, %s |%s\n|%s\n| µs |%s\n| slope |%s\n\n", kind, axis, sizes.String(), strings.Repeat(" --- |", len(c)+1), times.String(), slopes.String())
}

// threeDigits writes three digits.
func threeDigits(v float64) string {
	return strconv.FormatFloat(v, 'f', max(0, 2-int(math.Floor(math.Log10(v)))), 64)
}

// drawCost draws a panel for each axis, logarithmic both ways.
func drawCost(path string, curves map[string]plotter.XYs) error {
	canvas := vgsvg.New(24*vg.Centimeter, 18*vg.Centimeter)
	tiles := draw.Tiles{Rows: 2, Cols: 2, PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2, PadRight: vg.Centimeter / 2}
	for i, a := range costAxes {
		p := plot.New()
		p.X.Label.Text, p.Y.Label.Text = a.label, "processor time, µs"
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
		var sizes []plot.Tick
		for _, at := range curves[costKinds[0]+a.name] {
			sizes = append(sizes, plot.Tick{Value: at.X, Label: strconv.Itoa(int(at.X))})
		}
		p.X.Tick.Marker = plot.ConstantTicks(sizes)
		p.Legend.Top, p.Legend.Left = true, true
		p.Add(plotter.NewGrid())
		for k, kind := range costKinds {
			if len(curves[kind+a.name]) == 0 { // a prediction has no minibatch
				continue
			}
			l, s, err := plotter.NewLinePoints(curves[kind+a.name])
			if err != nil {
				return err
			}
			l.Color, s.Color, s.Shape = plotutil.Color(k), plotutil.Color(k), draw.CircleGlyph{}
			p.Add(l, s)
			p.Legend.Add(kind, l, s)
		}
		p.Draw(tiles.At(draw.New(canvas), i%2, i/2))
	}
	f, err := cli.CreateOutput("cost", path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return f.Finish(err)
}
