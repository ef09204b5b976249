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

// plotCurves draws error and log loss of the reports, side by side, into an
// SVG file.
func plotCurves(path string, reports []*Report) error {
	const width, height = 11 * vg.Inch, 4.5 * vg.Inch
	loss := func(p CurvePoint) float64 { return p.NLL }
	wrong := func(p CurvePoint) float64 { return p.Error }
	left, err := curvePlot("Prequential error", reports, wrong)
	if err != nil {
		return err
	}
	right, err := curvePlot("Prequential log loss, nats", reports, loss)
	if err != nil {
		return err
	}
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

// curvePlot draws one figure of every report's curve over the samples seen.
func curvePlot(title string, reports []*Report, figure func(CurvePoint) float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "samples"
	p.Y.Min = 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, r := range reports {
		points := make(plotter.XYs, len(r.Curve))
		for j, c := range r.Curve {
			points[j] = plotter.XY{X: float64(c.N), Y: figure(c)}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", r.Dataset, err)
		}
		line.Color, line.Dashes, line.Width = plotutil.Color(i), plotutil.Dashes(i/len(plotutil.SoftColors)), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(r.Dataset, line)
	}
	p.Y.Min = 0
	return p, nil
}
