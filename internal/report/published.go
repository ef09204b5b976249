package report

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Published is about the predictions that a daemon published for the rows
// of a replayed file, in a Report whose scores judge them.
type Published struct {
	Node       string    `json:"node"`
	Model      string    `json:"model"`
	Rows       int       `json:"rows"`       // sent
	Unanswered int       `json:"unanswered"` // rows of which no prediction was heard
	Queries    int       `json:"queries"`    // labels that were asked for
	Latency    Durations `json:"latency_s"`  // from the arrival of a row to its prediction, as the daemon says
	RoundTrip  Durations `json:"round_trip_s"`
}

func (d *DurationSum) Add(t time.Duration) {
	if d.counts == nil {
		d.counts = map[int]int{}
	}
	s := max(t.Seconds(), 1e-6)
	d.n, d.sum, d.max = d.n+1, d.sum+s, max(d.max, s)
	d.counts[int(math.Round(math.Log(s)*durationSteps))]++
}

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

// ClassOf returns the number of a class.
func (b *ClassBook) ClassOf(name string) int {
	k, known := b.number[name]
	if !known {
		if b.number == nil {
			b.number = map[string]int{}
		}
		k = len(b.Names)
		b.number[name] = k
		b.Names = append(b.Names, name)
	}
	return k
}

// InOrder returns probabilities of classes in the order of their numbers.
func (b *ClassBook) InOrder(classes []string, probs []float64) []float64 {
	for _, name := range classes {
		b.ClassOf(name)
	}
	now := make([]float64, len(b.Names))
	for i, name := range classes {
		now[b.number[name]] = probs[i]
	}
	return now
}
