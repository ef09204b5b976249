package report

// Durations are some durations in seconds: their mean, and quantiles to 2 %.
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
