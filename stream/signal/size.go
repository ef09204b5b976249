package signal

import (
	"time"

	"edge/stream/signal/feature"
)

// Overlaps reports whether windows share rows with the one before.
func (c Config) Overlaps() bool {
	length, hop := c.Window.Length, c.Hop()
	return hop.Rows < length.Rows || hop.Time < length.Time
}

// Size is the memory and the load of a device.
type Size struct {
	Signals  int     // W windowed ones
	Rows     int     // that the windows of a device usually hold; 0: not known
	Most     int     // rows that they may hold
	PerHour  float64 // samples of a device; 0: not known
	RowBytes int     // of one row in a window
	Shared   int     // bytes to compute the features of a window, once for all devices

	Uncorrelated bool // correlations are configured, and the signals are too many for them
	Thin         bool // the windows have fewer rows than min_rows: none makes a sample
}

// Size returns the memory and the load of a device that sends a number of rows a second; 0: not known.
// The configuration is valid.
func (c *Config) Size(rate float64) Size {
	l, err := newLayout(c, nil)
	if err != nil {
		return Size{}
	}
	n := len(l.windowed)
	s := Size{Signals: n, RowBytes: 8 * n, Uncorrelated: c.Window.Correlations && n > maxCorrelated}
	if every := c.Hold.Every; every > 0 {
		rate = float64(time.Second) / float64(every)
	}
	length, hop, lengths := c.Window.Length, c.Hop(), 1
	switch {
	case length.Time > 0:
		lengths = feature.AllLengths
		s.Most, s.RowBytes = c.Window.MaxRows, s.RowBytes+8
		s.Rows = min(int(rate*length.Time.Seconds()+0.5), s.Most)
		s.PerHour = float64(time.Hour) / float64(hop.Time)
		if s.Thin = rate > 0 && s.Rows < c.Window.MinRows; s.Thin {
			s.PerHour = 0
		}
	case length.Rows > 0:
		s.Rows, s.Most = length.Rows, length.Rows
		s.PerHour = 3600 * rate / float64(hop.Rows)
	case !length.Message:
		s.PerHour = 3600 * rate
	}
	for _, e := range l.extractors {
		s.Shared = max(s.Shared, e.Memory(s.Most, lengths))
	}
	return s
}
