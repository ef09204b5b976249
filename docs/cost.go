//go:build ignore

// Reads what BenchmarkCost prints, draws it into the file of the first argument
// and prints a table. docs/cost.sh runs it.
package main

import (
	"bufio"
	"fmt"
	"log"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// axes in the order of the plot, and the fixed sizes beside each.
var axes = []struct{ name, label string }{
	{"M", "inducing points M"}, {"C", "classes C"}, {"D", "features D"}, {"B", "samples of a minibatch B"},
}

var kinds = []string{"step", "prediction"}

// line is a benchmark's name, with axis, size and kind, and its processor time.
var line = regexp.MustCompile(`^BenchmarkCost/(\w)=(\d+)/(step|prediction)\S*\s.*?([\d.]+) cpu-µs/op`)

func main() {
	curves := map[string]plotter.XYs{} // by kind and axis, microseconds
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f := line.FindStringSubmatch(in.Text())
		if f == nil {
			continue
		}
		size, _ := strconv.ParseFloat(f[2], 64)
		micros, _ := strconv.ParseFloat(f[4], 64)
		take(curves, f[3]+f[1], size, micros)
	}
	if len(curves) == 0 {
		log.Fatal("no benchmark on standard input")
	}
	for _, kind := range kinds {
		for _, a := range axes {
			if c := curves[kind+a.name]; len(c) > 0 {
				tell(kind, a.name, c)
			}
		}
	}
	if err := paint(os.Args[1], curves); err != nil {
		log.Fatal(err)
	}
}

// take keeps the least time of a size.
func take(curves map[string]plotter.XYs, key string, size, micros float64) {
	c := curves[key]
	for i := range c {
		if c[i].X == size {
			c[i].Y = min(c[i].Y, micros)
			return
		}
	}
	curves[key] = append(c, plotter.XY{X: size, Y: micros})
}

// tell prints a curve, with the slope from each point to the next in logarithms.
func tell(kind, axis string, c plotter.XYs) {
	var sizes, times, slopes strings.Builder
	for i, p := range c {
		fmt.Fprintf(&sizes, " %g |", p.X)
		fmt.Fprintf(&times, " %s |", round(p.Y))
		if i == 0 {
			slopes.WriteString(" |")
			continue
		}
		fmt.Fprintf(&slopes, " %.1f |", math.Log(p.Y/c[i-1].Y)/math.Log(p.X/c[i-1].X))
	}
	fmt.Printf("| %s, %s |%s\n|%s\n| µs |%s\n| slope |%s\n\n", kind, axis, sizes.String(), strings.Repeat(" --- |", len(c)+1), times.String(), slopes.String())
}

// round writes three digits.
func round(v float64) string {
	return strconv.FormatFloat(v, 'f', max(0, 2-int(math.Floor(math.Log10(v)))), 64)
}

// paint draws a panel for each axis, logarithmic both ways.
func paint(path string, curves map[string]plotter.XYs) error {
	canvas := vgsvg.New(24*vg.Centimeter, 18*vg.Centimeter)
	tiles := draw.Tiles{Rows: 2, Cols: 2, PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2, PadRight: vg.Centimeter / 2}
	for i, a := range axes {
		p := plot.New()
		p.X.Label.Text, p.Y.Label.Text = a.label, "processor time, µs"
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
		var sizes []plot.Tick
		for _, at := range curves[kinds[0]+a.name] {
			sizes = append(sizes, plot.Tick{Value: at.X, Label: strconv.Itoa(int(at.X))})
		}
		p.X.Tick.Marker = plot.ConstantTicks(sizes)
		p.Legend.Top, p.Legend.Left = true, true
		p.Add(plotter.NewGrid())
		for k, kind := range kinds {
			if len(curves[kind+a.name]) == 0 { // a prediction knows no minibatch
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
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
