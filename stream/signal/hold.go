package signal

import (
	"cmp"
	"math"
	"time"
)

// manyRows is the number of rows at fixed times that are made in a silence, if no value
// has a larger max_age, and the number of rows that are made at once. The rest of a
// silence is jumped over.
const manyRows = 1000

// mostAhead is the time by which a row may be ahead of its arrival, of a device whose row
// before was near its own, without a jump over the silence.
const mostAhead = int64(time.Minute)

// hold takes the values of an input, and makes the rows that are due. Where a row is far
// ahead of its arrival, and those before were not, none are made between the two: its time is
// wrong, or the clock was put forward.
func (s *Stage) hold(d *device, m *Message, r *Row) {
	every := int64(s.cfg.Hold.Every)
	if most := m.Arrived + mostAhead; d.near() && d.tick != 0 && d.tick <= most && r.Time > most {
		s.ticks(d, m.Arrived)
		d.tick = r.Time - 1 - mod(r.Time-1, every)
	}
	s.ticks(d, r.Time-1)
	d.valueAt = max(d.valueAt, r.Time)
	for _, i := range s.opts.Inputs[m.Input].Signals {
		if r.Absent != nil && r.Absent[i] {
			continue
		}
		v := r.X[i]
		if d.came[i] == 0 || v != d.held[i] && !(math.IsNaN(v) && math.IsNaN(d.held[i])) {
			d.changed[i] = r.Time
		}
		d.held[i], d.came[i] = v, r.Time
	}
	on := every == 0 && s.opts.Inputs[m.Input].On
	switch {
	case r.Null:
		d.label.text = ""
	case r.Label != "" && !on: // otherwise it is that of this row alone
		d.label = heldLabel{r.Label, m.Input, r.Time}
	}
	switch {
	case every == 0:
		if t := max(r.Time, d.last); on && !m.Kept {
			s.heldRow(d, t, cmp.Or(r.Label, s.heldLabel(d, t)))
		}
	case d.tick == 0:
		begin := r.Time
		if m.Kept { // of an earlier time, which had no rows
			begin = max(begin, m.Arrived)
		}
		d.tick, d.valueAt = ceilTo(begin, every)-every, r.Time // also of before 1970, from which a rate can count back
		fallthrough
	default:
		if r.Time == d.tick+every {
			s.tickRow(d, r.Time)
		}
	}
}

// ticks makes the rows at fixed times up to t.
func (s *Stage) ticks(d *device, t int64) {
	every := int64(s.cfg.Hold.Every)
	if every == 0 || d.tick == 0 {
		return
	}
	silence := s.longestSilence()
	for made, next := 0, d.tick+every; next <= t; made, next = made+1, next+every {
		if made == manyRows || next-d.valueAt > silence {
			d.tick = t - mod(t, every)
			return
		}
		s.tickRow(d, next)
	}
}

// longestSilence is the time after the last value in which rows at fixed times are made, in ns.
func (s *Stage) longestSilence() int64 {
	longest := manyRows * s.cfg.Hold.Every
	for _, in := range s.opts.Inputs {
		longest = max(longest, in.MaxAge)
	}
	return int64(longest)
}

func (s *Stage) tickRow(d *device, t int64) {
	d.tick = t
	s.heldRow(d, t, s.heldLabel(d, t))
}

// heldLabel is a label that later rows have as well, until another one comes.
type heldLabel struct {
	text  string
	input int
	came  int64
}

// heldLabel returns the label that counts at t: as a value, until it is too old.
func (s *Stage) heldLabel(d *device, t int64) string {
	if most := int64(s.opts.Inputs[d.label.input].MaxAge); most > 0 && t-d.label.came > most {
		return ""
	}
	return d.label.text
}

// nextTick returns the time of the next row at a fixed time; 0: none is due without
// another value.
func (s *Stage) nextTick(d *device) int64 {
	every := int64(s.cfg.Hold.Every)
	if every == 0 || d.tick == 0 || d.tick+every-d.valueAt > s.longestSilence() {
		return 0
	}
	return d.tick + every
}

// heldRow makes a row of the values that are known at t.
func (s *Stage) heldRow(d *device, t int64, label string) {
	s.aged = append(s.aged[:0], d.held...)
	known := false
	for _, in := range s.opts.Inputs {
		for _, i := range in.Signals {
			if in.MaxAge > 0 && t-d.came[i] > int64(in.MaxAge) {
				s.aged[i] = math.NaN()
			}
			known = known || !math.IsNaN(s.aged[i])
		}
	}
	if !known {
		s.counts.Unvalued.Add(1)
		return
	}
	s.row(d, t, s.aged, label)
}

// mod is the remainder of t by d, at least 0.
func mod(t, d int64) int64 {
	if m := t % d; m >= 0 {
		return m
	}
	return t%d + d
}

// ceilTo returns the smallest multiple of d that is not below t.
func ceilTo(t, d int64) int64 {
	if m := mod(t, d); m > 0 {
		return t + d - m
	}
	return t
}
