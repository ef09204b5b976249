package online

import (
	"fmt"
	"slices"

	"edge/online/active"
	"edge/online/fleet"
)

const (
	minBuild    = active.FirstLabels // observations before the first model is built
	buildGrowth = 1.5                // growth of the buffer before the model is rebuilt
	fewGrowth   = 1.25               // the same where labels are requested
	maxStep     = 4                  // observations that a build learns in one step
)

// warmup is the buffer of raw observations from which the model is built.
type warmup struct {
	d    int       // features
	x    []float64 // raw; nil when the warm-up is over
	y    []int     // classes
	w    []float64 // weights
	last int       // observations in the buffer when the model was last built
	done bool      // the warm-up is over
	kept bool      // the buffer is kept nevertheless, and grows
	cuts uint64    // times that observations were removed, or their classes renumbered
}

// WarmedUp reports whether the raw warm-up buffer has been dropped.
func (l *Learner) WarmedUp() bool { return l.warmup.done }

func (w *warmup) len() int { return len(w.y) }

// add appends a minibatch, unless the buffer was dropped.
func (w *warmup) add(b *minibatch) {
	if w.done && !w.kept {
		return
	}
	w.x, w.y, w.w = append(w.x, b.x...), append(w.y, b.y...), append(w.w, b.w...)
}

// drop removes observation i.
func (w *warmup) drop(i int) {
	w.cuts++
	w.x = slices.Delete(w.x, i*w.d, (i+1)*w.d)
	w.y, w.w = slices.Delete(w.y, i, i+1), slices.Delete(w.w, i, i+1)
}

// dropClass removes the observations of class k. To maps each class before to its
// index afterwards.
func (w *warmup) dropClass(k int, to []int) {
	w.cuts++
	for i := len(w.y) - 1; i >= 0; i-- {
		if w.y[i] == k {
			w.drop(i)
		}
	}
	for i, class := range w.y {
		w.y[i] = to[class]
	}
}

// remove removes the first observation with the features x, as they are learnt, and
// class k; it reports whether it found one.
func (w *warmup) remove(x []float64, k int) bool {
	for i, class := range w.y {
		if class == k && slices.Equal(w.x[i*w.d:(i+1)*w.d], x) {
			w.drop(i)
			return true
		}
	}
	return false
}

// keepLatest leaves the n latest observations in the buffer.
func (w *warmup) keepLatest(n int) {
	if extra := len(w.y) - n; extra > 0 {
		w.cuts++
		w.x = slices.Delete(w.x, 0, extra*w.d)
		w.y, w.w = slices.Delete(w.y, 0, extra), slices.Delete(w.w, 0, extra)
	}
}

// end ends the warm-up and drops the buffer.
func (w *warmup) end() { w.done, w.kept, w.x, w.y, w.w = true, false, nil, nil, nil }

// counts are the observations in the buffer of each of n classes.
func (w *warmup) counts(n int) []uint64 {
	counts := make([]uint64, n)
	for _, k := range w.y {
		counts[k]++
	}
	return counts
}

// buildDue reports whether the model should be built from the warm-up buffer:
// with eight observations of two classes, whenever the buffer has grown by half
// since, or by a quarter where labels are requested, and for the last time when it
// is full. A full buffer of one class is enough where others are declared: that is
// evidence against them. Where none are declared, the buffer keeps its latest
// observations and waits.
func (l *Learner) buildDue() bool {
	w := &l.warmup
	if w.done {
		return false
	}
	n, full := w.len(), l.cfg.warmup()
	if n < minBuild {
		return false
	}
	if slices.IndexFunc(w.y, func(k int) bool { return k != w.y[0] }) < 0 {
		if len(l.classes.names)-len(l.classes.imported) > 1 {
			return n >= full
		}
		w.keepLatest(full)
		return false
	}
	growth := buildGrowth
	if l.cfg.Passes > 0 {
		growth = fewGrowth
	}
	return n >= full || float64(n) >= growth*float64(w.last)
}

// buildStep is the number of observations that a build learns in one step. Many small steps
// follow the gradient more often than few large ones, and are predicted by a model that has
// learnt more.
func (l *Learner) buildStep() int { return min(l.cfg.Batch.MaxSize, maxStep) }

// build makes a new model and learns the whole warm-up buffer in order. The model begins at start,
// that of a common basis, or if start is nil under the scaling that preferRanks takes. Where the
// buffer has an observation for each inducing point, it is learnt Config.Passes times: every pass
// begins under the parameters of the pass before, without its sites, and all but the first move the
// kernel alone.
func (l *Learner) build(start *fleet.Common) error {
	w := &l.warmup
	n := w.len()
	w.last = n
	first := 0 // pass that is not learnt yet
	ranked, learnt := false, false
	if start == nil {
		ranked, learnt = l.preferRanks()
	}
	if learnt {
		first = 1
	} else if err := l.beginModel(start, ranked); err != nil {
		l.view.Bases = nil // class frequencies answer until the next attempt
		return err
	}
	size := l.buildStep()
	passes := 1
	if n >= l.cfg.Inducing {
		passes = max(l.cfg.Passes, 1)
	}
	defer l.bank.EndPasses()
	for pass := first; pass < passes; pass++ {
		if pass > 0 {
			if err := l.bank.BeginPass(n); err != nil {
				return err
			}
		}
		for i := 0; i < n; i += size {
			if l.progress != nil {
				l.progress()
			}
			end := min(i+size, n)
			if err := l.learn(w.x[i*w.d:end*w.d], w.y[i:end], w.w[i:end], false); err != nil {
				return err
			}
		}
	}
	return nil
}

// describeBuild describes for people the samples of the latest build, and how its
// features are scaled.
func (l *Learner) describeBuild() string {
	scaling := "features by mean and standard deviation"
	if l.view.Scale.Ranks != nil {
		scaling = "features by mean, standard deviation and rank"
	}
	if l.common.begun {
		return fmt.Sprintf("from %d observations, on basis %d of the fleet", l.warmup.last, l.common.Number)
	}
	return fmt.Sprintf("from %d observations, %s", l.warmup.last, scaling)
}

// beginModel makes an empty model for the observations of the warm-up buffer, with a
// latent function for each class: at the start of a common basis, or if that is nil with
// the scaling of the buffer, and its ranks if ranked is true.
func (l *Learner) beginModel(start *fleet.Common, ranked bool) (err error) {
	defer Recover(&err)
	l.classes.clearLatent()
	l.mix.ResetHorizons()
	if l.common.begun = start != nil; l.common.begun {
		err = l.beginAt(start)
	} else {
		err = l.bank.Begin(l.warmup.x, l.warmup.len(), len(l.classes.names), ranked)
	}
	if err != nil {
		return err
	}
	for k := range l.classes.names {
		if !l.imported(k) {
			l.ensureLatent(k)
		}
	}
	return nil
}
