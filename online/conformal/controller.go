package conformal

import (
	"sync"

	"edge/online/score"
)

// CoverageController keeps the coverage of published sets at the target. They are
// made before the labels before them are learnt, so that the learner's threshold,
// which keeps the coverage of the learner's own predictions, is behind. The
// controller replaces the learner's integral term by one over the published sets,
// updated as soon as their labels are known:
//
//	S ← S + 0.05·(missed − (1 − coverage))/max(distance, 2)
//
// The distance is 1 for a label that is known at once, and for a late label its
// distance in labels from the last label that the set knew: an integral that counts
// old errors must be slow, or it oscillates. It begins with the learner's S. The
// zero value is ready; any goroutine may use it.
type CoverageController struct {
	mu     sync.Mutex
	target float64 // 0: it has not begun
	shift  float64 // S
	early  float64 // misses above the target of sets that knew no label,
	earlyN float64 // and their number
	sets   score.CoverageCounter
}

// Threshold returns u with the threshold for the next published set. Before the first label
// that set holds the most probable class at least: an empty one says that the model is right more
// often than its target requires, and no label has shown that. A follower never has a label.
func (c *CoverageController) Threshold(u Uncertainty) Uncertainty {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target != u.Coverage {
		c.target, c.shift, c.early, c.earlyN = u.Coverage, u.Threshold-u.Quantile, 0, 0
	}
	c.shift = bounded(c.shift, u.Quantile, u.NeverEmpty)
	u.Threshold, u.NeverEmpty = u.Quantile+c.shift, u.NeverEmpty || u.Untried
	return u
}

// JudgeNow adds a published set of a given size whose label is known at once.
func (c *CoverageController) JudgeNow(holds bool, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets.Add(size, holds)
	c.shift += integral(excess(!holds, c.target), 1)
}

// Judge adds a published set of a given size whose label came late: place is the
// number of the label among all labels of the model, known the number of labels
// that the set knew. How late the labels are is not known before one whose set knew
// a label: the sets before it wait, and count then, at its distance or at their
// number if that is larger.
func (c *CoverageController) Judge(holds bool, size int, known, place uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets.Add(size, holds)
	miss := excess(!holds, c.target)
	if known == 0 {
		c.early += miss
		c.earlyN++
		return
	}
	distance := float64(max(place, known+1) - known)
	c.shift += integral(miss, distance) + integral(c.early, max(distance, c.earlyN))
	c.early, c.earlyN = 0, 0
}

// Coverage returns the results of the published sets that were judged.
func (c *CoverageController) Coverage() score.Coverage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sets.Coverage()
}
