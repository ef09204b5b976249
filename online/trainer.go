package online

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"edge/model"
	"edge/model/dense"
)

// Samples are a fixed set of labelled samples.
type Samples interface {
	Len() int
	Row(i int, dst []float64) // stores sample i's D raw features, finite, or NaN where one is missing
	Class(i int) int          // index of its label in the names that came with the set
}

// optimiser moves parameters along a gradient.
type optimiser interface {
	ascend(theta, grad []float64, lr float64)
}

// Trainer learns a fixed set over many passes by stochastic EP: the sites of
// all N samples are tied to one, of which the set has N copies. One minibatch
// step of n samples has
//
//	cavity  from (1 − 1/N)·A: one factorisation a class, none a sample
//	update  A ← (1 − ρn/N)·A + ρ Σ s1·w·wᵀ, b likewise, ρ the damping
//
// without the first factor in the first pass. With explicit sites every sample
// keeps its own, which its cavity leaves out, and A is their sum: added up anew
// in each step of a full batch, and before each pass of minibatches, in which
// it fades and is renewed as tied sites are. Kernel and inducing inputs take a
// step along the gradient after every update, and A is projected on the new basis.
//
// It is single-threaded, and a function of its configuration, the set and the
// number of steps: a restored trainer ends in the same numbers.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), Section 3; one site per
// sample and class, as online.
type Trainer struct {
	cfg   Config
	how   Training
	set   Samples
	names []string
	n, c  int // samples, classes
	m, d  int
	batch int // samples a step
	scale model.Scale

	trained
	bases, spares []*model.Basis
	order         []int // of this pass
	gathered      bool  // A and b are the sum of the explicit sites in these bases
	counters      Counters
	work          trainWork
}

// trained is what a step changes, besides the bases, which follow from it.
type trained struct {
	params model.Params
	adam   adam      // of the two optimisers one has content
	sign   *signRule //
	A, b   []float64 // C×M×M lower triangles, C×M: Σ of the sites, as in horizon
	s1, s2 []float64 // N×C explicit sites, nil if tied
	pass   int       // passes that are complete
	next   int       // samples of this pass that have been learnt
	sum    float64   // of their log evidence
	curve  []float64 // log evidence a sample, of each complete pass
}

// trainWork is scratch memory.
type trainWork struct {
	raw, x, xs, xx []float64   // D, n×D, n×D, n
	y              []int       // n
	kx, w, q       [][]float64 // of each basis: n×M, n×M, n
	u, vw          []float64   // C×n×M, n×M
	mean, variance []float64   // C×n
	g, coef, d     []float64   // C×n
	s1, s2         []float64   // n×C  new sites
	gauss          model.Gaussian
	bt, y1         []float64 // M
	site           site
	ev             evidence
	grad, theta0   []float64
	project        projection
}

// NewTrainer returns a trainer at its start: standardisation, inducing inputs
// and kernel from the set, no sites. It keeps set, and names, which the
// classes of set index.
func NewTrainer(cfg Config, how Training, names []string, set Samples) (*Trainer, error) {
	t, err := newTrainer(cfg, how, names, set)
	if err != nil {
		return nil, err
	}
	t.begin()
	return t, t.setBases()
}

// maxFull bounds the memory of a full batch, N·C·M numbers, and of explicit sites, N·C.
const maxFull = 1 << 27

func newTrainer(cfg Config, how Training, names []string, set Samples) (*Trainer, error) {
	if err := errors.Join(cfg.Validate(), how.Validate()); err != nil {
		return nil, fmt.Errorf("online: %w", err)
	}
	cfg.Horizons, cfg.Features = slices.Clone(cfg.Horizons), slices.Clone(cfg.Features)
	cfg.Classes.Names = slices.Clone(cfg.Classes.Names)
	t := &Trainer{
		cfg: cfg, how: how, set: set, names: slices.Clone(names),
		n: set.Len(), c: len(names), m: cfg.Inducing, d: len(cfg.Features),
	}
	switch {
	case t.n < minBuild:
		return nil, fmt.Errorf("online: train on %d samples: want %d or more: %w", t.n, minBuild, ErrConfig)
	case t.c < 2 || t.c > maxClasses:
		return nil, fmt.Errorf("online: train on %d classes: want 2 to %d: %w", t.c, maxClasses, ErrConfig)
	}
	t.batch = how.Batch
	if t.batch == 0 || t.batch > t.n {
		t.batch = t.n
	}
	if int64(t.batch)*int64(t.c)*int64(t.m) > maxFull {
		return nil, fmt.Errorf("online: train on batches of %d samples of %d classes with %d inducing points: too much memory; use smaller minibatches: %w",
			t.batch, t.c, t.m, ErrConfig)
	}
	if how.Sites == Explicit && int64(t.n)*int64(t.c) > maxFull {
		return nil, fmt.Errorf("online: train on %d samples of %d classes with explicit sites: too much memory; tie them: %w", t.n, t.c, ErrConfig)
	}
	t.allocate()
	return t, nil
}

func (t *Trainer) allocate() {
	n, m, d, c, groups := max(t.batch, scoreBatch), t.m, t.d, t.c, 1
	if t.cfg.Kernel == PerClass {
		groups = c
	}
	floats := func(n int) []float64 { return make([]float64, n) }
	t.params = model.Params{M: m, D: d, Theta: floats(groups * (m*d + d + 3))}
	t.A, t.b = floats(c*m*m), floats(c*m)
	if t.how.Sites == Explicit {
		t.s1, t.s2 = floats(t.n*c), floats(t.n*c)
	}
	if t.how.Optimizer == SignRule {
		t.sign = newSignRule(len(t.params.Theta))
	} else {
		t.adam = newAdam(len(t.params.Theta))
	}
	t.scale = model.Scale{Mu: floats(d), Sd: floats(d), Clip: t.cfg.Clip}
	w := &t.work
	*w = trainWork{
		raw: floats(d), x: floats(n * d), xs: floats(n * d), xx: floats(n), y: make([]int, n),
		u: floats(c * n * m), vw: floats(n * m), mean: floats(c * n), variance: floats(c * n),
		g: floats(c * n), coef: floats(c * n), d: floats(c * n), s1: floats(n * c), s2: floats(n * c),
		gauss: model.Gaussian{M: m}, bt: floats(m), y1: floats(m),
		grad: floats(len(t.params.Theta)), theta0: floats(len(t.params.Theta)), project: newProjection(m, d),
	}
	w.site.resize(c)
	for range groups {
		t.bases, t.spares = append(t.bases, model.NewBasis(m, d)), append(t.spares, model.NewBasis(m, d))
		w.kx, w.w, w.q = append(w.kx, floats(n*m)), append(w.w, floats(n*m)), append(w.q, floats(n))
	}
	for range c {
		w.gauss.Grow()
	}
	t.order = make([]int, t.n)
}

// startRows bounds the samples that scaling and inducing inputs start from.
const startRows = 5000

// begin finds the standardisation and the first parameters.
func (t *Trainer) begin() {
	rng := rand.New(rand.NewPCG(t.cfg.Seed, 0))
	rows := rng.Perm(t.n)
	rows = rows[:min(len(rows), max(startRows, t.m))]
	x := make([]float64, len(rows)*t.d)
	for i, r := range rows {
		t.set.Row(r, x[i*t.d:(i+1)*t.d])
	}
	robustScale(&t.scale, x, len(rows), t.d)
	if t.how.Scaling != PerFeature {
		plainScale(&t.scale, x, len(rows), t.how.Scaling == Common)
	}
	for i := range rows {
		row := x[i*t.d : (i+1)*t.d]
		t.scale.To(row, row)
	}
	x = atMean(x)
	few := min(len(rows), max(20*t.m, 1000))
	p := startParams(x[:few*t.d], few, t.d, t.m, t.cfg.LabelNoise.Start, rng)
	if t.how.Start == Subset {
		for j := range min(t.m, few) {
			for f := range t.d {
				p.Z()[j*t.d+f] = x[j*t.d+f] + 1e-3*rng.NormFloat64()
			}
		}
	}
	*p.LogNoise() = math.Log(t.how.Noise)
	for j := range p.LogEll() {
		p.LogEll()[j] += math.Log(t.how.Length)
	}
	for g := range t.params.Groups() {
		into := t.params.Group(g)
		copy(into.Theta, p.Theta)
		if t.how.Start == PerClassKMeans && t.cfg.Kernel == PerClass {
			t.centres(into.Z(), g, rows, x, rng)
		}
	}
}

// centres makes half of the inducing inputs of a class centres of its own
// samples, the others of the rest. x holds rows, standardised.
func (t *Trainer) centres(z []float64, class int, rows []int, x []float64, rng *rand.Rand) {
	var own, others []float64
	for i, r := range rows {
		if row := x[i*t.d : (i+1)*t.d]; t.set.Class(r) == class {
			own = append(own, row...)
		} else {
			others = append(others, row...)
		}
	}
	others = others[:min(len(others), max(20*t.m, 1000)*t.d)]
	half := min(t.m/2, len(own)/t.d)
	if rest := t.m - half; half == 0 || len(others)/t.d < rest {
		return
	}
	kmeans(z[:half*t.d], own, len(own)/t.d, t.d, rng)
	kmeans(z[half*t.d:], others, len(others)/t.d, t.d, rng)
	for i := range z {
		z[i] += centreNoise * rng.NormFloat64()
	}
}

// plainScale stores the mean and standard deviation of each feature, or if
// common is true the root of their mean variance for all. What is missing is
// left out.
func plainScale(s *model.Scale, x []float64, n int, common bool) {
	d := len(s.Mu)
	var total float64
	for j := range d {
		col := make([]float64, 0, n)
		for i := range n {
			if v := x[i*d+j]; v-v == 0 {
				col = append(col, v)
			}
		}
		if len(col) == 0 {
			s.Mu[j], s.Sd[j] = 0, 1
			continue
		}
		mu, sd := meanSd(col)
		s.Mu[j], s.Sd[j] = mu, sd
		if sd == 1 && slices.Min(col) == slices.Max(col) {
			sd = 0 // constant: it has no part in the mean
		}
		total += sd * sd / float64(d)
	}
	if !common {
		return
	}
	if total == 0 {
		total = 1
	}
	for j := range s.Sd {
		s.Sd[j] = math.Sqrt(total)
	}
}

func (t *Trainer) setBases() error {
	for g, b := range t.bases {
		p := t.params.Group(g)
		if _, err := b.Set(&p); err != nil {
			return fmt.Errorf("online: train: %w", err)
		}
	}
	return nil
}

// basis is the number of class k's basis.
func (t *Trainer) basis(k int) int { return min(k, len(t.bases)-1) }

// Done reports whether training has ended: all passes are complete, or the log
// evidence has stopped rising.
func (t *Trainer) Done() bool {
	if t.pass >= t.how.Passes {
		return true
	}
	if p := t.how.Patience; p > 0 && t.next == 0 && len(t.curve) > p {
		at := len(t.curve) - p
		return slices.Max(t.curve[at:]) < slices.Max(t.curve[:at])+t.how.Tolerance
	}
	return false
}

// Passes is the number of passes over the set, the part of this one included.
func (t *Trainer) Passes() float64 { return float64(t.pass) + float64(t.next)/float64(t.n) }

// Evidence is the log evidence a sample in the last complete pass: the mean log
// probability of each label under its leave-one-out cavity. NaN before there
// is one.
func (t *Trainer) Evidence() float64 {
	if len(t.curve) == 0 {
		return math.NaN()
	}
	return t.curve[len(t.curve)-1]
}

// Step learns one minibatch and returns the number of its samples. A step that
// fails leaves the trainer as it was before the sites moved; the error is
// ErrFactor or ErrNotFinite of model, and training cannot go on.
func (t *Trainer) Step() (n int, err error) {
	if t.next == 0 {
		t.shuffle()
	}
	rows := t.order[t.next:min(t.next+t.batch, t.n)]
	full := len(rows) == t.n
	if full && t.pass == 0 && t.next == 0 {
		for range t.how.Settle {
			if err := t.update(rows, false); err != nil {
				return 0, err
			}
		}
	}
	if err := t.update(rows, t.how.Rate > 0); err != nil {
		return 0, err
	}
	t.next += len(rows)
	if t.next == t.n {
		t.curve = append(t.curve, t.sum/float64(t.n))
		t.pass, t.next, t.sum = t.pass+1, 0, 0
		if full && t.Done() {
			for range t.how.Settle {
				if err := t.update(rows, false); err != nil {
					return 0, err
				}
			}
			t.sum = 0
		}
	}
	return len(rows), nil
}

// shuffle orders the samples of a pass, by the seed and the pass alone. A full
// batch needs no order.
func (t *Trainer) shuffle() {
	for i := range t.order {
		t.order[i] = i
	}
	if t.batch < t.n {
		rng := rand.New(rand.NewPCG(t.cfg.Seed, uint64(t.pass)+1))
		rng.Shuffle(t.n, func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
	}
}

// load standardises samples and computes their features.
func (t *Trainer) load(set Samples, rows []int) {
	w, n := &t.work, len(rows)
	for i, r := range rows {
		set.Row(r, w.raw)
		t.scale.To(w.x[i*t.d:(i+1)*t.d], w.raw)
		w.y[i] = set.Class(r)
	}
	for g, b := range t.bases {
		b.FeaturesTo(w.kx[g], w.w[g], w.q[g], n, w.x, w.xs, w.xx)
	}
}

// factor computes the posterior of the sites to the power f.
func (t *Trainer) factor(f float64) error {
	w, m := &t.work, t.m
	for k := range t.c {
		u := w.gauss.U[k*m*m : (k+1)*m*m]
		for i := range m {
			for j, v := range t.A[(k*m+i)*m : (k*m+i)*m+i+1] {
				u[i*m+j] = f * v
			}
		}
		for i, v := range t.b[k*m : (k+1)*m] {
			w.bt[i] = f * v
		}
		if err := w.gauss.Factor(k, w.bt, w.y1); err != nil {
			return fmt.Errorf("online: train: %w", err)
		}
	}
	return nil
}

// marginals computes mean and variance of w·e_k for the n samples loaded.
func (t *Trainer) marginals(n int) {
	w, m := &t.work, t.m
	for k := range t.c {
		wk, u := w.w[t.basis(k)], w.u[k*n*m:(k+1)*n*m]
		dense.MulTriTrans(n, m, wk, m, w.gauss.U[k*m*m:], m, u, m)
		dense.Gemv(false, n, m, 1, wk, m, w.gauss.Mean[k*m:(k+1)*m], 0, w.mean[k*n:(k+1)*n])
		for i := range n {
			row := u[i*m : (i+1)*m]
			w.variance[k*n+i] = dense.Dot(row, row)
		}
	}
}

// gather adds up the explicit sites of all samples in the present bases, and
// leaves the last batch of t.order loaded.
func (t *Trainer) gather() {
	w, c := &t.work, t.c
	clear(t.A)
	clear(t.b)
	for from := 0; from < t.n; from += t.batch {
		rows := t.order[from:min(from+t.batch, t.n)]
		t.load(t.set, rows)
		for i, r := range rows {
			copy(w.s1[i*c:(i+1)*c], t.s1[r*c:(r+1)*c])
			copy(w.s2[i*c:(i+1)*c], t.s2[r*c:(r+1)*c])
		}
		t.include(len(rows))
	}
	t.gathered = true
}

// include adds the sites in work of the n samples loaded to A and b.
func (t *Trainer) include(n int) {
	w, m, c := &t.work, t.m, t.c
	for k := range c {
		wk := w.w[t.basis(k)]
		dense.WeightedGram(n, m, w.s1[k:], c, wk, m, t.A[k*m*m:], m)
		for i := range n {
			dense.Axpy(w.s2[i*c+k], wk[i*m:(i+1)*m], t.b[k*m:(k+1)*m])
		}
	}
}

// update is one step on rows: sites, and if learn is true the parameters.
func (t *Trainer) update(rows []int, learn bool) error {
	w, n, c := &t.work, len(rows), t.c
	all, rho := float64(t.n), t.how.Damping
	explicit, summed := t.how.Sites == Explicit, t.summed()
	cavities := 1 - 1/all
	if explicit {
		cavities = 1
	}
	if summed || explicit && t.next == 0 && !t.gathered {
		t.gather()
	}
	if !summed {
		t.load(t.set, rows)
	}
	t.gathered = false
	if err := t.factor(cavities); err != nil {
		return err
	}
	t.marginals(n)
	epsGrad := t.updateSites(rows)
	if learn {
		t.gradient(n)
		if t.cfg.LabelNoise.Learn && t.bases[0].Eps > 0 {
			w.grad[len(w.grad)/len(t.bases)-1] = epsGrad
		}
	}
	if !summed {
		keep := 1 - rho*float64(n)/all
		if t.pass == 0 && n < t.n {
			keep = 1
		}
		scale(keep, t.A)
		scale(keep, t.b)
		for i := range w.s1[:n*c] {
			w.s1[i] *= rho
			w.s2[i] *= rho
		}
		t.include(n)
	}
	t.counters.Steps++
	if !learn {
		return nil
	}
	return t.move()
}

// maxOwn bounds the part of a marginal's precision that a minibatch takes for
// the sample's own site: A has lost some of it where it was projected.
const maxOwn = 0.3

// updateSites computes the new sites of rows, whose marginals are known, and
// adds to the log evidence. It returns the gradient in logit ε.
//
// Labels are believed in the first pass: as long as little is known, everything
// looks like a wrong label.
func (t *Trainer) updateSites(rows []int) (epsGrad float64) {
	w, n, c := &t.work, len(rows), t.c
	st, eps, rho := &w.site, t.bases[0].Eps, t.how.Damping
	explicit, summed := t.how.Sites == Explicit, t.summed()
	left := math.Pow(1-rho*float64(t.batch)/float64(t.n), float64(t.next/t.batch)) // in A, of the sites at the pass's start
	for i, r := range rows {
		for k := range c {
			at := k*n + i
			st.a[k], st.v[k] = w.mean[at], w.variance[at]
			if explicit {
				own := 1.0
				if !summed {
					own = min(left, maxOwn/max(t.s1[r*c+k]*w.variance[at], maxOwn))
				}
				w.s1[i*c+k], w.s2[i*c+k] = own*t.s1[r*c+k], own*t.s2[r*c+k]
				st.a[k], st.v[k], _ = cavity(w.mean[at], w.variance[at], w.s1[i*c+k], w.s2[i*c+k])
			}
			st.t[k] = w.q[t.basis(k)][i] + st.v[k]
		}
		robust, py := 0.0, 1.0
		if eps > 0 && t.pass > 0 {
			robust, py = eps, st.probability(w.y[i])
		}
		st.update(w.y[i], robust, py)
		if robust > 0 {
			right := (1-eps)*py + eps/float64(c)
			t.sum += math.Log(right)
			epsGrad += (1/float64(c) - py) / right * eps * (1 - eps)
		}
		for k := range c {
			at := k*n + i
			w.g[at], w.d[at] = st.g[k], st.d[k]
			w.coef[at] = 2 * st.d[k]
			if explicit {
				own1, own2 := w.s1[i*c+k], w.s2[i*c+k]
				e := max(1-own1*w.variance[at], minCavity)
				w.coef[at] = (st.g[k]*(own1*w.mean[at]-own2) + 2*st.d[k]) / e
				s1, s2 := &t.s1[r*c+k], &t.s2[r*c+k]
				*s1 += rho * (st.s1[k] - *s1)
				*s2 += rho * (st.s2[k] - *s2)
			}
			w.s1[i*c+k], w.s2[i*c+k] = st.s1[k], st.s2[k]
		}
		if robust == 0 {
			t.sum += st.logZ()
		}
	}
	return epsGrad
}

// gradient stores the gradient of the n samples' log evidence in work.grad, with
// the cavities held fixed, and the prior's.
func (t *Trainer) gradient(n int) {
	w, m := &t.work, t.m
	size := len(w.grad) / len(t.bases)
	for g, b := range t.bases {
		w.ev.resize(n, m, t.d)
		for k := range t.c {
			if t.basis(k) != g {
				continue
			}
			// ∂F/∂w_i = Σ_k G_ik·m_k + coef_ik·V_k·w_i: the cavity is never formed
			dense.MulTri(n, m, w.u[k*n*m:], m, w.gauss.U[k*m*m:], m, w.vw, m)
			mean := w.gauss.Mean[k*m : (k+1)*m]
			for i := range n {
				row := w.ev.w[i*m : (i+1)*m]
				dense.Axpy(w.g[k*n+i], mean, row)
				dense.Axpy(w.coef[k*n+i], w.vw[i*m:(i+1)*m], row)
				w.ev.q[i] += w.d[k*n+i]
			}
		}
		p := t.params.Group(g)
		w.ev.backprop(b, &p, n, t.knownRows(n), w.kx[g], w.w[g])
		into := w.grad[g*size : (g+1)*size]
		copy(into, w.ev.grad)
		into[size-1] = 0
		if t.how.Prior > 0 {
			pull(into[m*t.d:], p.LogEll(), t.how.Prior*float64(n)/float64(t.n))
		}
	}
}

// knownRows returns the n samples loaded for the gradient of work.ev. Those that
// lack a feature update the sites alone, as in Learner: their rows count for
// nothing.
func (t *Trainer) knownRows(n int) []float64 {
	w, d := &t.work, t.d
	x := w.x[:n*d]
	if !slices.Contains(x, model.Missing) {
		return x
	}
	x = slices.Clone(x)
	for i := range n {
		if row := x[i*d : (i+1)*d]; slices.Contains(row, model.Missing) {
			clear(row)
			clear(w.ev.w[i*t.m : (i+1)*t.m])
			w.ev.q[i] = 0
		}
	}
	return x
}

// move takes the parameters one step along the gradient and projects the sites.
func (t *Trainer) move() error {
	w, m := &t.work, t.m
	copy(w.theta0, t.params.Theta)
	var o optimiser = &t.adam
	if t.sign != nil {
		o = t.sign
	}
	o.ascend(t.params.Theta, w.grad, t.how.rate(t.Passes()))
	t.params.Clamp(t.cfg.LabelNoise.Max)
	old := model.Params{M: m, D: t.d, Theta: w.theta0}
	for g := range t.bases {
		p, before := t.params.Group(g), old.Group(g)
		if err := checkFinite(&p); err != nil {
			return err
		}
		retries, err := t.spares[g].Set(&p)
		t.counters.CholeskyRetries += uint64(retries)
		if err != nil {
			return fmt.Errorf("online: train: new basis: %w", err)
		}
		if t.summed() {
			continue // the sites are numbers in f: gather adds them up anew
		}
		w.project.between(t.bases[g], t.spares[g], before.Z())
		for k := range t.c {
			if t.basis(k) == g {
				w.project.site(t.A[k*m*m:(k+1)*m*m], t.b[k*m:(k+1)*m])
			}
		}
	}
	t.bases, t.spares = t.spares, t.bases
	return nil
}

// current makes A and b those of the present bases; within a pass of
// minibatches they are.
func (t *Trainer) current() {
	if t.how.Sites == Explicit && t.next == 0 && !t.gathered {
		t.shuffle()
		t.gather()
	}
}

// summed reports whether A and b are the sum of the explicit sites in every step.
func (t *Trainer) summed() bool { return t.how.Sites == Explicit && t.batch == t.n }

// scoreBatch is how many samples are predicted together.
const scoreBatch = 256

// Predict calls each with the class probabilities of every sample of set, in
// its order; probs is valid until each returns.
func (t *Trainer) Predict(set Samples, each func(i int, probs []float64)) error {
	t.current()
	if err := t.factor(1); err != nil {
		return err
	}
	w, c, eps := &t.work, t.c, t.bases[0].Eps
	var rows [scoreBatch]int
	probs, mean, variance := make([]float64, c), make([]float64, c), make([]float64, c)
	for from := 0; from < set.Len(); from += scoreBatch {
		n := min(scoreBatch, set.Len()-from)
		for i := range n {
			rows[i] = from + i
		}
		t.load(set, rows[:n])
		t.marginals(n)
		for i := range n {
			for k := range c {
				mean[k], variance[k] = w.mean[k*n+i], w.q[t.basis(k)][i]+w.variance[k*n+i]
			}
			w.site.grid.Probs(probs, mean, variance, model.Fine)
			for k, v := range probs {
				probs[k] = (1-eps)*v + eps/float64(c)
			}
			each(from+i, probs)
		}
	}
	return nil
}

// Score judges the trainer's predictions of a set.
func (t *Trainer) Score(set Samples) (Scores, error) {
	var judge Judge
	err := t.Predict(set, func(i int, probs []float64) { judge.Add(probs, set.Class(i)) })
	return judge.Scores(slices.Clone(t.names)), err
}

// Learner returns an online learner that carries on from here: it has learnt
// the set, its warm-up is over, its window is empty, and every horizon begins
// with all the sites, which then fade at its own rate. Weights of the horizons
// and moments of the optimiser begin anew; nothing has been judged.
func (t *Trainer) Learner() (*Learner, error) {
	l, err := NewLearner(t.cfg)
	if err != nil {
		return nil, err
	}
	for _, name := range t.names {
		if _, known := l.class[name]; known {
			continue
		}
		if len(l.names) >= t.cfg.Classes.Max {
			return nil, fmt.Errorf("online: more classes than classes.max, %d: %w", t.cfg.Classes.Max, ErrClass)
		}
		l.addClass(name)
	}
	l.allocate()
	copy(l.scale.Mu, t.scale.Mu)
	copy(l.scale.Sd, t.scale.Sd)
	l.sd0 = slices.Clone(t.scale.Sd)
	first := t.params.Group(0)
	copy(l.params.Theta, first.Theta)
	for _, name := range t.names {
		l.ensureLatent(l.class[name])
	}
	copy(l.params.Theta, t.params.Theta)
	for k := range l.names { // declared, but not in the set
		l.ensureLatent(k)
	}
	t.current()
	for h := range l.bank {
		copy(l.bank[h].A, t.A)
		copy(l.bank[h].b, t.b)
	}
	l.warm = true
	l.publishClasses()
	for i := range t.n {
		l.view.Counts[l.class[t.names[t.set.Class(i)]]]++
	}
	l.view.N = uint64(t.n)
	l.trustProcess()
	l.setWeights()
	if err := l.setBases(); err != nil {
		return nil, err
	}
	l.features()
	return l, l.refreshAll()
}

// trainMagic and trainVersion open every encoded trainer.
const (
	trainMagic   = "edgetrn\x00"
	trainVersion = 1
)

// fingerprint tells sets, configurations and ways of training apart.
func (t *Trainer) fingerprint() []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s %+v %+v %q %d\n", t.cfg.Shape(), t.cfg, t.how, t.names, t.n)
	var word [8]byte
	for i := range t.n {
		binary.LittleEndian.PutUint64(word[:], uint64(t.set.Class(i)))
		h.Write(word[:])
	}
	for i := 0; i < t.n; i += max(1, t.n/1000) {
		t.set.Row(i, t.work.raw)
		for _, v := range t.work.raw {
			binary.LittleEndian.PutUint64(word[:], math.Float64bits(v))
			h.Write(word[:])
		}
	}
	return h.Sum(nil)
}

// AppendBinary appends all that RestoreTrainer needs besides configuration and
// set. The error is always nil.
func (t *Trainer) AppendBinary(dst []byte) ([]byte, error) {
	e := &encoder{buf: append(dst, trainMagic...)}
	e.uint(trainVersion)
	e.string(string(t.fingerprint()))
	e.int(t.pass)
	e.int(t.next)
	e.float(t.sum)
	e.int(len(t.curve))
	e.floats(t.curve)
	for _, v := range t.counters.all() {
		e.uint(*v)
	}
	e.floats(t.scale.Mu)
	e.floats(t.scale.Sd)
	for _, x := range t.parts() {
		e.floats(x)
	}
	e.uint(t.adam.steps)
	return e.buf, nil
}

// parts are the numbers of a trained state.
func (t *trained) parts() [][]float64 {
	parts := [][]float64{t.params.Theta, t.adam.m, t.adam.v, t.A, t.b, t.s1, t.s2}
	if t.sign != nil {
		parts = append(parts, t.sign.rate, t.sign.sign)
	}
	return parts
}

// RestoreTrainer returns the trainer whose AppendBinary gave data: it carries on
// exactly. ErrShape if configuration, way of training or set are others,
// ErrState if data is no trainer.
func RestoreTrainer(cfg Config, how Training, names []string, set Samples, data []byte) (*Trainer, error) {
	t, err := newTrainer(cfg, how, names, set)
	if err != nil {
		return nil, err
	}
	if len(data) < len(trainMagic) || string(data[:len(trainMagic)]) != trainMagic {
		return nil, fmt.Errorf("online: training state does not begin with its mark: %w", ErrState)
	}
	d := &decoder{buf: data[len(trainMagic):]}
	if v := d.uint(); d.err == nil && v != trainVersion {
		return nil, fmt.Errorf("online: training state of version %d, this program reads version %d: %w", v, trainVersion, ErrState)
	}
	if print := d.string(); d.err == nil && print != string(t.fingerprint()) {
		return nil, fmt.Errorf("online: training began with other data, configuration or options: %w", ErrShape)
	}
	t.pass, t.next = d.int(how.Passes, "pass"), d.int(t.n-1, "sample")
	t.sum = d.float()
	t.curve = d.floats(d.int(how.Passes, "pass"), "log evidence")
	for _, v := range t.counters.all() {
		*v = d.uint()
	}
	d.fill(t.scale.Mu, "scale")
	d.fill(t.scale.Sd, "scale")
	for _, x := range t.parts() {
		d.fill(x, "numbers")
	}
	t.adam.steps = d.uint()
	if d.err == nil && len(d.buf) > 0 {
		d.fail(fmt.Sprintf("%d bytes too many", len(d.buf)))
	}
	if d.err != nil {
		return nil, d.err
	}
	if t.next > 0 {
		t.shuffle()
	}
	if err := t.setBases(); err != nil {
		return nil, fmt.Errorf("online: training state: %w: %w", ErrState, err)
	}
	return t, nil
}
