package signal

import (
	"encoding/hex"
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

// Windows that a build of 23 November saved, in version 1, go on: its stage had taken 102 rows, and
// the window that was in progress ends two rows later.
func TestRestoreEarlierBuild(t *testing.T) {
	saved, err := hex.DecodeString("01781f250f08807521010000b23bba159d971700b23bba159d971700000000000000000000000000000000" +
		"b8eae6cf8b0100000000000000000000660000000100007b14ae47e17afc3f089a9999999999a9bfe17a14ae47e1ea3fd7a3703d0ad7d3bf" +
		"7b14ae47e17a843f7b14ae47e17ae43f7b14ae47e17afc3f666666666666d63fe17a14ae47e1cabf000200c03590149d971700e8a07e159d9717060201780601790200")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, Options{Config: config([]string{"x"}, func(w *Window) { w.Length, w.Hop = Span{Rows: 8}, Span{Rows: 4} })})
	if err := s.Restore(saved); err != nil {
		t.Fatal(err)
	}
	at := 1_700_000_102 * second
	if made := s.Take(one("", at, "y", 0)); len(made) > 0 {
		t.Errorf("%d samples after one row", len(made))
	}
	if made := s.Take(one("", at+second, "y", 0)); len(made) != 1 {
		t.Errorf("%d samples after two rows, want 1", len(made))
	}
}
