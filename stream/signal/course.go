package signal

import "math"

const (
	// maxCourses is the number of windowed signals that have a course, the first ones.
	maxCourses = 6
	// coursePieces is the number of pieces of a course with more than twice as many rows,
	// each of which gives its lowest and highest value.
	coursePieces = 80
)

// CourseSignals returns the names of the signals in Sample.Course.
func (s *Stage) CourseSignals() []string {
	names := make([]string, min(len(s.windowed), maxCourses))
	for j := range names {
		names[j] = s.values[s.windowed[j]]
	}
	return names
}

// course appends the course of the first windowed signals over the closing window, whose
// features were made before, to dst: P values of each, evenly over the window, P at most
// 160. A window with more rows is cut into pieces; each of them gives its lowest and its
// highest value, in the order in which they came, so that a vibration keeps its amplitude.
// A piece without a value gives NaN.
func (s *Stage) course(dst []float64, d *device) []float64 {
	n, w := s.windowRows(d), &d.window
	timed := w.times != nil && s.cfg.Window.Resample == 0 // its rows are not evenly in time
	for j := range min(len(s.windowed), maxCourses) {
		values := s.columns.values[j*n : (j+1)*n]
		if !timed && n <= 2*coursePieces {
			dst = append(dst, values...)
			continue
		}
		from := len(dst)
		for range 2 * coursePieces {
			dst = append(dst, math.NaN())
		}
		for i, v := range values {
			piece := i * coursePieces / n
			if timed {
				part := float64(w.times[w.at+i]-w.next) / float64(s.cfg.Window.Length.Time)
				piece = min(max(int(part*coursePieces), 0), coursePieces-1)
			}
			widen(dst[from+2*piece:], v)
		}
	}
	return dst
}

// widen adds a later value to the lowest and highest one of a piece, which are in the
// order in which they came.
func widen(piece []float64, v float64) {
	lo, hi := min(piece[0], piece[1]), max(piece[0], piece[1])
	switch {
	case math.IsNaN(v):
	case math.IsNaN(lo):
		piece[0], piece[1] = v, v
	case v < lo:
		piece[0], piece[1] = hi, v
	case v > hi:
		piece[0], piece[1] = lo, v
	}
}
