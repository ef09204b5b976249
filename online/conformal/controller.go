package conformal

import (
	"sync"

	"edge/online/score"
)

// CoverageController keeps the coverage of published sets at the target. They are
// made before the labels before them are learnt, so that the learner's threshold,
// which keeps the coverage of the learner's own predictions, is behind. The
// controller replaces the learner's sum by the sum over the published sets, updated
// as soon as their labels are known:
//
//	q = Q(coverage) + 1.5·Σ (missed − (1 − coverage))/distance
//
// The distance is 1 for a label that is known at once, and for a late label its
// distance in labels from the last label that the set knew: a sum that counts old
// errors must be slow, or it oscillates. It begins with the learner's sum. The zero
// value is ready; any goroutine may use it.
type CoverageController struct {
	mu     sync.Mutex
	target float64 // 0: it has not begun
	shift  float64 // the sum
	sets   score.CoverageCounter
}

// Threshold returns u with the threshold for the next published set.
func (c *CoverageController) Threshold(u Uncertainty) Uncertainty {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target != u.Coverage {
		c.target, c.shift = u.Coverage, u.Threshold-u.Quantile
	}
	u.Threshold = u.Quantile + c.shift
	return u
}

// JudgeNow adds a published set of a given size whose label is known at once.
func (c *CoverageController) JudgeNow(holds bool, size int) { c.judge(holds, size, 1) }

// Judge adds a published set of a given size whose label came late: place is the
// number of the label among all labels of the model, known the number of labels
// that the set knew. A set that knew none is ignored: its threshold was a default.
func (c *CoverageController) Judge(holds bool, size int, known, place uint64) {
	if known > 0 {
		c.judge(holds, size, float64(max(place, known+1)-known))
	}
}

func (c *CoverageController) judge(holds bool, size int, distance float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	missed := 1.0
	if holds {
		missed = 0
	}
	c.sets.Add(size, holds)
	c.shift += integralGain * (missed - (1 - c.target)) / distance
}

// Coverage returns the results of the published sets that were judged.
func (c *CoverageController) Coverage() score.Coverage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sets.Coverage()
}
