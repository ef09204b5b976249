package report

import (
	"math"

	"edge/online/score"
)

// worstRows is the number of consecutive rows over which the coverage of prediction
// sets is followed.
const worstRows = 250

// Worst finds the lowest coverage of the prediction sets over 250 consecutive rows.
// The zero value is ready.
type Worst struct {
	held    [worstRows]bool // of the last sets; the oldest is replaced next
	n       uint64          // sets so far
	covered uint64          // among all
	recent  int             // among the last
	least   int             // in any 250 consecutive ones
}

// Follow takes the results of all sets so far, after each row.
func (w *Worst) Follow(c score.Coverage) {
	if c.N == 0 {
		return
	}
	covered := uint64(math.Round(float64(c.Covered) * float64(c.N)))
	for hits := covered - w.covered; w.n < c.N; hits = max(hits, 1) - 1 {
		w.add(hits > 0)
	}
	w.covered = covered
}

func (w *Worst) add(holds bool) {
	at := &w.held[w.n%worstRows]
	if *at {
		w.recent--
	}
	if *at = holds; holds {
		w.recent++
	}
	if w.n++; w.n == worstRows || w.n > worstRows && w.recent < w.least {
		w.least = w.recent
	}
}

// Coverage is the lowest coverage; nil if there were not 250 sets.
func (w *Worst) Coverage() *score.Real {
	if w.n < worstRows {
		return nil
	}
	c := score.Real(float64(w.least) / worstRows)
	return &c
}
