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
	Least   int       // of them that test a forest; 0: MinWindow
}

// Rules of the test of a forest, in standard errors.
const (
	minSkill  = 2 // from which on its answers go with own labels
	allowance = 2 // by which the least trust is lower, see Receiver.least
	maxLag    = 4 // beyond which another member's forest makes its skill doubtful
)

// candidate is the forest of a member, and the result of its test by own labels.
type candidate struct {
	Forest
	trust  float64 // mean of the gain in log probability of own labels, in its standard errors
	skill  float64 // mean of the score of own labels, in its standard errors
	tested bool

	scores []float64 // of the window's labels; NaN: of classes that not both know
	lag    float64   // mean by which the score of the most skilled forest is higher, in its standard errors
}

// skilled reports whether the forest's answers go with own labels. A nil one is not known to.
func (c *candidate) skilled() bool { return c != nil && c.tested && c.skill >= minSkill }

// least is the least trust of the sites of a contribution with that forest, or with none. It is lower if
// the forest goes with own labels, and for a member that knows fewer than two classes that the receiver
// knows: own labels tell little about what such a member has learnt of the others.
func (r *Receiver) least(c *Contribution, f *candidate) float64 {
	if f.skilled() || r.inCommon(c) < 2 {
		return r.Trust - allowance
	}
	return r.Trust
}

// inCommon is the number of classes that the receiver and the member both know.
func (r *Receiver) inCommon(c *Contribution) (n int) {
	for k, name := range r.Window.Classes {
		if at := slices.Index(c.Classes, name); at >= 0 && r.Window.Known[k] && c.Counts[at] >= MinKnown {
			n++
		}
	}
	return n
}

// misleads reports whether own labels speak against all that the member has learnt: its forest
// answers worse than the frequencies of the classes, as one of noisy labels may as well, and has
// no skill. A forest knows little of labels that go with no feature, and is sure of it: its test
// finds them where the sites, which are less sure, hardly change an answer.
func (c *candidate) misleads(least float64) bool {
	return c != nil && c.tested && c.trust < least && c.skill < minSkill
}

// outdone reports whether the forest's skill is likely to be chance: another member's forest goes with own
// labels far better. It must be ahead by maxLag if this one answers no better than the frequencies of the
// classes, and by twice as much if this one is hardly better than these. Samples of a class lie together, so
// that one random label decides the answer for many own labels: their standard errors then are too small.
func (c *candidate) outdone(least float64) bool {
	return c != nil && c.tested && (c.trust < least+allowance && c.lag > maxLag || c.trust < least+2*allowance && c.lag > 2*maxLag)
}

// compareSkills sets the lags of the tested forests, by the labels whose classes are known to both.
func compareSkills(all []*candidate) {
	var best *candidate
	for _, c := range all {
		if c != nil && c.tested && (best == nil || c.skill > best.skill) {
			best = c
		}
	}
	for _, c := range all {
		if c == nil || !c.tested {
			continue
		}
		var ahead []float64
		for i, v := range c.scores {
			if d := best.scores[i] - v; !math.IsNaN(d) {
				ahead = append(ahead, d)
			}
		}
		if len(ahead) >= 2 {
			c.lag = inErrors(ahead)
		}
	}
}

// candidates returns the forests of the open members, tested by own labels, by their places in the
// set; nil for the others. Where the devices differ by gain and offset a receiver without a scaling
// of its own takes none.
func (r *Receiver) candidates(s *Set, open []int) []*candidate {
	all := make([]*candidate, len(s.members))
	power := 1 / math.Sqrt(float64(1+len(open)))
	if r.Units == Standard && r.Params.M == 0 {
		return all
	}
	for _, i := range open {
		c := s.members[i]
		f := &candidate{Forest: Forest{c.Member, c.N, c.Classes, c.Counts, c.Forest(), c.forest}}
		if f.Forest.Forest == nil {
			continue
		}
		if r.Units == Standard {
			f.data = nil
			moveThresholds(f.Forest.Forest, &c.Scale, &r.Scale)
		}
		r.Labels.test(f, power)
		all[i] = f
	}
	compareSkills(all)
	return all
}

// addForests adds the forests of the members that are taken and whose forests own labels
// do not contradict, of MaxForests at most: those with the most labels.
func (r *Receiver) addForests(m *Merge, all []*candidate) {
	for i, f := range all {
		if f != nil && m.Members[i].Refused == None && (!f.tested || f.trust >= r.Trust) {
			m.Forests = append(m.Forests, f.Forest)
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

// test sets the trust in a forest and its skill, the means of a gain against the frequencies π
// of own labels and of a score, in standard errors:
//
//	d_r = log q(y_r) − log π(y_r),  q ∝ p^t,     u_r = log p(y_r) − ∑_k π(k)·log p(k)
//
// given that the class is in K, the classes that both know. The power t is n^−½ for n forests in
// the mean to which their members tune them: each of them alone is surer than that. The score u is
// the derivative of log π·p^t by t at 0: it does not depend on how sure the forest is. Fewer than
// Least such labels test nothing, nor do fewer than two such classes.
func (l *Labels) test(f *candidate, power float64) {
	if l == nil || len(l.Y) == 0 {
		return
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
	if int(n) < cmp.Or(l.Least, MinWindow) || slices.Max(counts) == n {
		return
	}
	x, labels := l.of(at, int(n))
	c := f.Forest.Forest.Classes
	all := make([]float64, len(labels)*c)
	gains, scores := make([]float64, len(labels)), make([]float64, len(labels))
	f.AllLogsTo(all, len(labels), x)
	floor := math.Log(minProb)
	for i, y := range labels {
		logs := all[i*c : (i+1)*c]
		var known, mean float64
		for k := range at {
			if at[k] >= 0 {
				v := max(logs[at[k]], floor)
				known += math.Exp(power * v)
				mean += float64(counts[k] / n * v)
			}
		}
		v := max(logs[at[y]], floor)
		gains[i] = float64(power*v) - math.Log(known) - math.Log(counts[y]/n)
		scores[i] = v - mean
	}
	f.trust, f.skill, f.tested = inErrors(gains), inErrors(scores), true
	f.scores = make([]float64, len(l.Y))
	for i, y := range l.Y {
		if f.scores[i] = math.NaN(); at[y] >= 0 {
			f.scores[i], scores = scores[0], scores[1:]
		}
	}
}

// Accepted returns the forests of members that the labels do not contradict, see Misleading.
func (l *Labels) Accepted(all []Forest) (good []Forest) {
	power := 1 / math.Sqrt(float64(1+len(all)))
	for i := range all {
		f := &candidate{Forest: all[i]}
		if l.test(f, power); !f.misleads(DefaultTrust) {
			good = append(good, all[i])
		}
	}
	return good
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
