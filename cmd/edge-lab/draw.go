package main

import (
	"bytes"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"edge/cmd/internal/cli"
)

// drawCurves draws two figures side by side into an SVG file.
func drawCurves(path, leftTitle, rightTitle, xLabel string, curves []scoreCurve) error {
	left, err := curvePlot(leftTitle, xLabel, curves, func(c *scoreCurve) []float64 { return c.left })
	if err != nil {
		return err
	}
	right, err := curvePlot(rightTitle, xLabel, curves, func(c *scoreCurve) []float64 { return c.right })
	if err != nil {
		return err
	}
	return drawPair(path, left, right)
}

// drawPair draws two figures side by side into an SVG file.
func drawPair(path string, left, right *plot.Plot) error {
	return drawGrid(path, [][]*plot.Plot{{left, right}}, 5.5*vg.Inch, 4.5*vg.Inch)
}

// drawGrid draws rows of figures of that size each into an SVG file.
func drawGrid(path string, plots [][]*plot.Plot, width, height vg.Length) error {
	rows, cols := len(plots), len(plots[0])
	canvas := vgsvg.New(width*vg.Length(cols), height*vg.Length(rows))
	tiles := draw.Tiles{
		Rows: rows, Cols: cols, PadX: vg.Millimeter * 8, PadTop: vg.Millimeter * 2, PadRight: vg.Millimeter * 4,
		PadY: vg.Millimeter * 4 * vg.Length(min(rows-1, 1)),
	}
	for i, line := range plot.Align(plots, tiles, draw.New(canvas)) {
		for j, c := range line {
			plots[i][j].Draw(c)
		}
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	file, err := cli.CreateOutput("plot", path)
	if err != nil {
		return err
	}
	_, err = svg.WriteTo(file)
	return file.Finish(err)
}

// curvePlot draws one figure of every curve.
func curvePlot(title, xLabel string, curves []scoreCurve, figure func(*scoreCurve) []float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = xLabel
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i := range curves {
		c := &curves[i]
		points := make(plotter.XYs, len(c.x))
		for j, y := range figure(c) {
			points[j] = plotter.XY{X: c.x[j], Y: y}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", c.name, err)
		}
		line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i/len(plotutil.SoftColors)), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	p.Y.Min = 0
	return p, nil
}
