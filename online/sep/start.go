package sep

import (
	"math"
	"math/rand/v2"
	"slices"

	"edge/model"
)

// Starting values of the parameters.
const (
	// StartNoise is v0, the noise variance; the amplitude is 1.
	StartNoise = 0.1

	lloydRounds = 5    // of k-means after its seeding
	centreNoise = 0.01 // standard deviations added to each centre, so that no two coincide
	fillNoise   = 0.3  // the same for points that fill up where there are fewer samples than M
)

// AtMean returns a copy of standardised features with the mean, 0, in place of
// missing ones: inducing inputs may begin there.
func AtMean(x []float64) []float64 {
	x = slices.Clone(x)
	for i, v := range x {
		if v == model.Missing {
			x[i] = 0
		}
	}
	return x
}

// StartParams returns the parameters to begin with: inducing inputs by k-means
// on the n standardised rows of x, one lengthscale, the log median distance of
// two rows.
func StartParams(x []float64, n, d, m int, eps float64, rng *rand.Rand) model.Params {
	p := model.NewParams(m, d)
	z := p.Z()
	centres := min(m, n)
	KMeans(z[:centres*d], x, n, d, rng)
	for j := centres; j < m; j++ {
		i := rng.IntN(n)
		for f := range d {
			z[j*d+f] = x[i*d+f] + fillNoise*rng.NormFloat64()
		}
	}
	Scatter(z, rng)
	ell := math.Log(max(math.Sqrt(medianDistance2(x, n, d)), 0.1*math.Sqrt(float64(d))))
	for i := range p.LogEll() {
		p.LogEll()[i] = ell
	}
	*p.LogNoise() = math.Log(StartNoise)
	*p.LogitEps() = model.Logit(eps) // −Inf for 0: labels are then taken as they are
	return p
}

// KMeans stores len(centres)/d centres of the n rows of x: k-means++ seeding
// (Arthur & Vassilvitskii 2007), then Lloyd's iterations.
func KMeans(centres, x []float64, n, d int, rng *rand.Rand) {
	k := len(centres) / d
	copy(centres[:d], x[rng.IntN(n)*d:])
	nearest := make([]float64, n)
	for i := range nearest {
		nearest[i] = distance2(x[i*d:(i+1)*d], centres[:d])
	}
	for j := 1; j < k; j++ {
		var total float64
		for _, v := range nearest {
			total += v + 1e-9
		}
		at, pick := rng.Float64()*total, n-1
		for i, v := range nearest {
			if at -= v + 1e-9; at < 0 {
				pick = i
				break
			}
		}
		c := centres[j*d : (j+1)*d]
		copy(c, x[pick*d:])
		for i := range nearest {
			nearest[i] = min(nearest[i], distanceBelow(x[i*d:(i+1)*d], c, nearest[i]))
		}
	}
	sum, count := make([]float64, len(centres)), make([]float64, k)
	for range lloydRounds {
		clear(sum)
		clear(count)
		for i := range n {
			row, best, at := x[i*d:(i+1)*d], math.Inf(1), 0
			for j := range k {
				if v := distanceBelow(row, centres[j*d:(j+1)*d], best); v < best {
					best, at = v, j
				}
			}
			count[at]++
			for f, v := range row {
				sum[at*d+f] += v
			}
		}
		for j := range k {
			if count[j] > 0 {
				for f := range d {
					centres[j*d+f] = sum[j*d+f] / count[j]
				}
			}
		}
	}
}

// Scatter adds a little noise to inducing inputs, so that no two coincide.
func Scatter(z []float64, rng *rand.Rand) {
	for i := range z {
		z[i] += centreNoise * rng.NormFloat64()
	}
}

func distance2(a, b []float64) float64 {
	var s float64
	for i, v := range a {
		s += float64((v - b[i]) * (v - b[i]))
	}
	return s
}

// distanceBelow returns distance2 of a and b, to the last bit, if it is below limit; if not, a
// number that is not below limit either.
func distanceBelow(a, b []float64, limit float64) float64 {
	const piece = 16 // features between two looks at limit
	var s float64
	for len(a) > piece {
		for i, v := range a[:piece] {
			s += float64((v - b[i]) * (v - b[i]))
		}
		if s >= limit {
			return s
		}
		a, b = a[piece:], b[piece:]
	}
	for i, v := range a {
		s += float64((v - b[i]) * (v - b[i]))
	}
	return s
}

// medianPoints bounds the work of medianDistance2, which is quadratic.
const medianPoints = 400

// medianDistance2 is the median squared distance between two of the first rows of x.
func medianDistance2(x []float64, n, d int) float64 {
	n = min(n, medianPoints)
	all := make([]float64, 0, n*(n-1)/2)
	for i := range n {
		for j := range i {
			all = append(all, distance2(x[i*d:(i+1)*d], x[j*d:(j+1)*d]))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return quantile(all, 0.5)
}
