package main

// scoreCurve is the course of error and log loss.
type scoreCurve struct {
	name         string
	x, err, loss []float64
}

// plotCurves draws error and log loss of the reports, side by side, into an
// SVG file.
func plotCurves(path string, reports []*Report) error {
	var curves []scoreCurve
	for _, r := range reports {
		c := scoreCurve{name: r.Dataset}
		for _, p := range r.Curve {
			c.x, c.err, c.loss = append(c.x, float64(p.N)), append(c.err, p.Error), append(c.loss, p.NLL)
		}
		curves = append(curves, c)
	}
	return drawCurves(path, "Prequential error", "Prequential log loss, nats", "samples", curves)
}

// plotTraining draws error and log loss of held-out samples over the CPU time
// of training.
func plotTraining(path string, r *TrainReport) error {
	c := scoreCurve{name: r.Dataset}
	for _, p := range r.Curve {
		c.x, c.err, c.loss = append(c.x, p.CPUSeconds), append(c.err, p.Error), append(c.loss, p.NLL)
	}
	return drawCurves(path, "Held-out error", "Held-out log loss, nats", "CPU seconds", []scoreCurve{c})
}
