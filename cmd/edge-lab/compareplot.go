package main

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"edge/lab/compare"
)

// plotComparison draws error and negative log likelihood with their standard errors, a
// column for each method and a mark for each data set.
func plotComparison(path string, cells []compare.Cell) error {
	left, err := methodPlot("Error", cells, func(c *compare.Cell) (v, se float64) { return c.Error, c.ErrorSE })
	if err != nil {
		return err
	}
	right, err := methodPlot("Negative log likelihood, nats", cells, func(c *compare.Cell) (v, se float64) { return c.NLL, c.NLLSE })
	if err != nil {
		return err
	}
	return drawPair(path, left, right)
}

// points are marks with a standard error to either side.
type points struct {
	plotter.XYs
	se []float64
}

func (p points) YError(i int) (low, high float64) { return p.se[i], p.se[i] }

func methodPlot(title string, cells []compare.Cell, figure func(*compare.Cell) (v, se float64)) (*plot.Plot, error) {
	var methods, sets []string
	for _, c := range cells {
		if !slices.Contains(methods, c.Method) {
			methods = append(methods, c.Method)
		}
		if !slices.Contains(sets, c.Dataset) {
			sets = append(sets, c.Dataset)
		}
	}
	p := plot.New()
	p.Title.Text = title
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	p.NominalX(methods...)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/4, draw.XRight, draw.YCenter
	for s, set := range sets {
		var marks points
		for i := range cells {
			c := &cells[i]
			if c.Dataset != set || c.Splits == 0 {
				continue
			}
			v, se := figure(c)
			beside := 0.08 * (float64(s) - float64(len(sets)-1)/2) // sets do not hide each other
			marks.XYs = append(marks.XYs, plotter.XY{X: float64(slices.Index(methods, c.Method)) + beside, Y: v})
			marks.se = append(marks.se, se)
		}
		if len(marks.XYs) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(marks.XYs)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", set, err)
		}
		bars, err := plotter.NewYErrorBars(marks)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", set, err)
		}
		dots.Color, dots.Shape, dots.Radius = plotutil.Color(s), draw.CircleGlyph{}, vg.Points(2.5)
		bars.Color = plotutil.Color(s)
		p.Add(dots, bars)
		p.Legend.Add(set, dots)
	}
	p.Y.Min = 0
	return p, nil
}
