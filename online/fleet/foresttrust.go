package fleet

import (
	"cmp"
	"math"
	"slices"
)

// Labels are the latest labels of the receiver, by which forests are tested.
type Labels struct {
	Classes []string
	Known   []bool    // the class has MinKnown own labels or more
	X       []float32 // n×D, as model.RawTo stores them
	Y       []int     // n  classes
}

// addForests adds the forests of the members that are taken and whose forests own labels
// do not contradict, of MaxForests at most: those with the most labels. Where the devices
// differ by gain and offset a receiver without a scaling of its own takes none.
func (r *Receiver) addForests(m *Merge, s *Set) {
	if r.Units == Standard && r.Params.M == 0 {
		return
	}
	for i, c := range s.members {
		if m.Members[i].Refused != None {
			continue
		}
		f := Forest{c.Member, c.N, c.Classes, c.Counts, c.Forest(), c.forest}
		if f.Forest == nil {
			continue
		}
		if r.Units == Standard {
			f.data = nil
			moveThresholds(f.Forest, &c.Scale, &r.Scale)
		}
		if trust, tested := r.Labels.trust(&f); !tested || trust >= r.Trust {
			m.Forests = append(m.Forests, f)
		}
	}
	if len(m.Forests) <= MaxForests {
		return
	}
	most := make([]int, len(m.Forests)) // places in Forests
	for i := range most {
		most[i] = i
	}
	slices.SortStableFunc(most, func(i, j int) int { return cmp.Compare(m.Forests[j].N, m.Forests[i].N) })
	most = most[:MaxForests]
	slices.Sort(most)
	for to, from := range most {
		m.Forests[to] = m.Forests[from]
	}
	clear(m.Forests[MaxForests:])
	m.Forests = m.Forests[:MaxForests]
}

// trust returns the mean gain in log probability of own labels by a forest, against the
// frequencies of their classes, in standard errors:
//
//	d_r = log p(y_r | y_r ∈ K) − log π(y_r | y_r ∈ K),     mean(d)/(sd(d)/√n)
//
// K are the classes that both know. It reports false for fewer than MinWindow such labels,
// and for fewer than two such classes.
func (l *Labels) trust(f *Forest) (trust float64, tested bool) {
	if l == nil || len(l.Y) == 0 {
		return 0, false
	}
	at := make([]int, len(l.Classes)) // of each class in the forest; −1: not in K
	for k, name := range l.Classes {
		if at[k] = slices.Index(f.Classes, name); at[k] >= 0 && (!l.Known[k] || f.Counts[at[k]] < MinKnown) {
			at[k] = -1
		}
	}
	counts, n := make([]float64, len(at)), 0.
	for _, y := range l.Y {
		if at[y] >= 0 {
			counts[y]++
			n++
		}
	}
	if n < MinWindow || slices.Max(counts) == n {
		return 0, false
	}
	x, labels := l.of(at, int(n))
	c := f.Forest.Classes
	all, gains := make([]float64, len(labels)*c), make([]float64, len(labels))
	f.AllLogsTo(all, len(labels), x)
	for i, y := range labels {
		logs := all[i*c : (i+1)*c]
		var known float64
		for k := range at {
			if at[k] >= 0 {
				known += max(math.Exp(logs[at[k]]), minProb)
			}
		}
		gains[i] = math.Log(max(math.Exp(logs[at[y]]), minProb)/known) - math.Log(counts[y]/n)
	}
	return inErrors(gains), true
}

// of returns the features and the classes of the n labels whose classes are in K, for which at
// is not negative.
func (l *Labels) of(at []int, n int) (x []float32, labels []int) {
	if n == len(l.Y) {
		return l.X, l.Y
	}
	d := len(l.X) / len(l.Y)
	x, labels = make([]float32, 0, n*d), make([]int, 0, n)
	for i, y := range l.Y {
		if at[y] >= 0 {
			x, labels = append(x, l.X[i*d:(i+1)*d]...), append(labels, y)
		}
	}
	return x, labels
}

// inErrors is the mean of some numbers in its standard errors.
func inErrors(all []float64) float64 {
	n := float64(len(all))
	var mean, squares float64
	for _, v := range all {
		mean += v / n
	}
	for _, v := range all {
		squares += float64((v - mean) * (v - mean))
	}
	if mean == 0 {
		return 0
	}
	return mean / max(math.Sqrt(squares/(n-1)/n), minProb)
}
