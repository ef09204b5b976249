package signal

import (
	"math"
	"slices"

	"edge/stream/signal/feature"
)

// window holds the rows of one device that coming windows need: a ring of a fixed number
// of rows, or with times a queue.
type window struct {
	width  int       // W windowed signals
	values []float64 // rows×W
	times  []int64   // of each row, of windows by time
	runs   []run     // labels of the rows, in order
	at     int       // ring: the row that is replaced next; queue: the first row that is kept
	next   int64     // start of the next window by time; 0: not known
	gap    int64     // silence after which the window begins anew; 0: one of any length ends none

	sticky bool    // the last label was a state
	starts []int64 // times of the rows that begin the windows by count or by message in progress
}

func (w *window) clear() {
	w.values, w.times, w.runs, w.at, w.next, w.starts = w.values[:0], w.times[:0], w.runs[:0], 0, 0, w.starts[:0]
}

// rows returns the number of rows.
func (w *window) rows() int {
	if w.times != nil {
		return len(w.times) - w.at
	}
	return len(w.values) / max(w.width, 1)
}

// label notes the label of the latest row.
func (w *window) label(l rowLabel) {
	w.runs = pushRun(w.runs, l.text)
	if l.text != "" {
		w.sticky = l.sticky
	}
}

// push appends the windowed signals of a row.
func (s *Stage) push(d *device, t int64, l rowLabel) {
	w := &d.window
	copy(d.row, s.now)
	for _, i := range s.windowed {
		w.values = append(w.values, s.now[i])
	}
	w.label(l)
	d.note(t)
}

// rowByCount adds a row to a window of a number of rows, which replaces the oldest.
func (s *Stage) rowByCount(d *device, t int64, l rowLabel) {
	w, n, hop := &d.window, s.cfg.Window.Length.Rows, s.cfg.Hop().Rows
	if d.rows >= n { // bounded: an int of 32 bits counts 25 days of 1 kHz
		d.rows = n + (d.rows-n)%hop
	}
	if d.rows%hop == 0 {
		w.starts = append(w.starts, t)
	}
	if d.rows < n {
		s.push(d, t, l)
	} else {
		copy(d.row, s.now)
		for j, i := range s.windowed {
			w.values[w.at*w.width+j] = s.now[i]
		}
		w.at = (w.at + 1) % n
		w.runs = popRuns(w.runs, 1)
		w.label(l)
		d.note(t)
	}
	if d.rows >= n && (d.rows-n)%hop == 0 {
		s.closeWindow(d, '#', w.starts[0], t, n)
		w.starts = append(w.starts[:0], w.starts[1:]...)
	}
}

// rowByTime closes the windows that end at or before a row, and adds it.
func (s *Stage) rowByTime(d *device, t int64, l rowLabel) {
	w := &d.window
	now := append(s.spare[:0], s.now...) // closing a window uses s.now
	s.spare = now
	if d.rows == 0 {
		w.next = ceilTo(t, int64(s.cfg.Hop().Time))
	} else {
		s.closeBefore(d, t)
	}
	s.now = append(s.now[:0], now...)
	if w.rows() >= s.cfg.Window.MaxRows {
		s.counts.Crowded.Add(1)
		w.dropRows(w.at + 1)
	}
	w.times = append(w.times, t)
	s.push(d, t, l)
}

// closeBefore closes the windows of a device that end at or before t. The last window
// before a silence that is too long ends by the clock alone: no row does.
func (s *Stage) closeBefore(d *device, t int64) {
	w := &d.window
	length, hop := int64(s.cfg.Window.Length.Time), int64(s.cfg.Hop().Time)
	if length == 0 || d.rows == 0 {
		return
	}
	for w.next+length <= t {
		from, to := w.next, w.next+length
		if to-d.last > w.gap { // and so do all that follow
			w.next = max(w.next, ceilTo(t-length+1, hop))
			w.keepFrom(w.next, s.cfg.Window.Resample > 0)
			return
		}
		w.keepFrom(from, s.cfg.Window.Resample > 0)
		more := int64(0) // windows after this one that have no row either
		switch n := len(w.times) - w.firstFrom(from); {
		case n >= s.cfg.Window.MinRows:
			s.closeWindow(d, '@', from, to, n)
		case n == 0:
			more = min(t-to, w.gap-(to-d.last)) / hop
			fallthrough
		default:
			s.counts.Thin.Add(uint64(1 + more))
		}
		w.next += (1 + more) * hop
		w.keepFrom(w.next, s.cfg.Window.Resample > 0)
	}
}

// nextEnd returns the end of the next window by time of a device; 0: no row is in it.
func (s *Stage) nextEnd(d *device) int64 {
	length := int64(s.cfg.Window.Length.Time)
	w := &d.window
	if length == 0 || d.rows == 0 || d.last < w.next || w.next+length-d.last > w.gap {
		return 0
	}
	return w.next + length
}

// closeMessage makes the sample of the rows of one message.
func (s *Stage) closeMessage(d *device) {
	if n := d.window.rows(); n > 0 {
		s.closeWindow(d, '#', d.window.starts[0], d.last, n)
		d.window.clear()
	}
}

// closeWindow makes the sample of the last n rows.
func (s *Stage) closeWindow(d *device, kind byte, start, t int64, n int) {
	text := s.windowLabel(d, n)
	s.emit(d, kind, start, t, rowLabel{text, text != "" && d.window.sticky})
}

// firstFrom returns the index of the first row at or after t.
func (w *window) firstFrom(t int64) int {
	i := w.at
	for i < len(w.times) && w.times[i] < t {
		i++
	}
	return i
}

// keepFrom drops the rows before t; with before it keeps the last of them, whose values
// hold until the next row.
func (w *window) keepFrom(t int64, before bool) {
	i := w.firstFrom(t)
	if before && i > w.at {
		i--
	}
	w.dropRows(i)
}

// dropRows drops the rows of a queue before the i-th.
func (w *window) dropRows(i int) {
	w.runs = popRuns(w.runs, i-w.at)
	w.at = i
	if w.at > 64 && w.at > len(w.times)/2 {
		w.dropFront()
	}
}

// dropFront frees the memory of the rows of a queue that are not kept.
func (w *window) dropFront() {
	n := copy(w.times, w.times[w.at:])
	copy(w.values, w.values[w.at*w.width:])
	w.times, w.values, w.at = w.times[:n], w.values[:n*w.width], 0
}

// columns are the windowed signals of a closing window.
type columns struct {
	values []float64 // W×n
	whole  []bool    // W: none of the signal's values is missing
	drawn  []float64 // courses of the samples that are returned
}

// windowFeatures appends the features of the windowed signals, and their correlations.
func (s *Stage) windowFeatures(dst []float64, d *device) []float64 {
	n := s.windowRows(d)
	c := &s.columns
	c.values = slices.Grow(c.values[:0], n*len(s.extractors))[:n*len(s.extractors)]
	c.whole = c.whole[:0]
	for j, e := range s.extractors {
		a := c.values[j*n : (j+1)*n]
		whole := s.column(a, d, j)
		c.whole = append(c.whole, whole)
		if !whole {
			a = s.present(a)
		}
		if len(a) < s.fewest(d) {
			for range e.Names() {
				dst = append(dst, math.NaN())
			}
			continue
		}
		dst = e.Append(dst, a)
	}
	for _, p := range s.pairs {
		a, b := c.values[p[0]*n:(p[0]+1)*n], c.values[p[1]*n:(p[1]+1)*n]
		if !c.whole[p[0]] || !c.whole[p[1]] {
			a, b = s.bothPresent(a, b)
		}
		if len(a) < s.fewest(d) {
			dst = append(dst, math.NaN())
			continue
		}
		dst = append(dst, feature.Correlation(a, b))
	}
	return dst
}

// column stores the values of the j-th windowed signal in the closing window in a, and
// reports whether none is missing.
func (s *Stage) column(a []float64, d *device, j int) (whole bool) {
	whole = true
	for i := range a {
		a[i] = s.windowValue(d, i, j)
		whole = whole && a[i] == a[i]
	}
	return whole
}

// present returns the values of a that are not missing, in s.series[0].
func (s *Stage) present(a []float64) []float64 {
	there := s.series[0][:0]
	for _, v := range a {
		if !math.IsNaN(v) {
			there = append(there, v)
		}
	}
	s.series[0] = there
	return there
}

// bothPresent returns the values of a and b in the rows that have both.
func (s *Stage) bothPresent(a, b []float64) (u, v []float64) {
	u, v = s.series[0][:0], s.series[1][:0]
	for i := range a {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			u, v = append(u, a[i]), append(v, b[i])
		}
	}
	s.series[0], s.series[1] = u, v
	return u, v
}

// fewest returns the number of values below which a signal has no features.
func (s *Stage) fewest(d *device) int { return max(1, min(s.cfg.Window.MinRows, s.windowRows(d))) }

// windowRows returns the number of rows, or of resampled values, of the closing window.
func (s *Stage) windowRows(d *device) int {
	if r := s.cfg.Window.Resample; r > 0 && s.cfg.Window.Length.Time > 0 {
		return int(s.cfg.Window.Length.Time / r)
	}
	return d.window.rows()
}

// windowValue returns the value of the j-th windowed signal in the i-th row of the
// closing window, or at its i-th moment. Calls with one j have rising i.
func (s *Stage) windowValue(d *device, i, j int) float64 {
	w := &d.window
	switch {
	case w.times == nil && w.at > 0:
		i = (w.at + i) % s.cfg.Window.Length.Rows
	case s.cfg.Window.Resample > 0:
		return s.resampled(w, i, j)
	default:
		i += w.at
	}
	return w.values[i*w.width+j]
}

// resampled returns the last value at or before a moment of the closing window.
func (s *Stage) resampled(w *window, i, j int) float64 {
	at := w.next + int64(i)*int64(s.cfg.Window.Resample)
	if i == 0 {
		s.cursor = w.at
	}
	for s.cursor+1 < len(w.times) && w.times[s.cursor+1] <= at {
		s.cursor++
	}
	if w.times[s.cursor] > at {
		return math.NaN()
	}
	return w.values[s.cursor*w.width+j]
}
