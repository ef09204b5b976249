package model

import (
	"cmp"
	"math"
	"slices"
)

// Scale standardises raw features:
//
//	z = clip((x−Mu)/Sd, ±Clip),     x ← z, or with Ranks  x ← z/2 + √12·(F(x)−1/2)/2
//
// F is the empirical distribution function of the observations from which the model
// was built, and √12·(F−1/2) has variance 1 as z has. The ranks spread values that z
// keeps close together, such as those of a skewed feature; z keeps the order of values
// beyond all observations.
type Scale struct {
	Mu, Sd []float64 // D, in the units of each feature
	Clip   float64   // in standard deviations; 0: DefaultClip
	Ranks  []float64 // D×RankPoints quantiles of each feature at equal distances from 0 to 1, in its unit; nil: without ranks
}

// RankPoints is the number of quantiles of a feature in Scale.Ranks.
const RankPoints = 33

// Missing stands for an unknown feature, once it is standardised. A raw feature that
// is missing is NaN, or Missing in a state.
var Missing = math.Inf(1)

const (
	// DefaultClip bounds a standardised feature, in standard deviations.
	DefaultClip = 8
	// MaxFeature bounds the magnitude of a raw feature: larger ones are replaced by
	// it, so that no square of a finite feature overflows.
	MaxFeature = 1e100
)

// Limit is the bound of a standardised feature.
func (s *Scale) Limit() float64 {
	if s.Clip == 0 {
		return DefaultClip
	}
	return s.Clip
}

// To stores D standardised features in dst, with Missing for one that is missing, NaN or Missing
// in x, and returns the number of those that were clipped.
func (s *Scale) To(dst, x []float64) (clipped int) {
	limit := s.Limit()
	for j, v := range x {
		if v-v != 0 {
			dst[j] = Missing
			continue
		}
		v = min(max(v, -MaxFeature), MaxFeature)
		z := min(max((v-s.Mu[j])/s.Sd[j], -limit), limit)
		if z == limit || z == -limit {
			clipped++
		}
		if s.Ranks != nil {
			z = z/2 + math.Sqrt(12)/2*(rank(s.quantiles(j), v)-0.5)
		}
		dst[j] = z
	}
	return clipped
}

// quantiles returns those of feature j, if there are ranks.
func (s *Scale) quantiles(j int) []float64 { return s.Ranks[j*RankPoints : (j+1)*RankPoints] }

// rank returns the distribution function at v of a feature with these quantiles, by
// linear interpolation: 0 below all of them, 1 above. A value that several quantiles
// share has half of its own frequency counted as below it.
func rank(quantiles []float64, v float64) float64 {
	steps := float64(len(quantiles) - 1)
	from, found := slices.BinarySearch(quantiles, v)
	if found {
		to := from
		for to+1 < len(quantiles) && quantiles[to+1] == v {
			to++
		}
		return float64(from+to) / 2 / steps
	}
	if from == 0 {
		return 0
	}
	if from == len(quantiles) {
		return 1
	}
	low, high := quantiles[from-1], quantiles[from]
	return (float64(from-1) + (v-low)/(high-low)) / steps
}

// Unclipped returns feature j of value x, standardised and not clipped.
func (s *Scale) Unclipped(j int, x float64) float64 {
	z := (x - s.Mu[j]) / s.Sd[j]
	if s.Ranks == nil {
		return z
	}
	return float64(z/2) + float64(math.Sqrt(12)/2*(rank(s.quantiles(j), x)-0.5))
}

// Raw is the inverse of Unclipped: the value of feature j that is standardised to z, or
// with ranks, where no value is, the one at which the standardised feature jumps over z.
func (s *Scale) Raw(j int, z float64) float64 {
	mu, sd := s.Mu[j], s.Sd[j]
	if s.Ranks == nil {
		return float64(z*sd) + mu
	}
	// Between two quantiles, and beyond them, x ↦ x/2Sd + slope·F is linear.
	quantiles := s.quantiles(j)
	outside := func(rank float64) float64 { return float64(2*(z-float64(math.Sqrt(3)*(rank-0.5)))*sd) + mu }
	at, _ := slices.BinarySearchFunc(quantiles, z, func(q, z float64) int { return cmp.Compare(s.Unclipped(j, q), z) })
	switch at {
	case 0:
		return min(outside(0), quantiles[0])
	case RankPoints:
		return max(outside(1), quantiles[RankPoints-1])
	}
	low, high := quantiles[at-1], quantiles[at]
	const step = 1. / (RankPoints - 1)
	from := (low-mu)/sd/2 + float64(math.Sqrt(3)*(float64(at-1)*step-0.5))
	rise := (high-low)/sd/2 + math.Sqrt(3)*step
	return min(max(low+float64((z-from)/rise*(high-low)), low), high)
}
