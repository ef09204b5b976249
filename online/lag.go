package online

import (
	"math"

	"edge/model"
)

// Lag estimates how far ahead of the latest label a sample is whose label comes late. The
// labels come in the order of the samples. The zero value knows no label yet.
type Lag struct {
	place  uint64  // of the latest late label, among all labels
	sample uint64  // number of its sample
	gap    float64 // mean number of samples from one label to the next; 0: no label yet
}

const (
	lagRate = 0.05
	maxGaps = 10 // mean gaps that one gap counts for, at most: a pause is no rate of labels
)

// Observe notes a late label: place is its number among all labels, sample that of
// its sample among all samples.
func (l *Lag) Observe(place, sample uint64) {
	if l.gap == 0 {
		l.gap = 1
	} else if sample > l.sample {
		l.gap += lagRate * (min(float64(sample-l.sample), maxGaps*l.gap) - l.gap)
	}
	l.place, l.sample = place, sample
}

// Ahead returns how many labels after the latest of those known a sample's label
// comes, if its label comes late; 0: unknown.
func (l *Lag) Ahead(sample, known uint64) int {
	if l.gap == 0 || sample <= l.sample {
		return 0
	}
	ahead := float64(l.place) - float64(known) + math.Round(float64(sample-l.sample)/l.gap)
	if ahead < 1 || ahead > model.FarAhead {
		return 0
	}
	return int(ahead)
}
