package signal

import (
	"errors"
	"testing"
)

// The rows of a stored window are those that its device has counted: a ring that lacks some
// would be read beyond its end with each later row.
func TestRestoreCountsRows(t *testing.T) {
	c := config([]string{"x"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 8}, Span{Rows: 4} })
	for _, test := range []struct {
		rows, counted int
		valid         bool
	}{
		{3, 3, true}, {8, 8, true}, {21, 21, true},
		{3, 8, false}, {3, 4, false}, {8, 3, false}, {8, 7, false},
	} {
		s := newStage(t, Options{Config: c})
		for i := range test.rows {
			s.Take(one("p", int64(i)*second, "", float64(i)))
		}
		d := s.devices["p"].Value.(*device)
		if test.rows != test.counted {
			d.rows = test.counted
			d.window.starts = make([]int64, c.begun(d.rows))
		}
		again := newStage(t, Options{Config: c})
		if err := again.Restore(s.Save()); (err == nil) != test.valid || err != nil && !errors.Is(err, ErrSaved) {
			t.Errorf("%d rows of which %d are counted: error %v", test.rows, test.counted, err)
		}
		for i := range 20 { // a state that is accepted can be used
			again.Take(one("p", int64(test.rows+i)*second, "", 1))
		}
	}
}
