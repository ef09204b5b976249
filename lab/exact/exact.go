// Package exact computes log evidences of tiny problems without approximating a factor: all
// labels of a Gaussian-process classifier with noisy latents are right where a Gaussian
// vector is positive in every element, the orthant probability of its covariance.
//
// Source: Genz (1992), "Numerical computation of multivariate normal probabilities", with
// a Richtmyer lattice in place of pseudo-random points.
package exact

import (
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// shifts is the number of random shifts of the lattice, from which the error is estimated.
const shifts = 12

// ErrCovariance reports a covariance that is not positive definite.
var ErrCovariance = errors.New("exact: the covariance is not positive definite")

// LogOrthant returns log P(x > 0 in every element) for x ~ N(0, cov) of dimension n, and
// its standard error, from that many points of a lattice for each of 12 random shifts.
//
// Cost 12·points·n². The error falls almost as 1/points; n of some dozen is feasible.
func LogOrthant(cov mat.Symmetric, points int, seed uint64) (logP, se float64, err error) {
	n := cov.SymmetricDim()
	l, err := factor(cov)
	if err != nil {
		return 0, 0, err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	steps := lattice(n - 1)
	estimates := make([]float64, shifts)
	for s := range estimates {
		shift := make([]float64, n-1)
		for j := range shift {
			shift[j] = r.Float64()
		}
		for i := range points {
			estimates[s] += separated(l, func(j int) float64 {
				_, u := math.Modf(float64(i+1)*steps[j] + shift[j])
				return math.Abs(2*u - 1) // periodic
			}) / float64(points)
		}
	}
	mean, sd := stat.MeanStdDev(estimates, nil)
	return math.Log(mean), sd / math.Sqrt(shifts) / mean, nil
}

// factor is a Cholesky factor of cov with its rows in the order that makes the integrand
// flat: at each place the element that is least likely to be positive, given that those
// before have their means.
//
// Source: Gibson, Glasbey & Elston (1994).
func factor(cov mat.Symmetric) (*mat.Dense, error) {
	n := cov.SymmetricDim()
	c, l, z := mat.DenseCopyOf(cov), mat.NewDense(n, n, nil), make([]float64, n)
	for j := range n {
		next, least := j, math.Inf(1)
		for i := j; i < n; i++ {
			x, v := conditional(c, l, z, i, j)
			if v <= 0 {
				return nil, ErrCovariance
			}
			if x/math.Sqrt(v) < least {
				next, least = i, x/math.Sqrt(v)
			}
		}
		swap(c, j, next)
		for k := range j {
			a, b := l.At(j, k), l.At(next, k)
			l.Set(j, k, b)
			l.Set(next, k, a)
		}
		_, v := conditional(c, l, z, j, j)
		l.Set(j, j, math.Sqrt(v))
		for i := j + 1; i < n; i++ {
			sum := c.At(i, j)
			for k := range j {
				sum -= l.At(i, k) * l.At(j, k)
			}
			l.Set(i, j, sum/l.At(j, j))
		}
		z[j] = distuv.UnitNormal.Prob(least) / distuv.UnitNormal.CDF(least)
	}
	return l, nil
}

// conditional is mean and variance of element i given the first j values of z.
func conditional(c, l *mat.Dense, z []float64, i, j int) (mean, variance float64) {
	variance = c.At(i, i)
	for k := range j {
		mean += l.At(i, k) * z[k]
		variance -= l.At(i, k) * l.At(i, k)
	}
	return mean, variance
}

// swap exchanges elements a and b of a covariance.
func swap(c *mat.Dense, a, b int) {
	n, _ := c.Dims()
	for k := range n {
		x, y := c.At(a, k), c.At(b, k)
		c.Set(a, k, y)
		c.Set(b, k, x)
	}
	for k := range n {
		x, y := c.At(k, a), c.At(k, b)
		c.Set(k, a, y)
		c.Set(k, b, x)
	}
}

// separated is the integrand on the unit cube: with x = L z, z_j is drawn from its normal
// distribution cut off where x_j > 0, one after the other; the product of the masses that
// are left is the sample.
func separated(l *mat.Dense, u func(j int) float64) float64 {
	n, _ := l.Dims()
	z := make([]float64, n)
	product := 1.0
	for j := range n {
		var x float64
		for i := range j {
			x += l.At(j, i) * z[i]
		}
		left := distuv.UnitNormal.CDF(x / l.At(j, j)) // P(z > −x/L_jj)
		product *= left
		if j < n-1 {
			const tiny = 1e-300
			z[j] = -distuv.UnitNormal.Quantile(min(max((1-u(j))*left, tiny), 1-1e-16))
		}
	}
	return product
}

// lattice is the roots of the first primes.
func lattice(n int) []float64 {
	var out []float64
	for p := 2; len(out) < n; p++ {
		prime := true
		for q := 2; q*q <= p; q++ {
			prime = prime && p%q != 0
		}
		if prime {
			out = append(out, math.Sqrt(float64(p)))
		}
	}
	return out
}
