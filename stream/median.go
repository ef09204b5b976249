package stream

import (
	"slices"
	"time"
)

// medianOf is the number of durations in a median.
const medianOf = 101

// median is the median of the latest durations. The zero value is ready.
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

// value returns the median, 0 without durations.
func (m *median) value() time.Duration {
	if len(m.latest) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m.latest))
	return sorted[len(sorted)/2]
}
