package main

import "fmt"

// scoreCurve is the course of two scores, such as error and log loss.
type scoreCurve struct {
	name           string
	x, left, right []float64
}

// plotCurves draws error and log loss of the reports, side by side, into an
// SVG file.
func plotCurves(path string, reports []*Report) error {
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
func plotTraining(path string, r *TrainReport) error {
	curves := []scoreCurve{trainingCurve(r.Dataset, r.Curve)}
	if len(r.Online) > 0 {
		curves[0].name += ", offline"
		curves = append(curves, trainingCurve("one pass online", r.Online))
	}
	return drawCurves(path, "Held-out error", "Held-out log loss, nats", "CPU seconds", curves)
}

func trainingCurve(name string, points []TrainPoint) scoreCurve {
	c := scoreCurve{name: name}
	for _, p := range points {
		c.x, c.left, c.right = append(c.x, p.CPUSeconds), append(c.left, p.Error), append(c.right, p.NLL)
	}
	return c
}

// plotSets draws coverage and size of the prediction sets by tenths of the
// streams.
func plotSets(path string, reports []*Report) error {
	var curves []scoreCurve
	for _, r := range reports {
		c := scoreCurve{name: r.Dataset}
		for i, t := range r.Tenths {
			if t.Coverage == t.Coverage {
				c.x, c.left, c.right = append(c.x, float64(i+1)), append(c.left, float64(t.Coverage)), append(c.right, float64(t.Size))
			}
		}
		if len(c.x) == 0 {
			return fmt.Errorf("%s: there are no prediction sets to draw; give --coverage", r.Dataset)
		}
		curves = append(curves, c)
	}
	return drawCurves(path, "Coverage of the prediction sets", "Classes in a prediction set", "tenth of the stream", curves)
}
