package signal

import (
	"fmt"
	"slices"
	"time"

	"edge/stream/field"
)

// MaxTime is the longest time of a window.
const MaxTime = 7 * 24 * time.Hour

const (
	maxSignals = 1000
	maxLength  = 1_000_000 // rows of a window
	maxValues  = 1 << 24   // numbers of one device's window
)

// Validate reports every field that is out of range, joined. The zero value is valid.
func (c *Config) Validate() error {
	if !c.Set() {
		return c.unused()
	}
	errs := []error{
		field.Check(len(c.Signals) <= maxSignals, "signals", fmt.Sprintf("%d names", len(c.Signals)), fmt.Sprintf("at most %d", maxSignals)),
		field.Within("hold", c.Hold.validate()),
		field.Within("window", c.Window.validate()),
	}
	for i, name := range c.Signals[:min(len(c.Signals), maxSignals)] {
		errs = append(errs,
			field.Check(name != "" && len(name) <= 256, "signals", fmt.Sprintf("%.40q", name), "names of 1 to 256 bytes"),
			field.Check(!slices.Contains(c.Signals[:i], name), "signals", name, "each name once"))
	}
	if err := field.Join(errs...); err != nil {
		return err
	}
	l, err := newLayout(c, nil)
	if err != nil {
		return err
	}
	if c.Hold.Set() && c.Window.Length.Message {
		return field.Check(false, "window.length", c.Window.Length, "a number of rows or a time, with hold: held rows belong to no message")
	}
	w := &c.Window
	rows := max(w.Length.Rows, 1)
	if w.Length.Time > 0 {
		rows = w.MaxRows
		if w.Resample > 0 {
			rows = max(rows, int(w.Length.Time/w.Resample))
		}
	}
	return field.Check(rows*max(len(l.windowed), 1) <= maxValues, "window.length", w.Length, fmt.Sprintf("a length whose rows, times the %d windowed signals, are at most %d numbers", len(l.windowed), maxValues))
}

// unused refuses parts of the stage in a stream without signals.
func (c *Config) unused() error {
	return field.Join(
		field.Check(!c.Hold.Set(), "hold", "set", "signals or inputs: without them there are no values to hold"),
		field.Check(len(c.Derive) == 0, "derive", "set", "signals or inputs: a derived signal is made from them"),
		field.Check(len(c.Calendar) == 0, "calendar", c.Calendar, "signals or inputs"),
		field.Check(!c.Window.Length.Set(), "window.length", c.Window.Length, "signals or inputs: features are those of finished samples"),
	)
}

func (h Hold) validate() error {
	return field.Join(
		field.Check(h.Every == 0 || h.Every >= 10*time.Millisecond && h.Every <= 24*time.Hour, "every", h.Every, "10ms to 24h"),
		field.Check(h.Every == 0 || len(h.On) == 0, "on", h.On, "either every or on"),
		field.Check(h.MaxAge >= 0, "max_age", h.MaxAge, "0s (none) or more"),
	)
}

func (w Window) validate() error {
	errs := []error{
		field.Check(slices.Contains([]string{LabelPure, LabelMajority, LabelLast}, w.Label), "label", w.Label, "pure, majority or last"),
		field.Check(w.MaxRows >= 2 && w.MaxRows <= maxLength, "max_rows", w.MaxRows, "2 to 1000000"),
		field.Check(w.MinRows >= 1 && w.MinRows <= w.MaxRows, "min_rows", w.MinRows, "1 to max_rows"),
		field.Check(w.Devices >= 1 && w.Devices <= 100000, "devices", w.Devices, "1 to 100000"),
		field.Check(w.Floor > 0 && w.Floor <= 1e6, "floor", w.Floor, "above 0, at most 1000000"),
		field.Check(w.MaxGap >= 0, "max_gap", w.MaxGap, "0s (the default) or more"),
	}
	l, h := w.Length, w.Hop
	switch {
	case !l.Set():
		errs = append(errs, field.Check(!h.Set(), "hop", h, "a length"))
	case l.Message:
		errs = append(errs, field.Check(!h.Set(), "hop", h, "none: each message is one window"))
	case l.Time != 0:
		errs = append(errs,
			field.Check(l.Time >= 10*time.Millisecond && l.Time <= MaxTime, "length", l, "10ms to 168h"),
			field.Check(!h.Set() || h.Time > 0 && h.Time <= l.Time, "hop", h, "a time, at most length"),
			field.Check(w.Resample >= 0 && (w.Resample == 0 || w.Resample <= l.Time/2 && l.Time/w.Resample <= maxLength), "resample", w.Resample, "0s, or at most half of length"),
			field.Check(!h.Set() || h.Time >= l.Time/1000, "hop", h, "at least a thousandth of length"))
	default:
		errs = append(errs,
			field.Check(l.Rows >= 2 && l.Rows <= maxLength, "length", l, "2 to 1000000 rows, a time, or message"),
			field.Check(!h.Set() || h.Rows > 0 && h.Rows <= l.Rows, "hop", h, "a number of rows, at most length"))
	}
	return field.Join(append(errs, field.Check(w.Resample == 0 || l.Time > 0, "resample", w.Resample, "0s: only a window by time can be resampled"))...)
}
