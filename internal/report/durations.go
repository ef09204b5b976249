package report

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Durations summarises durations in seconds: mean and maximum, and quantiles with
// a relative error of 2 %.
type Durations struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// DurationSum adds up durations in bounded memory. The zero value is ready.
type DurationSum struct {
	n        int
	sum, max float64
	counts   map[int]int // by the logarithm
}

const durationSteps = 50 // e-folding / steps: 2 %

// Add counts a duration.
func (d *DurationSum) Add(t time.Duration) {
	if d.counts == nil {
		d.counts = map[int]int{}
	}
	s := max(t.Seconds(), 1e-6)
	d.n, d.sum, d.max = d.n+1, d.sum+s, max(d.max, s)
	d.counts[int(math.Round(math.Log(s)*durationSteps))]++
}

// Summary returns mean, quantiles and maximum; zeros before the first duration.
func (d *DurationSum) Summary() Durations {
	if d.n == 0 {
		return Durations{}
	}
	steps := slices.Sorted(maps.Keys(d.counts))
	quantile := func(q float64) float64 {
		left := int(math.Ceil(q * float64(d.n)))
		for _, k := range steps {
			if left -= d.counts[k]; left <= 0 {
				return math.Exp(float64(k) / durationSteps)
			}
		}
		return d.max
	}
	return Durations{d.sum / float64(d.n), quantile(0.5), quantile(0.9), quantile(0.99), d.max}
}
