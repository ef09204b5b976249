package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"edge/model"
)

// Clamp keeps parameters where the kernel is well conditioned.
func Clamp(p *model.Params) {
	const half = 0.5 // keeps the unused label noise at 0
	p.Clamp(half)
}

// clamped returns the parameters at theta, clamped, and a function that clears the elements
// of a gradient in which the clamp holds theta back: value and gradient then belong together.
func clamped(shape model.Params, theta []float64) (p model.Params, free func(grad []float64) []float64) {
	p = model.Params{M: shape.M, D: shape.D, Theta: slices.Clone(theta)}
	Clamp(&p)
	return p, func(grad []float64) []float64 {
		for i, v := range p.Theta {
			if v != theta[i] {
				grad[i] = 0
			}
		}
		return grad
	}
}

// SignRule ascends along exact gradients: every parameter has a rate of its own, 2 % more
// while the gradient keeps its sign, half when that changes.
//
// Source: supplement of Villacampa-Calvo & Hernández-Lobato (2017).
type SignRule struct {
	rate, sign []float64
}

// Constants of the rule, of which only rates and the bound of a step are not published.
const (
	signRate   = 0.01
	signGrow   = 1.02
	signShrink = 0.5
	signStep   = 0.5
)

// Ascend moves theta by one step along grad.
func (s *SignRule) Ascend(theta, grad []float64) {
	if s.rate == nil {
		s.rate, s.sign = make([]float64, len(grad)), make([]float64, len(grad))
		for i := range s.rate {
			s.rate[i] = signRate
		}
	}
	for i, g := range grad {
		switch kept := s.sign[i] * g; {
		case kept > 0:
			s.rate[i] *= signGrow
		case kept < 0:
			s.rate[i] *= signShrink
		}
		s.sign[i] = 0
		if g != 0 {
			s.sign[i] = math.Copysign(1, g)
		}
		theta[i] += min(max(s.rate[i]*g, -signStep), signStep)
	}
}

// Adam ascends along stochastic gradients (Kingma & Ba 2015).
type Adam struct {
	Rate          float64
	first, second []float64
	steps         int
}

// Ascend moves theta by one step along grad.
func (a *Adam) Ascend(theta, grad []float64) {
	const b1, b2, small = 0.9, 0.999, 1e-8
	if a.first == nil {
		a.first, a.second = make([]float64, len(grad)), make([]float64, len(grad))
	}
	a.steps++
	n := float64(a.steps)
	c1, c2 := 1-math.Pow(b1, n), 1-math.Pow(b2, n)
	for i, g := range grad {
		a.first[i] = b1*a.first[i] + (1-b1)*g
		a.second[i] = b2*a.second[i] + (1-b2)*g*g
		theta[i] += a.Rate * (a.first[i] / c1) / (math.Sqrt(a.second[i]/c2) + small)
	}
}

// LBFGS maximises a function from theta with at most that many evaluations, and returns
// the best point seen. f returns value and gradient, which must belong together. Where it
// has an error or is not a number, the search sees a value below all that it has seen, and
// takes a shorter step; at theta this is an error.
func LBFGS(theta []float64, evaluations int, f func(theta []float64) (float64, []float64, error)) ([]float64, error) {
	const memory = 10
	value, grad, err := f(theta)
	if err == nil && math.IsNaN(value) {
		err = errors.New("not a number")
	}
	if err != nil {
		return nil, fmt.Errorf("lab: no value at the first point of the search: %w", err)
	}
	last, at, best, worst := slices.Clone(theta), slices.Clone(theta), value, value
	evaluate := func(x []float64) {
		if slices.Equal(x, last) {
			return
		}
		last = slices.Clone(x)
		if value, grad, err = f(x); err != nil || math.IsNaN(value) {
			value, grad = worst-1, make([]float64, len(x))
		}
		worst = min(worst, value)
		if value > best {
			best, at = value, last
		}
	}
	problem := optimize.Problem{
		Func: func(x []float64) float64 { evaluate(x); return -value },
		Grad: func(out, x []float64) {
			evaluate(x)
			for i, g := range grad {
				out[i] = -g
			}
		},
	}
	settings := &optimize.Settings{FuncEvaluations: evaluations, MajorIterations: evaluations, GradientThreshold: 1e-9, Converger: &optimize.FunctionConverge{Relative: 1e-12, Iterations: 5}}
	// A line search that finds nothing better ends the search; the best point counts.
	_, _ = optimize.Minimize(problem, theta, settings, &optimize.LBFGS{Store: memory, Linesearcher: &optimize.MoreThuente{}})
	return at, nil
}
