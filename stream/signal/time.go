package signal

import (
	"cmp"
	"slices"
	"time"
)

const (
	// nearArrival is the largest distance of a row's own time from its arrival at which
	// the daemon's clock may close the device's windows.
	nearArrival = int64(10 * time.Second)
	// shortestGrace is the shortest time that the clock waits beyond the end of a window.
	shortestGrace = time.Second

	defaultGap          = time.Minute
	shortestGap         = 2 * time.Millisecond // times of payloads are often rounded to ms
	defaultLateMessages = 32
)

// FromTime returns a moment of the wall clock in ns since 1970, the form of all times of
// this package: they are compared with those of payloads.
func FromTime(t time.Time) int64 { return t.UnixNano() }

// ToTime is the reverse of FromTime.
func ToTime(ns int64) time.Time { return time.Unix(0, ns) }

// Gap returns the silence after which a window begins anew, in a stream of that many
// rows a second, or 0 where it is unknown. Without a window it is 0: none.
func (c *Config) Gap(rate float64) time.Duration {
	w, gap := &c.Window, defaultGap
	switch {
	case !w.Length.Set() || w.Length.Message:
		return 0
	case w.MaxGap > 0:
		return w.MaxGap
	case rate > 0:
		gap = max(time.Duration(10/rate*float64(time.Second)), shortestGap)
	case w.Length.Time > 0:
		gap = w.Length.Time / 4
	}
	return max(gap, 10*c.Hold.Every) // or no window of held rows would be whole
}

// inOrder reports whether a row is taken, which is later than the last one of its input. A row
// that is not is dropped: most often it is a repetition. last is the time of the input's last row
// before the message: rows of one message may share a time, and so may those of messages with
// different signals, whose values are held. A row of windows without held values that is behind
// another input's by more than the largest gap is dropped as well.
func (s *Stage) inOrder(d *device, m *Message, r *Row, last int64) bool {
	t, newest, behind := r.Time, d.inputs[m.Input], int64(0)
	for _, other := range d.inputs {
		if other != 0 {
			behind = max(behind, other-t)
		}
	}
	later := newest == 0 || t > newest || t == newest && (t > last || !m.Own || s.othersAt(d, m, r))
	far := behind > cmp.Or(s.gap, int64(defaultGap))
	if later && !far {
		d.late = 0
		d.inputs[m.Input] = t
		return true
	}
	mixed := s.gap > 0 && !s.cfg.Hold.Set() // one window has the rows of all inputs
	if far && !s.behind && !m.Again && (!later || mixed || abs(m.Arrived-t) <= nearArrival) {
		s.behind = true
		d.late++
	}
	switch {
	case !later && !m.Own, d.late > s.opts.LateMessages: // the clock of the node or of the device was set back
		s.setBack(d, t)
		d.late = 0
	case !later, mixed && far:
		s.counts.Late.Add(1)
		return false
	}
	d.inputs[m.Input] = t
	return true
}

// othersAt reports whether a row has held signals alone of which none came at its time: a sender
// of several measurements, as Telegraf, gives those of one moment the same time.
func (s *Stage) othersAt(d *device, m *Message, r *Row) bool {
	return s.cfg.Hold.Set() && !slices.ContainsFunc(s.opts.Inputs[m.Input].Signals, func(i int) bool {
		return (r.Absent == nil || !r.Absent[i]) && d.came[i] >= r.Time
	})
}

// setBack begins a device anew whose clock was set back to t. Values that it holds came at t
// at the latest.
func (s *Stage) setBack(d *device, t int64) {
	s.counts.SetBack.Add(1)
	d.beginAnew()
	clear(d.inputs)
	for i := range d.came {
		d.came[i], d.changed[i] = min(d.came[i], t), min(d.changed[i], t)
	}
	d.label.came = min(d.label.came, t)
	d.last, d.tick, d.valueAt = 0, 0, 0
}

// PutForward adapts the stage to a node's clock, which shows now, that was put forward by that many ns.
// The times of devices with times of arrival move with the clock, but not beyond now: no rows are made
// of the time between, held values keep their age, and windows begin anew. For other devices the clock
// waits for a message, which shows whether their times are near those of arrival, so that their
// clock is this one, or was put forward as well.
func (s *Stage) PutForward(now, by int64) {
	s.due = 0
	for d := range s.latest {
		if d.near() || d.leap > 0 {
			d.leap += by
		}
		if d.lag = notNear; d.arrival {
			d.lag, d.leap = 0, 0
			s.putForward(d, now, by)
		}
		s.schedule(d)
	}
}

// follow puts a device with times of its own forward, as the node's clock was, with the first message
// whose time is near that of its arrival again.
func (s *Stage) follow(d *device, m *Message) {
	if d.leap == 0 || len(m.Rows) == 0 || abs(m.Arrived-m.Rows[0].Time) > nearArrival {
		return
	}
	if t := m.Rows[0].Time; t-max(d.last, d.valueAt) >= d.leap-nearArrival {
		s.putForward(d, t, d.leap)
	}
	d.leap = 0
}

func (s *Stage) putForward(d *device, now, by int64) {
	move := func(t *int64) {
		if *t != 0 {
			*t = max(*t, min(*t+by, now))
		}
	}
	d.beginAnew()
	for i := range d.came {
		move(&d.came[i])
		move(&d.changed[i])
	}
	move(&d.label.came)
	move(&d.valueAt)
	if move(&d.tick); d.tick != 0 {
		d.tick = ceilTo(d.tick, int64(s.cfg.Hold.Every))
	}
}

// gapOf returns the silence before a message after which the window of its device begins anew. By default
// a message whose rows are counted back from its arrival may come late by half of the time that they
// take. If the message before it is lost, the silence is that whole time.
func (s *Stage) gapOf(m *Message) int64 {
	if s.gap == 0 || s.cfg.Window.MaxGap > 0 || m.Own || len(m.Rows) == 0 {
		return s.gap
	}
	return max(s.gap, (m.Arrived-m.Rows[0].Time)/2)
}

// beginsAnew reports whether a row comes after a silence that ends the window.
func (s *Stage) beginsAnew(d *device, t int64) bool {
	if gap := d.window.gap; gap == 0 || d.rows == 0 || t-d.last <= gap {
		return false
	}
	s.counts.Gaps.Add(1)
	return true
}

// lagOf returns by how much the times of a message are behind that of its arrival, or notNear. A
// device whose clock is slow, or whose messages have waited, still sends rows of a window when the
// node's own time has passed the end: the clock gives it as much longer.
func lagOf(d *device, m *Message) int64 {
	switch {
	case !m.Own:
		return 0
	case len(m.Rows) == 0 || abs(m.Arrived-m.Rows[len(m.Rows)-1].Time) > nearArrival:
		return notNear
	}
	return max(0, m.Arrived-max(d.last, m.Rows[len(m.Rows)-1].Time))
}

// grace returns how long the clock waits beyond the end of a window or the moment of a
// row before it closes or makes it without a later value.
func (s *Stage) grace() int64 {
	if every := s.cfg.Hold.Every; every > 0 {
		return int64(max(shortestGrace, every/10))
	}
	return int64(max(shortestGrace, s.cfg.Window.Length.Time/4))
}

// schedule notes when the clock has work for a device, and reports its window.
func (s *Stage) schedule(d *device) {
	s.report(d)
	d.due = 0
	if d.near() {
		at := s.nextEnd(d)
		if s.cfg.Hold.Every > 0 {
			at = s.nextTick(d)
		}
		if at != 0 {
			d.due = at + d.lag + s.grace()
		}
	}
	if d.due != 0 && (s.due == 0 || d.due < s.due) {
		s.due = d.due
	}
}
