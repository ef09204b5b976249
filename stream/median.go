package stream

import (
	"slices"
	"time"
)

// medianOf is how many durations a median is of.
const medianOf = 101

// median is that of the latest durations. The zero value is ready.
type median struct {
	latest []time.Duration
	next   int
}

func (m *median) add(d time.Duration) {
	if len(m.latest) < medianOf {
		m.latest = append(m.latest, d)
		return
	}
	m.latest[m.next] = d
	m.next = (m.next + 1) % medianOf
}

// value returns the median, 0 if there is nothing.
func (m *median) value() time.Duration {
	if len(m.latest) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m.latest))
	return sorted[len(sorted)/2]
}
