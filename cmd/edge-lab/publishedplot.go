package main

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"edge/lab/published"
)

// plotCourses draws each score of the curves over time, on a logarithmic axis; a row of
// figures for each number of inducing points.
func plotCourses(path string, curves []published.Curve) error {
	var sizes []int
	for _, c := range curves {
		if c.Inducing > 0 && !slices.Contains(sizes, c.Inducing) {
			sizes = append(sizes, c.Inducing)
		}
	}
	var rows [][]*plot.Plot
	for _, m := range sizes {
		var row []*plot.Plot
		for i, name := range curves[0].Scores {
			p, err := coursePlot(fmt.Sprintf("%s, M = %d", name, m), curves, m, i)
			if err != nil {
				return err
			}
			row = append(row, p)
		}
		rows = append(rows, row)
	}
	return drawGrid(path, rows, 5.5*vg.Inch, 3.5*vg.Inch)
}

// coursePlot draws one score of the curves with m inducing points, and of those without any.
func coursePlot(title string, curves []published.Curve, m, score int) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, "processor seconds"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	style := 0
	for _, c := range curves {
		if c.Inducing != m && c.Inducing != 0 || len(c.Points) == 0 {
			continue
		}
		var points plotter.XYs
		for _, at := range c.Points {
			points = append(points, plotter.XY{X: max(at.Seconds, 1e-4), Y: at.Scores[score]})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", c.Method, err)
		}
		line.Color, line.Width = plotutil.Color(style), vg.Points(1.5)
		style++
		p.Add(line)
		p.Legend.Add(c.Method, line)
	}
	return p, nil
}

// plotPlane draws, for each panel, the true boundaries in grey, the predicted ones in black
// and the inducing points.
func plotPlane(path string, plane *published.Plane) error {
	var rows [][]*plot.Plot
	for i := range plane.Panels {
		panel := &plane.Panels[i]
		if i == 0 || panel.Method != plane.Panels[i-1].Method {
			rows = append(rows, nil)
		}
		p := plot.New()
		p.Title.Text = fmt.Sprintf("%s, M = %d", panel.Method, panel.Inducing)
		p.HideAxes()
		boundaries(p, plane.Axis, plane.Truth, color.Gray{Y: 170}, vg.Points(3))
		boundaries(p, plane.Axis, panel.Regions, color.Black, vg.Points(1))
		p.Add(squares(panel.Z))
		end := len(plane.Axis) - 1
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = plane.Axis[0], plane.Axis[end], plane.Axis[0], plane.Axis[end]
		rows[len(rows)-1] = append(rows[len(rows)-1], p)
	}
	return drawGrid(path, rows, 2*vg.Inch, 2.2*vg.Inch)
}

// boundaries adds the curves where a class stops being the largest. Each lies between two
// classes, so that those of all but one are enough.
func boundaries(p *plot.Plot, axis []float64, regions []*mat.Dense, c color.Color, width vg.Length) {
	for _, r := range regions[:max(len(regions)-1, 0)] {
		p.Add(zeros{axis, r, draw.LineStyle{Color: c, Width: width}})
	}
}

// zeros draws where a function on a grid, linear along the edges of its cells, is 0.
type zeros struct {
	axis  []float64
	z     *mat.Dense // [first coordinate][second coordinate]
	style draw.LineStyle
}

// Plot implements plot.Plotter.
func (l zeros) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	var path vg.Path
	for i := range len(l.axis) - 1 {
		for j := range len(l.axis) - 1 {
			corners := [5][2]int{{i, j}, {i + 1, j}, {i + 1, j + 1}, {i, j + 1}, {i, j}}
			var ends []vg.Point
			for e, a := range corners[:4] {
				b := corners[e+1]
				from, to := l.z.At(a[0], a[1]), l.z.At(b[0], b[1])
				if from > 0 == (to > 0) {
					continue
				}
				t := from / (from - to)
				ends = append(ends, vg.Point{
					X: toX(l.axis[a[0]] + t*(l.axis[b[0]]-l.axis[a[0]])),
					Y: toY(l.axis[a[1]] + t*(l.axis[b[1]]-l.axis[a[1]])),
				})
			}
			for e := 0; e+1 < len(ends); e += 2 {
				path.Move(ends[e])
				path.Line(ends[e+1])
			}
		}
	}
	c.SetLineStyle(l.style)
	if len(path) > 0 {
		c.Stroke(path)
	}
}

// squares draws points, M×2, as one path.
type squares []float64

// Plot implements plot.Plotter.
func (s squares) Plot(c draw.Canvas, p *plot.Plot) {
	const side = 2.4 * vg.Millimeter / 3
	toX, toY := p.Transforms(&c)
	var path vg.Path
	for i := 0; i < len(s); i += 2 {
		x, y := toX(s[i])-side/2, toY(s[i+1])-side/2
		if !c.Contains(vg.Point{X: x, Y: y}) {
			continue
		}
		path.Move(vg.Point{X: x, Y: y})
		path.Line(vg.Point{X: x + side, Y: y})
		path.Line(vg.Point{X: x + side, Y: y + side})
		path.Line(vg.Point{X: x, Y: y + side})
		path.Close()
	}
	c.SetColor(plotutil.Color(0))
	if len(path) > 0 {
		c.Fill(path)
	}
}
