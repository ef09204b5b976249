package htmlreport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/score"
)

// streamCharts draws error and log loss over the stream; without a stream, of each
// run.
func streamCharts(r *report.Report) []*chart {
	if len(r.Curve) < 2 {
		return runCharts(r)
	}
	last := r.Curve[len(r.Curve)-1]
	errors := &chart{ID: "error", Title: "Error over the stream", Note: "fraction of the samples whose predicted class is wrong"}
	losses := &chart{ID: "loss", Title: "Log loss over the stream", Note: "nats a sample; lower is better, 0 is certain and right"}
	errors.Sentence = fmt.Sprintf("After %s samples, %s are predicted wrongly", count(last.N), percent(last.Error))
	losses.Sentence = fmt.Sprintf("After %s samples, the mean log loss is %.4f nats", count(last.N), last.NLL)
	if last.Window.N < last.N {
		errors.Sentence += fmt.Sprintf("; of the last %s, %s", count(last.Window.N), percent(last.Window.Error))
		losses.Sentence += fmt.Sprintf("; that of the last %s is %.4f", count(last.Window.N), last.Window.NLL)
	}
	errors.Sentence, losses.Sentence = errors.Sentence+".", losses.Sentence+"."
	if r.Prior.N > 0 {
		errors.Sentence += fmt.Sprintf(" The class prior is wrong for %s, the rule “same as the last label” for %s.", percent(r.Prior.Error), percent(r.Last.Error))
		losses.Sentence += fmt.Sprintf(" The class prior has %.4f, the rule “same as the last label” %.4f.", r.Prior.NLL, r.Last.NLL)
	}
	window := "last " + count(last.Window.N)
	for _, c := range []struct {
		*chart
		yName      string
		yText      func(float64) string
		all, newer func(*report.CurvePoint) float64
	}{
		{errors, "fraction wrong", tickPercent, func(p *report.CurvePoint) float64 { return p.Error }, func(p *report.CurvePoint) float64 { return p.Window.Error }},
		{losses, "log loss, nats", short, func(p *report.CurvePoint) float64 { return p.NLL }, func(p *report.CurvePoint) float64 { return p.Window.NLL }},
	} {
		whole, recent := pointsOf(r.Curve, c.all), pointsOf(r.Curve, c.newer)
		top := largest(1e-3, append(heights(whole), heights(recent)...)...)
		c.Plot = newPlot(c.Title+". "+c.Sentence, axis{0, float64(last.N)}, axis{0, 1.05 * top}, "judged samples", c.yName, c.yText)
		c.Plot.addLine("second", whole)
		c.Plot.addLine("first", recent)
		c.Key = []key{{"first", window}, {"second", "all so far"}}
		c.Table = &table{Head: []string{"Samples", c.Title + ", all so far", window}}
		for i := range r.Curve {
			c.Table.Rows = append(c.Table.Rows, []cell{number(r.Curve[i].N), formatScore(whole[i].y), formatScore(recent[i].y)})
		}
	}
	return []*chart{errors, losses}
}

// runCharts draws error and log loss of each of several runs.
func runCharts(r *report.Report) []*chart {
	if len(r.Runs) < 2 {
		return nil
	}
	n := len(r.Runs)
	errors := &chart{ID: "error", Title: "Error of each run", Note: "fraction of the judged samples whose predicted class is wrong",
		Sentence: fmt.Sprintf("The mean error of %d runs is %.4f ± %.4f; the line marks it.", n, r.Error, r.ErrorSE)}
	losses := &chart{ID: "loss", Title: "Log loss of each run", Note: "nats a sample; lower is better, 0 is certain and right",
		Sentence: fmt.Sprintf("The mean log loss of %d runs is %.4f ± %.4f nats; the line marks it.", n, r.NLL, r.NLLSE)}
	for _, c := range []struct {
		*chart
		yName  string
		yText  func(float64) string
		figure func(report.Run) float64
		mean   float64
	}{{errors, "fraction wrong", tickPercent, func(run report.Run) float64 { return run.Error }, r.Error}, {losses, "log loss, nats", short, func(run report.Run) float64 { return run.NLL }, r.NLL}} {
		top := c.mean
		for _, run := range r.Runs {
			top = largest(top, c.figure(run))
		}
		c.Plot = newPlot(c.Title+". "+c.Sentence, axis{0, float64(n + 1)}, axis{0, 1.05 * largest(1e-3, top)}, "run", c.yName, c.yText)
		c.Plot.addLine("ideal", []point{{0, c.mean}, {float64(n + 1), c.mean}})
		c.Table = &table{Head: []string{"Run", c.Title}}
		for i, run := range r.Runs {
			v := c.figure(run)
			c.Plot.Dots = append(c.Plot.Dots, dot{X: c.Plot.xAt(float64(i + 1)), Y: c.Plot.yAt(v), R: 4, Style: "dot", Title: fmt.Sprintf("run %d: %.4f", i+1, v)})
			c.Table.Rows = append(c.Table.Rows, []cell{number(uint64(i + 1)), formatScore(v)})
		}
	}
	return []*chart{errors, losses}
}

// reliabilityChart draws the accuracy of each bin over its mean probability.
func reliabilityChart(r *report.Report) *chart {
	var n uint64
	for _, b := range r.Charts.Reliability {
		n += b.N
	}
	if n == 0 {
		return nil
	}
	c := &chart{ID: "reliability", Title: "Reliability", Note: "predicted against observed frequency",
		Sentence: fmt.Sprintf("The expected calibration error of %s samples is %.4f: the mean distance of the dots from the diagonal, weighted by their samples.", count(n), r.ECE),
		Key:      []key{{"ideal", "perfect calibration"}, {"dots", "a bin; larger dots hold more samples"}},
		Table:    &table{Head: []string{"Probability of the predicted class", "Fraction right", "Samples"}},
	}
	if len(r.Runs) > 0 {
		c.Sentence = fmt.Sprintf("The mean of the runs' expected calibration errors is %.4f; the dots pool the %s samples of all runs.", r.ECE, count(n))
	}
	c.Plot = newPlot(c.Title+". "+c.Sentence, axis{0, 1}, axis{0, 1}, "probability of the predicted class", "fraction right", short)
	c.Plot.addLine("ideal", []point{{0, 0}, {1, 1}})
	for _, b := range r.Charts.Reliability {
		if b.N == 0 {
			continue
		}
		c.Plot.Dots = append(c.Plot.Dots, dot{
			X: c.Plot.xAt(b.Confidence), Y: c.Plot.yAt(b.Accuracy), Foot: c.Plot.yAt(b.Confidence), R: px(3 + 11*math.Sqrt(float64(b.N)/float64(n))),
			Style: "dot", Title: fmt.Sprintf("predicted %s, right %s, %s samples", percent(b.Confidence), percent(b.Accuracy), count(b.N)),
		})
		c.Table.Rows = append(c.Table.Rows, []cell{formatScore(b.Confidence), formatScore(b.Accuracy), number(b.N)})
	}
	return c
}

const mostPairs = 30 // of label and prediction, where the matrix is too large

// confusionChart is the confusion matrix, or the most frequent confusions of more
// than report.MaxConfusion classes.
func confusionChart(r *report.Report) *chart {
	c := &chart{ID: "confusion", Title: "Confusion matrix", Note: "rows: label; columns: predicted class; numbers of samples"}
	var right, n uint64
	type pair struct {
		label, predicted int
		n                uint64
	}
	var pairs []*pair
	for i, row := range r.Charts.Matrix {
		for j, v := range row {
			n += v
			if i == j {
				right += v
			} else if v > 0 {
				pairs = append(pairs, &pair{i, j, v})
			}
		}
	}
	if n == 0 {
		return nil
	}
	names := classNames(r)
	slices.SortStableFunc(pairs, func(a, b *pair) int { return cmp.Compare(b.n, a.n) })
	c.Sentence = fmt.Sprintf("%s of %s predicted samples are on the diagonal, where label and prediction agree.", count(right), count(n))
	if len(pairs) > 0 {
		p := pairs[0]
		c.Sentence += fmt.Sprintf(" The most frequent confusion is %s predicted as %s, %s times.", names[p.label], names[p.predicted], count(p.n))
	}
	c.Table = &table{Head: []string{"Label", "Predicted", "Samples"}}
	for _, p := range pairs[:min(mostPairs, len(pairs))] {
		c.Table.Rows = append(c.Table.Rows, []cell{{Text: names[p.label]}, {Text: names[p.predicted]}, number(p.n)})
	}
	if len(names) > report.MaxConfusion {
		c.Note, c.Sentence = "the most frequent confusions", c.Sentence+fmt.Sprintf(" A matrix of %d classes is too large to show.", len(names))
		return c
	}
	c.Matrix = &matrix{Classes: names}
	for i, row := range r.Charts.Matrix {
		var sum uint64
		for _, v := range row {
			sum += v
		}
		m := matrixRow{Label: names[i]}
		for j, v := range row {
			cell := matrixCell{Text: strconv.FormatUint(v, 10), Style: "wrong"}
			if i == j {
				cell.Style = "right"
			}
			if sum > 0 {
				cell.Share = fmt.Sprintf("--share: %.0f%%", 55*float64(v)/float64(sum))
				cell.Title = fmt.Sprintf("%s of label %s", percent(float64(v)/float64(sum)), names[i])
			}
			m.Cells = append(m.Cells, cell)
		}
		c.Matrix.Rows = append(c.Matrix.Rows, m)
	}
	return c
}

// classNames returns the classes of the charts, fit for a page.
func classNames(r *report.Report) (names []string) {
	for _, s := range r.Charts.PerClass {
		names = append(names, terminal.Plain(s.Class))
	}
	return names
}

const (
	mostBars  = 40 // classes
	barHeight = 24 // of a class
)

// classChart draws precision and recall of the classes with the most labels.
func classChart(r *report.Report) *chart {
	var all []*score.ClassScore
	for i := range r.Charts.PerClass {
		all = append(all, &r.Charts.PerClass[i])
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b *score.ClassScore) int { return cmp.Compare(b.N, a.N) })
	worst := all[0]
	c := &chart{ID: "classes", Title: "Scores of each class", Note: "precision: fraction of its predictions that are right; recall: fraction of its samples that are found",
		Key:   []key{{"first bar", "precision"}, {"second bar", "recall"}},
		Table: &table{Head: []string{"Class", "Precision", "Recall", "Samples"}}}
	for _, s := range all {
		if s.N > 0 && (worst.N == 0 || s.Recall < worst.Recall) {
			worst = s
		}
		c.Table.Rows = append(c.Table.Rows, []cell{{Text: terminal.Plain(s.Class)}, formatScore(float64(s.Precision)), formatScore(float64(s.Recall)), number(s.N)})
	}
	c.Sentence = fmt.Sprintf("The lowest recall is %s, of class %s with %s samples.", percent(float64(worst.Recall)), terminal.Plain(worst.Class), count(worst.N))
	shown := all[:min(mostBars, len(all))]
	if len(shown) < len(all) {
		c.Sentence += fmt.Sprintf(" The chart shows the %d classes with the most samples of %d.", len(shown), len(all))
	}
	p := newPlot(c.Title+". "+c.Sentence, axis{0, 1}, axis{0, float64(len(shown))}, "precision and recall", "", short)
	p.Left, p.YTicks = 150, nil
	p.Bottom = p.Top + px(barHeight*len(shown))
	p.Height = p.Bottom + 44
	p.XTicks = nil
	for _, v := range ticks(0, 1) {
		p.XTicks = append(p.XTicks, tick{At: p.xAt(v), Text: short(v)})
	}
	for i, s := range shown {
		y := p.Top + px(barHeight*i)
		name := terminal.Plain(s.Class)
		p.Names = append(p.Names, tick{At: y + barHeight/2 + 4, Text: cut(name, 20), Full: name})
		for k, v := range []score.Real{s.Precision, s.Recall} {
			style, what := "first", "precision"
			if k == 1 {
				style, what = "second", "recall"
			}
			if v == v {
				p.Bars = append(p.Bars, bar{X: p.Left, Y: y + 3 + px(9*k), Width: p.xAt(float64(v)) - p.Left, Height: 8, Style: style, Title: fmt.Sprintf("%s: %s %s, %s samples", name, what, percent(float64(v)), count(s.N))})
			}
		}
	}
	c.Plot = p
	return c
}

// coverageChart draws the coverage of the prediction sets over the stream.
func coverageChart(r *report.Report) *chart {
	var points []report.CurvePoint
	for _, p := range r.Curve {
		if !math.IsNaN(float64(p.Coverage)) {
			points = append(points, p)
		}
	}
	if len(points) < 2 {
		return nil
	}
	last, target := points[len(points)-1], r.Charts.Target
	c := &chart{ID: "coverage", Title: "Coverage of the prediction sets", Note: "fraction of the sets that contain the label"}
	c.Sentence = fmt.Sprintf("%s of the sets contain the label; the target is %s.", percent(float64(last.Coverage)), percent(target))
	if s := r.Sets; s != nil {
		c.Sentence += fmt.Sprintf(" A set holds %.2f classes on average, and %s are empty.", float64(s.Size), percent(float64(s.Empty)))
	}
	whole := pointsOf(points, func(p *report.CurvePoint) float64 { return float64(p.Coverage) })
	recent := pointsOf(points, func(p *report.CurvePoint) float64 { return float64(p.Window.Coverage) })
	low := smallest(target, append(heights(whole), heights(recent)...)...)
	window := "last " + count(last.Window.N)
	c.Plot = newPlot(c.Title+". "+c.Sentence, axis{0, float64(last.N)}, axis{max(0, math.Floor(10*low-1e-9)/10), 1}, "judged samples", "fraction covered", tickPercent)
	c.Plot.addLine("ideal", []point{{0, target}, {float64(last.N), target}})
	c.Plot.addLine("second", whole)
	c.Plot.addLine("first", recent)
	c.Key = []key{{"first", window}, {"second", "all so far"}, {"ideal", "target"}}
	c.Table = &table{Head: []string{"Samples", "Covered, all so far", window}}
	for i := range points {
		c.Table.Rows = append(c.Table.Rows, []cell{number(points[i].N), formatScore(whole[i].y), formatScore(recent[i].y)})
	}
	return c
}

const series = 8 // styles of lines in comparedChart

// comparedChart draws the error over the number of labels, a line for each data
// set and strategy; nil unless several reports are of active learning.
func comparedChart(reports []*report.Report) *chart {
	type curve struct {
		name   string
		points []point
	}
	var curves []*curve
	var every []point // of models that learnt every label
	right, top := 1.0, 1e-3
	c := &chart{ID: "compared", Title: "Error over the number of labels", Note: "all samples, those without a label included",
		Table: &table{Head: []string{"Data set", "Strategy", "Budget", "Labels", "Error", "Log loss", "Error, last half", "Log loss, last half"}}}
	for _, r := range reports {
		a := r.Asked
		if a == nil {
			return nil
		}
		at := point{a.Labels, r.Error}
		right, top = max(right, at.x), max(top, at.y)
		c.Table.Rows = append(c.Table.Rows, []cell{{Text: terminal.Plain(r.Dataset)}, {Text: string(a.Strategy)}, {Text: fmt.Sprint(a.Budget)}, {fmt.Sprintf("%.0f", a.Labels), exact(a.Labels)},
			formatScore(r.Error), formatScore(r.NLL), formatScore(a.LastHalf.Error), formatScore(a.LastHalf.NLL)})
		if a.Strategy == report.EveryLabel {
			every = append(every, at)
			continue
		}
		name := terminal.Plain(r.Dataset) + ", " + string(a.Strategy)
		if len(curves) == 0 || curves[len(curves)-1].name != name {
			curves = append(curves, &curve{name: name})
		}
		last := curves[len(curves)-1]
		last.points = append(last.points, at)
	}
	if len(reports) < 2 {
		return nil
	}
	c.Sentence = fmt.Sprintf("%d data sets and strategies over at most %.0f labels; a curve that falls earlier needs fewer labels.", len(curves), right)
	if len(every) > 0 {
		c.Sentence += " The dashed line marks the error with every label."
	}
	c.Plot = newPlot(c.Title+". "+c.Sentence, axis{0, right}, axis{0, 1.05 * top}, "labels learnt", "fraction wrong", tickPercent)
	for _, at := range every {
		c.Plot.addLine("ideal", []point{{0, at.y}, {right, at.y}})
	}
	for i, line := range curves {
		style := fmt.Sprintf("s%d", i%series)
		c.Plot.addLine(style, line.points)
		for _, at := range line.points {
			c.Plot.Dots = append(c.Plot.Dots, dot{X: c.Plot.xAt(at.x), Y: c.Plot.yAt(at.y), R: 3.5, Style: style, Title: fmt.Sprintf("%s: %.0f labels, error %.4f", line.name, at.x, at.y)})
		}
		c.Key = append(c.Key, key{style, line.name})
	}
	return c
}

func pointsOf(curve []report.CurvePoint, figure func(*report.CurvePoint) float64) (points []point) {
	for i := range curve {
		points = append(points, point{float64(curve[i].N), figure(&curve[i])})
	}
	return points
}

func heights(points []point) (all []float64) {
	for _, p := range points {
		all = append(all, p.y)
	}
	return all
}

// tickPercent writes a fraction on an axis.
func tickPercent(v float64) string { return short(math.Round(1e4*v)/100) + " %" }
