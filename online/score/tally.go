package score

import (
	"math"
	"slices"
)

const (
	minProb     = 1e-6 // floor of a probability in the log loss
	eceBins     = 15
	scoreWindow = 500 // samples in Scores.Window
)

// rule is the decision of an abstention rule about one prediction.
type rule uint8

const (
	noRule rule = iota
	answered
	abstained
)

// tally adds up outcomes. Memory O(C²).
type tally struct {
	n, errors   uint64
	nll, brier  float64
	binN        [eceBins]uint64
	binHits     [eceBins]uint64
	binConf     [eceBins]float64
	labels      []uint64   // C  of each class
	confusion   [][]uint64 // C×C, grows with the classes
	baselines   uint64     // samples that the baselines judged
	prior, last lossSum
	rules       [3]uint64 // by rule
	wrongKept   uint64    // errors among the answered
	sets        setCounts
}

// setCounts counts prediction sets.
type setCounts struct{ n, covered, size, empty uint64 }

func (s *setCounts) coverage() Coverage {
	n := float64(s.n)
	return Coverage{s.n, Real(float64(s.covered) / n), Real(float64(s.size) / n), Real(float64(s.empty) / n)}
}

// loss is the loss of one baseline.
type loss struct {
	nll   float64
	wrong bool
}

type lossSum struct {
	errors uint64
	nll    float64
}

func (s *lossSum) add(l loss) {
	s.nll += l.nll
	if l.wrong {
		s.errors++
	}
}

func (s lossSum) mean(n uint64) Baseline {
	if n == 0 {
		return Baseline{}
	}
	return Baseline{n, float64(s.errors) / float64(n), s.nll / float64(n)}
}

func (t *tally) grow(classes int) {
	for len(t.confusion) < classes {
		for i := range t.confusion {
			t.confusion[i] = append(t.confusion[i], 0)
		}
		t.confusion = append(t.confusion, make([]uint64, len(t.confusion)+1))
		t.labels = append(t.labels, 0)
	}
}

// add counts an outcome.
func (t *tally) add(o *Outcome) {
	t.count(o, 1)
	t.baselines++
	t.prior.add(o.prior)
	t.last.add(o.last)
	t.rules[o.rule]++
	if o.rule == answered && o.Top != o.Label {
		t.wrongKept++
	}
	if o.set >= 0 {
		t.sets.n++
		t.sets.size += uint64(o.set)
		if o.covered {
			t.sets.covered++
		}
		if o.set == 0 {
			t.sets.empty++
		}
	}
}

// count counts an outcome in the scores of the model, or with sign −1 removes it.
func (t *tally) count(o *Outcome, sign int) {
	t.grow(max(o.Label, o.Top) + 1)
	one := uint64(sign) // −1 wraps around, as uint64 does
	t.n += one
	t.labels[o.Label] += one
	t.nll += float64(sign) * o.NLL
	t.brier += float64(sign) * o.brier
	bin := o.bin()
	t.binN[bin] += one
	t.binConf[bin] += float64(sign) * o.conf
	if o.Top == o.Label {
		t.binHits[bin] += one
	} else {
		t.errors += one
	}
	if o.Top >= 0 {
		t.confusion[o.Label][o.Top] += one
	}
}

// holds reports whether an outcome like o has been counted.
func (t *tally) holds(o *Outcome) bool {
	if max(o.Label, o.Top) >= len(t.labels) || t.labels[o.Label] == 0 || t.binN[o.bin()] == 0 {
		return false
	}
	if o.Top == o.Label && t.binHits[o.bin()] == 0 {
		return false
	}
	return o.Top < 0 || t.confusion[o.Label][o.Top] > 0
}

// bin is the bin of the confidence.
func (o *Outcome) bin() int { return min(int(o.conf*eceBins), eceBins-1) }

// drop removes a class from the counts by class. The other scores stay: they are
// of predictions that were made.
func (t *tally) drop(k int) {
	if k >= len(t.labels) {
		return
	}
	t.labels = slices.Delete(t.labels, k, k+1)
	t.confusion = slices.Delete(t.confusion, k, k+1)
	for i, row := range t.confusion {
		t.confusion[i] = slices.Delete(row, k, k+1)
	}
}

// figures returns the scores of the counted outcomes; names are the classes.
func (t *tally) figures(names []string) Figures {
	f := Figures{N: t.n, Balanced: Real(math.NaN()), Kappa: Real(math.NaN()), PerClass: []ClassScore{}}
	f.Prior, f.Last = t.prior.mean(t.baselines), t.last.mean(t.baselines)
	if t.n == 0 {
		return f
	}
	n := float64(t.n)
	f.Error, f.NLL, f.Brier = float64(t.errors)/n, t.nll/n, t.brier/n
	for b := range eceBins {
		f.ECE += math.Abs(t.binConf[b]-float64(t.binHits[b])) / n
	}
	var f1, recalls, seen, agreed, chance, present float64
	for _, of := range t.labels { // of the present classes: a removed one is in n alone
		present += float64(of)
	}
	for k, name := range names {
		if k >= len(t.labels) {
			f.PerClass = append(f.PerClass, ClassScore{name, 0, 0, Real(math.NaN()), Real(math.NaN())})
			continue
		}
		var predicted uint64
		for j := range t.confusion {
			predicted += t.confusion[j][k]
		}
		labels, hits := float64(t.labels[k]), float64(t.confusion[k][k])
		f.PerClass = append(f.PerClass, ClassScore{name, t.labels[k], Real(labels / present), Real(hits / float64(predicted)), Real(hits / labels)})
		agreed += hits / present
		chance += labels / present * float64(predicted) / present
		if labels > 0 {
			seen++
			recalls += hits / labels
			f1 += 2 * hits / (labels + float64(predicted))
		}
	}
	if seen > 0 {
		f.MacroF1, f.Balanced = f1/seen, Real(recalls/seen)
	}
	f.Kappa = Real((agreed - chance) / (1 - chance))
	kept := t.rules[answered]
	if ruled := kept + t.rules[abstained]; ruled > 0 {
		f.Abstained = &Abstentions{ruled, Real(float64(kept) / float64(ruled)), Real(float64(t.wrongKept) / float64(kept))}
	}
	if t.sets.n > 0 {
		c := t.sets.coverage()
		f.Sets = &c
	}
	return f
}
