package main

import (
	"bytes"
	"fmt"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
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
	const width, height = 11 * vg.Inch, 4.5 * vg.Inch
	canvas := vgsvg.New(width, height)
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Millimeter * 8, PadTop: vg.Millimeter * 2, PadRight: vg.Millimeter * 4}
	plots := [][]*plot.Plot{{left, right}}
	for j, c := range plot.Align(plots, tiles, draw.New(canvas))[0] {
		plots[0][j].Draw(c)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	if err := os.WriteFile(path, svg.Bytes(), 0o644); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
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
