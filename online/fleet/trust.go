package fleet

import (
	"math"
	"slices"

	"edge/model"
)

const (
	// MinWindow is the least number of own labels by which a contribution is tested.
	MinWindow = 50
	// MinKnown is the number of own labels from which on a class counts as known.
	MinKnown = 10

	minProb = 1e-12 // floor of a probability before its logarithm
)

// Window holds the latest labels of the receiver, and its sites without them, under the
// first of its horizons. They are all in the receiver's basis.
type Window struct {
	Classes []string  // of the C latent functions
	Known   []bool    // the class has MinKnown own labels or more
	A, B    []float64 // C×M×M lower triangles, C×M
	W, Q    []float64 // n×M, n  features
	Y       []int     // n  latent functions of the labels
	Eps     float64   // probability that a label is wrong
}

// trial tests contributions by a window. The classes that compete for a label are the
// known ones and its own: other classes of the member, which do not come here, would take
// probability from the ones that do.
type trial struct {
	*Window
	m    int
	used []bool    // latent functions that the test needs
	base []float64 // n  log p(y | A)
	post model.Gaussian
	grid model.Grid

	b, y                   []float64    // M  scratch
	mean, variance, answer []float64    // C×n, C×n, C
	one                    [2][]float64 // C  mean and variance of one label
	u                      []float64    // n×M
}

// newTrial returns nil for a window without enough labels. The error is
// model.ErrFactor.
func newTrial(w *Window, m int) (*trial, error) {
	if w == nil || len(w.Y) < MinWindow {
		return nil, nil
	}
	c, n := len(w.Classes), len(w.Y)
	floats := func(n int) []float64 { return make([]float64, n) }
	t := &trial{
		Window: w, m: m, used: slices.Clone(w.Known), base: floats(n), post: model.Gaussian{M: m}, b: floats(m), y: floats(m),
		mean: floats(c * n), variance: floats(c * n), answer: floats(c), u: floats(n * m),
	}
	for _, k := range w.Y {
		t.used[k] = true
	}
	for range c {
		t.post.Grow()
	}
	return t, t.logProbs(t.base, func(string, []float64, []float64) {})
}

// trust returns the mean gain in log probability of the window's labels by the sites
// that add adds to those of each class, in standard errors:
//
//	d_r = log p(y_r | A + E) − log p(y_r | A),     mean(d)/(sd(d)/√n)
func (t *trial) trust(add func(class string, a, b []float64)) (float64, error) {
	gain := make([]float64, len(t.Y))
	if err := t.logProbs(gain, add); err != nil {
		return 0, err
	}
	for i, v := range gain {
		gain[i] = v - t.base[i]
	}
	return inErrors(gain), nil
}

// logProbs stores log p(y_r) of the window's labels, under the sites with those that add
// adds.
func (t *trial) logProbs(dst []float64, add func(class string, a, b []float64)) error {
	if err := t.predict(add, false); err != nil {
		return err
	}
	for i, y := range t.Y {
		probs, at := t.probs(i, y)
		dst[i] = math.Log(probs[at])
	}
	return nil
}

// skill returns the mean of a score of the window's labels of known classes, in standard errors, by the
// sites alone that add adds: that of Labels.test.
func (t *trial) skill(add func(class string, a, b []float64)) (float64, error) {
	if err := t.predict(add, true); err != nil {
		return 0, err
	}
	shares, n := make([]float64, len(t.Classes)), 0.
	for _, y := range t.Y {
		if t.Known[y] {
			shares[y]++
			n++
		}
	}
	if n < MinWindow {
		return 0, nil
	}
	scores := make([]float64, 0, len(t.Y))
	for i, y := range t.Y {
		if !t.Known[y] {
			continue
		}
		probs, at := t.probs(i, y)
		score, next := math.Log(probs[at]), 0
		for k, known := range t.Known {
			if known {
				score -= float64(shares[k] / n * math.Log(probs[next]))
				next++
			}
		}
		scores = append(scores, score)
	}
	return inErrors(scores), nil
}

// predict sets the means and variances of the latent functions at the window's labels, under the sites
// that add adds, alone or to those of the window.
func (t *trial) predict(add func(class string, a, b []float64), alone bool) error {
	m, n := t.m, len(t.Y)
	for k, name := range t.Classes {
		if !t.used[k] {
			continue
		}
		u := t.post.U[k*m*m : (k+1)*m*m]
		copy(u, t.A[k*m*m:(k+1)*m*m])
		copy(t.b, t.B[k*m:(k+1)*m])
		if alone {
			clear(u)
			clear(t.b)
		}
		add(name, u, t.b)
		if err := t.post.Factor(k, t.b, t.y); err != nil {
			return err
		}
		latentTo(t.mean[k*n:], t.variance[k*n:], &t.post, k, t.W, t.Q, t.u)
	}
	return nil
}

// probs returns the probabilities of the classes that compete for label i of latent function y, each
// with that of a wrong label, and the place of y among them. They hold until the next call.
func (t *trial) probs(i, y int) (probs []float64, at int) {
	mean, variance, n := t.one[0][:0], t.one[1][:0], len(t.Y)
	for k := range t.Classes {
		if !t.Known[k] && k != y {
			continue
		}
		if k == y {
			at = len(mean)
		}
		mean, variance = append(mean, t.mean[k*n+i]), append(variance, t.variance[k*n+i])
	}
	t.one = [2][]float64{mean, variance}
	probs = t.answer[:len(mean)]
	t.grid.Probs(probs, mean, variance, model.Coarse)
	for k, p := range probs {
		probs[k] = max(float64((1-t.Eps)*p)+t.Eps/float64(len(probs)), minProb)
	}
	return probs, at
}
