package formula

import (
	"fmt"
	"math"
	"slices"
	"time"

	"edge/stream/field"
)

// phase returns the part of a period that has passed at a local time, from 0 to below 1.
type phase func(t time.Time) float64

// phases are the calendar features.
func phases() map[string]phase {
	return map[string]phase{
		"hour":    day,
		"weekday": func(t time.Time) float64 { return (float64((t.Weekday()+6)%7) + day(t)) / 7 },
		"yearday": func(t time.Time) float64 { return (float64(t.YearDay()-1) + day(t)) / 365.25 },
	}
}

// day returns the part of the day that the clock shows: hours, their fraction included,
// over 24.
func day(t time.Time) float64 {
	ns := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
	return float64(ns) / float64(24*time.Hour)
}

// calendar adds calendar features to the program.
func (c *compiler) calendar(names []string) {
	known, p := phases(), c.program
	for i, name := range names {
		f, ok := known[name]
		switch {
		case !ok:
			hint := "want hour, weekday or yearday"
			if near := field.Nearest(name, field.Names(known)); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			c.errs = append(c.errs, fmt.Errorf("calendar %q: %s", name, hint))
			continue
		case slices.Contains(names[:i], name):
			c.errs = append(c.errs, fmt.Errorf("calendar %q: listed twice", name))
			continue
		}
		for _, part := range []string{name + ".sin", name + ".cos"} {
			if slices.Contains(c.known, part) {
				c.errs = append(c.errs, fmt.Errorf("calendar %q: a signal has the name %s; choose another", name, part))
			}
			p.names = append(p.names, part)
		}
		p.calendar = append(p.calendar, f)
	}
}

// appendCalendar appends sine and cosine of 2π times each phase at a local time.
func appendCalendar(dst []float64, phases []phase, local time.Time) []float64 {
	for _, f := range phases {
		sin, cos := math.Sincos(2 * math.Pi * f(local))
		dst = append(dst, sin, cos)
	}
	return dst
}
