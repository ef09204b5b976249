package fleet

import (
	"slices"

	"edge/model"
	"edge/model/dense"
)

// MinPeers is the least number of members that can be compared with each other.
const MinPeers = 3

// Rules of the test of members by each other, for a receiver without labels of its own.
const (
	maxProbes = 128     // points at which they are compared
	minProbes = 10      // points at which a member is compared with others
	certain   = 0.5     // share of the prior's variance, up to which a member knows a point
	minAgreed = 0.2     // least median agreement: below it the task itself is not learnt
	disagreed = 1. / 3. // share of the median agreement, below which a member is refused
)

// crossCheck refuses the open members whose answers contradict those of the others, and
// returns the rest. The members answer at inducing inputs of each other, each by its own
// contribution alone; of each the agreement with the others is
//
//	κ = (a − e)/(1 − e)
//
// (Cohen's kappa), where a is the share of points at which it gives the class with the
// largest mean probability by the others, and e what two that answer independently, with
// the same frequencies of the classes, would have. Points count which it and one of the
// others know, for the others that know the class which it gives: where that one has never been
// seen, another answer contradicts nothing. The contribution of the receiver itself, if it has one, is one of the others.
func (r *Receiver) crossCheck(m *Merge, s *Set, open []int) (left []int) {
	var peers []*Contribution
	for _, i := range open {
		peers = append(peers, s.members[i])
	}
	if r.Own != nil {
		peers = append(peers, r.Own)
	}
	if len(peers) < MinPeers {
		return open
	}
	classes := classesOf(peers)
	probes := (maxProbes + len(peers) - 1) / len(peers) // of each
	answers := make([]answer, len(peers))
	for i, c := range peers {
		first := r.shared(c)
		if first < 0 || !answers[i].give(c, r.Units, slices.Index(c.Horizons, r.Horizons[first]), peers, probes, classes) {
			answers[i].known = nil
		}
	}
	agreed := make([]float64, len(peers))
	var all []float64
	for i := range peers {
		var tested bool
		if agreed[i], tested = agreement(answers, i, len(classes)); tested {
			all = append(all, agreed[i])
		} else {
			agreed[i] = 1
		}
	}
	slices.Sort(all)
	if len(all) < MinPeers || all[(len(all)-1)/2] < minAgreed {
		return open
	}
	for at, i := range open {
		if agreed[at] < disagreed*all[(len(all)-1)/2] {
			m.Members[i].Refused = Contradicted
			continue
		}
		left = append(left, i)
	}
	return left
}

// classesOf returns all classes of several contributions, in order.
func classesOf(all []*Contribution) (names []string) {
	for _, c := range all {
		names = append(names, c.Classes...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// answer holds the answers of one member at the probes of all.
type answer struct {
	known []bool    // n  the member is certain there; nil: it gives no answer
	knows []bool    // C  it has labels of the class
	probs []float64 // n×C  of all classes, 0 for those that it does not know
}

// give computes the answers of c under one of its horizons. It reports false if its
// numbers do not factor.
func (a *answer) give(c *Contribution, u Units, horizon int, peers []*Contribution, probes int, classes []string) bool {
	m, d := c.Params.M, c.Params.D
	var x []float64 // n×D  the probes in the units of c
	for _, p := range peers {
		z := make([]float64, p.Params.M*d)
		p.Basis.convert(z, &c.Scale, u)
		for i := range min(probes, p.Params.M) { // evenly among them
			row := i * p.Params.M / min(probes, p.Params.M)
			x = append(x, z[row*d:(row+1)*d]...)
		}
	}
	n := len(x) / d
	basis := model.NewBasis(m, d)
	if _, err := basis.Set(&c.Params); err != nil {
		return false
	}
	w, q := make([]float64, n*m), make([]float64, n)
	basis.FeaturesTo(make([]float64, n*m), w, q, n, x, make([]float64, n*d), make([]float64, n))
	mean, variance, ok := c.latents(horizon, w, q)
	if !ok {
		return false
	}
	a.known, a.knows, a.probs = make([]bool, n), make([]bool, len(classes)), make([]float64, n*len(classes))
	var grid model.Grid
	count := len(c.Classes)
	probs, means, variances := make([]float64, count), make([]float64, count), make([]float64, count)
	for i := range n {
		var sum float64
		for k := range count {
			means[k], variances[k] = mean[k*n+i], variance[k*n+i]
			sum += variances[k]
		}
		prior := q[i] + dense.Dot(w[i*m:(i+1)*m], w[i*m:(i+1)*m])
		a.known[i] = sum <= certain*prior*float64(count)
		grid.Probs(probs, means, variances, model.Fine)
		for k, name := range c.Classes {
			if at, _ := slices.BinarySearch(classes, name); c.Counts[k] >= MinKnown {
				a.knows[at], a.probs[i*len(classes)+at] = true, probs[k]
			}
		}
	}
	return true
}

// latents returns the means and variances, C×n, of the latent functions of c under one of
// its horizons at n points.
//
//	w  n×M  features in its basis
//	q  n    variances that these leave
func (c *Contribution) latents(horizon int, w, q []float64) (mean, variance []float64, ok bool) {
	m, n, count := c.Params.M, len(q), len(c.Classes)
	post := model.Gaussian{M: m}
	mean, variance = make([]float64, count*n), make([]float64, count*n)
	r, t, b, y, u := make([]float64, m*m), make([]float64, m*m), make([]float64, m), make([]float64, m), make([]float64, n*m)
	for k := range count {
		post.Grow()
		precision := post.U[k*m*m : (k+1)*m*m]
		clear(r)
		c.Factor(horizon, k, r, b)
		transpose(t, r, m, m)
		dense.SymmetricProduct(true, false, m, m, t, m, t, m, precision, m)
		if post.Factor(k, b, y) != nil {
			return nil, nil, false
		}
		latentTo(mean[k*n:], variance[k*n:], &post, k, w, q, u)
	}
	return mean, variance, true
}

// latentTo stores the means and variances, n, of latent function k of a posterior at n points.
//
//	w  n×M  features in its basis
//	q  n    variances that these leave
//	u  n×M  scratch
func latentTo(mean, variance []float64, post *model.Gaussian, k int, w, q, u []float64) {
	m, n := post.M, len(q)
	dense.MulTriTrans(n, m, w, m, post.U[k*m*m:(k+1)*m*m], m, u, m)
	for i := range n {
		row := u[i*m : (i+1)*m]
		mean[i] = dense.Dot(post.Mean[k*m:(k+1)*m], w[i*m:(i+1)*m])
		variance[i] = q[i] + dense.Dot(row, row)
	}
}

// agreement returns κ of member j with the others. It reports false if too few points are
// known, or if all have the same class.
func agreement(answers []answer, j, classes int) (kappa float64, tested bool) {
	own, n, equal := answers[j], 0, 0
	mine, theirs := make([]int, classes), make([]int, classes) // how often each gives a class
	votes := make([]float64, classes)
	for i, known := range own.known {
		if !known {
			continue
		}
		clear(votes)
		voters := 0
		answer := own.probs[i*classes : (i+1)*classes]
		got := largest(answer)
		for at, o := range answers {
			if at == j || o.known == nil || !o.known[i] || !o.knows[got] {
				continue
			}
			dense.Axpy(1, o.probs[i*classes:(i+1)*classes], votes)
			voters++
		}
		want := largest(votes)
		if voters == 0 || !own.knows[want] {
			continue
		}
		n++
		mine[got]++
		theirs[want]++
		if got == want {
			equal++
		}
	}
	if n < minProbes {
		return 0, false
	}
	var chance float64
	for k := range classes {
		chance += float64(float64(mine[k]) / float64(n) * float64(theirs[k]) / float64(n))
	}
	if chance > 1-1e-9 {
		return 0, false
	}
	return (float64(equal)/float64(n) - chance) / (1 - chance), true
}

// largest returns the place of the largest number, of equals the first.
func largest(x []float64) (at int) {
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}
