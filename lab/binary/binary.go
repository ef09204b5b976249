// Package binary is classification with one latent function, p(y = ±1 | f) = Φ(y f) or
// 1/(1 + e^−yf): half the cost of two functions, and the better approximation. The model is
// that of two classes with the kernel divided by the noise of one of them; the
// approximations differ, as sites that factorise over two classes lose their correlation.
//
// Laplace, EP and VI are sparse: f_i = w_i·e + residual of variance q_i (FITC). With the rows
// as inducing points (lab.AtRows) they are those of the full process.
//
//	Laplace  Gaussian at the mode of the posterior
//	EP       sites that match moments under their cavities
//	VI       the Gaussian with the largest lower bound of the log evidence
//
// Each is made by its New function from rows with classes 0 (y = −1) and 1 (y = +1); Run
// converges, LogZ and Gradient are log evidence (or bound) and its derivatives. Train learns
// the parameters by L-BFGS.
//
// Source: Rasmussen & Williams (2006), Sections 3.4 to 3.6; Nickisch & Rasmussen (2008),
// "Approximations for Binary Gaussian Process Classification"; Naish-Guzman & Holden (2007).
package binary

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// unit is the noise that the parameters have for the probit; it is taken out of q, since
// both links contain their noise.
const unit = 1.0

// process is shared by the three approximations: one latent and its labels.
type process struct {
	*lab.Sparse
	link Link
	sign []float64 // N, ±1
	rule *rule
}

func newProcess(d *lab.Data, p model.Params, jitter float64, link Link) (*process, error) {
	if d.C != 2 {
		return nil, fmt.Errorf("lab: %d classes: one latent function separates two", d.C)
	}
	one := &lab.Data{D: d.D, C: 1, X: d.X, Y: make([]int, d.N())}
	s, err := lab.NewSparse(one, p, jitter)
	if err != nil {
		return nil, err
	}
	b := &process{Sparse: s, link: link, rule: new(rule)}
	for _, y := range d.Y {
		b.sign = append(b.sign, 2*float64(y)-1)
	}
	return b, nil
}

// Kernel returns parameters for one latent function with the model of two: amplitude over
// noise as amplitude, and unit noise.
func Kernel(p model.Params) model.Params {
	first := p.Group(0)
	one := first.Clone()
	*one.LogAmp() -= *one.LogNoise()
	*one.LogNoise() = math.Log(unit)
	return one
}

// residual is the variance of f_i that the inducing points leave.
func (b *process) residual(i int) float64 { return max(b.Q.At(i, 0)-unit, 0) }

// gradient is that in the parameters, without the noise, which is fixed.
func (b *process) gradient(f lab.Features) []float64 {
	g := model.Params{M: b.Params.M, D: b.D, Theta: b.Sparse.Gradient(f)}
	*g.LogNoise() = 0
	return g.Theta
}

// marginals are mean and variance of f at rows of x.
func (b *process) marginals(x []float64) (mean, variance []float64) {
	m, v := b.Latent(x)
	mean, variance = mat.Col(nil, 0, m), mat.Col(nil, 0, v)
	for i := range variance {
		variance[i] = max(variance[i]-unit, 0)
	}
	return mean, variance
}

// Predict returns the probabilities of both classes, n×2.
func (b *process) Predict(x []float64) (*mat.Dense, error) {
	mean, variance := b.marginals(x)
	out := mat.NewDense(len(mean), 2, nil)
	for i := range mean {
		s := b.link.smoothed(b.rule, 1, mean[i], variance[i])
		p := math.Exp(s[0])
		out.SetRow(i, []float64{1 - p, p})
	}
	return out, nil
}

// approximation is a method at some parameters.
type approximation interface {
	lab.Classifier
	SetParams(p model.Params) error
	// Run converges from the sites of the last run.
	Run(sweeps int, tolerance float64) error
	LogZ() float64
	Gradient() []float64
}

// Convergence of an evaluation.
const (
	sweeps  = 100
	closeTo = 1e-7
)

// TrainLaplace, TrainEP and TrainVI return methods that learn the parameters by L-BFGS on
// the approximate evidence.
func TrainLaplace(link Link) lab.Method {
	return train(func(d *lab.Data, p model.Params) (approximation, error) { return NewLaplace(d, p, lab.Jitter, link) })
}

// TrainEP is TrainLaplace for EP.
func TrainEP(link Link) lab.Method {
	return train(func(d *lab.Data, p model.Params) (approximation, error) { return NewEP(d, p, lab.Jitter, link) })
}

// TrainVI is TrainLaplace for VI.
func TrainVI(link Link) lab.Method {
	return train(func(d *lab.Data, p model.Params) (approximation, error) { return NewVI(d, p, lab.Jitter, link) })
}

func train(start func(*lab.Data, model.Params) (approximation, error)) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		one := *p
		one.Start = Kernel(p.Start)
		a, err := start(p.Data, one.Start)
		if err != nil {
			return nil, err
		}
		converge := func(at model.Params) error {
			if err := a.SetParams(at); err != nil {
				return err
			}
			return a.Run(sweeps, closeTo)
		}
		best, err := lab.Maximise(ctx, &one, a, func(at model.Params) (float64, []float64, error) {
			if err := converge(at); err != nil {
				return 0, nil, err
			}
			return a.LogZ(), a.Gradient(), nil
		})
		if err == nil {
			err = converge(best)
		}
		if err != nil {
			return nil, err
		}
		return a, nil
	}
}
