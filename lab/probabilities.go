package lab

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/model"
)

// Nodes of the quadrature of model.Win.
const (
	TrainNodes = 32 // errors of log p below 1e-4 where variances differ by less than a factor of 100
	scoreNodes = 64 // for predictions and figures
)

// Probabilities are the probabilities of all classes, n×C, from the means and variances of
// the latents. They are divided by their sum, which the quadrature leaves near 1.
func Probabilities(mean, variance *mat.Dense) *mat.Dense {
	n, c := mean.Dims()
	w, out := model.NewWin(scoreNodes), mat.NewDense(n, c, nil)
	for i := range n {
		row := out.RawRowView(i)
		var sum float64
		for k := range row {
			row[k] = math.Exp(w.LogProb(mean.RawRowView(i), variance.RawRowView(i), k, nil, nil))
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
	}
	return out
}

// Robust mixes probabilities with those of a wrong label: (1−ε) p + ε/C.
func Robust(p *mat.Dense, eps float64) *mat.Dense {
	_, c := p.Dims()
	p.Apply(func(_, _ int, v float64) float64 { return (1-eps)*v + eps/float64(c) }, p)
	return p
}
