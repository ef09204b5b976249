package stream

import (
	"sync/atomic"
	"time"
)

// clockSet is a difference between the clocks that only a set wall clock makes.
const clockSet = time.Minute

// Beginning is a moment in the past for people. A board without a battery begins in 1970,
// or when it was switched off, and sets its clock later: Time follows the clock of now.
// Time in which the machine sleeps does not count.
type Beginning struct {
	at   time.Time // with the monotonic clock
	wall atomic.Pointer[time.Time]
}

// NewBeginning returns the present moment.
func NewBeginning() *Beginning { return &Beginning{at: time.Now()} }

// Time returns the moment. It stays the same unless the wall clock was set.
func (b *Beginning) Time() time.Time { return b.asOf(time.Now()) }

func (b *Beginning) asOf(now time.Time) time.Time {
	wall := now.Round(0).Add(-now.Sub(b.at))
	if known := b.wall.Load(); known != nil && wall.Sub(*known).Abs() < clockSet {
		return *known
	}
	b.wall.Store(&wall)
	return wall
}

// since returns how long ago it was, by the monotonic clock.
func (b *Beginning) since() time.Duration { return time.Since(b.at) }
