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

// AtMean returns standardised features with the mean, 0, in place of missing ones:
// inducing inputs may begin there. It is a copy unless none is missing.
func AtMean(x []float64) []float64 {
	if !slices.Contains(x, model.Missing) {
		return x
	}
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
	return (*team)(nil).startParams(x, n, d, m, eps, rng)
}

// startParams is StartParams on the cores of a team.
func (t *team) startParams(x []float64, n, d, m int, eps float64, rng *rand.Rand) model.Params {
	p := model.NewParams(m, d)
	z := p.Z()
	centres := min(m, n)
	t.kMeans(z[:centres*d], x, n, d, rng)
	for j := centres; j < m; j++ {
		i := rng.IntN(n)
		for f := range d {
			z[j*d+f] = x[i*d+f] + fillNoise*rng.NormFloat64()
		}
	}
	Scatter(z, rng)
	ell := math.Log(max(math.Sqrt(t.medianDistance2(x, n, d)), 0.1*math.Sqrt(float64(d))))
	for i := range p.LogEll() {
		p.LogEll()[i] = ell
	}
	*p.LogNoise() = math.Log(StartNoise)
	p.Clamp(0.5)                     // rows are further from each other than any lengthscale where the clip is wide
	*p.LogitEps() = model.Logit(eps) // −Inf for 0: labels are then taken as they are
	return p
}

// KMeans stores len(centres)/d centres of the n rows of x: k-means++ seeding
// (Arthur & Vassilvitskii 2007), then Lloyd's iterations.
func KMeans(centres, x []float64, n, d int, rng *rand.Rand) {
	(*team)(nil).kMeans(centres, x, n, d, rng)
}

// startRows is the number of rows of a task.
const startRows = 16

// kMeans is KMeans on the cores of a team. Each round adds up the rows in their order.
func (t *team) kMeans(centres, x []float64, n, d int, rng *rand.Rand) {
	seedCentres(centres, x, n, d, rng)
	k := len(centres) / d
	sum, count, of := make([]float64, len(centres)), make([]float64, k), make([]int, n)
	for range lloydRounds {
		clear(sum)
		clear(count)
		t.nearestCentres(of, centres, x, d)
		for i, at := range of {
			count[at]++
			for f, v := range x[i*d : (i+1)*d] {
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

// seedCentres stores rows of x as centres, each drawn by its squared distance from those before.
func seedCentres(centres, x []float64, n, d int, rng *rand.Rand) {
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
}

// nearestCentres stores the nearest centre of each row of x.
func (t *team) nearestCentres(of []int, centres, x []float64, d int) {
	n, k := len(of), len(centres)/d
	_ = t.run((n+startRows-1)/startRows, startRows*float64(k*d)/2, func(_, task int) error {
		for i := task * startRows; i < min(n, (task+1)*startRows); i++ {
			row, best, at := x[i*d:(i+1)*d], math.Inf(1), 0
			for j := range k {
				if v := distanceBelow(row, centres[j*d:(j+1)*d], best); v < best {
					best, at = v, j
				}
			}
			of[i] = at
		}
		return nil
	})
}

// Scatter adds a little noise to inducing inputs, M×D standardised features, so that no two
// coincide.
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
func (t *team) medianDistance2(x []float64, n, d int) float64 {
	n = min(n, medianPoints)
	if n < 2 {
		return 0
	}
	all := make([]float64, n*(n-1)/2)
	_ = t.run((n+startRows-1)/startRows, startRows*float64(n*d)/2, func(_, task int) error {
		for i := task * startRows; i < min(n, (task+1)*startRows); i++ {
			row, to := x[i*d:(i+1)*d], all[i*(i-1)/2:]
			for j := range i {
				to[j] = distance2(row, x[j*d:(j+1)*d])
			}
		}
		return nil
	})
	order(all, (len(all)-1)/2)
	return quantile(all, 0.5)
}

// order moves elements i and i+1 in the order of their values to their places, smaller ones
// before them and larger ones behind, in O(n) where the pivots are not the worst ones.
//
// Source: Hoare, Algorithm 65: find (1961).
func order(a []float64, i int) {
	from, to := 0, len(a)-1
	for rounds := 0; from < to; rounds++ {
		if rounds == 64 {
			slices.Sort(a[from : to+1])
			break
		}
		pivot, low, high := a[from+(to-from)/2], from, to
		for low <= high {
			for a[low] < pivot {
				low++
			}
			for a[high] > pivot {
				high--
			}
			if low <= high {
				a[low], a[high] = a[high], a[low]
				low, high = low+1, high-1
			}
		}
		switch {
		case i <= high:
			to = high
		case i >= low:
			from = low
		default:
			from = to
		}
	}
	for j := i + 2; j < len(a); j++ {
		if a[j] < a[i+1] {
			a[i+1], a[j] = a[j], a[i+1]
		}
	}
}
