package train

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"edge/model"
	"edge/online"
	"edge/online/active"
	"edge/online/sep"
)

// Samples are a fixed set of labelled samples.
type Samples interface {
	Len() int
	Row(i int, dst []float64) // stores sample i's D raw features, finite, or NaN where one is missing
	Class(i int) int          // index of its label in the names of the classes
}

// optimiser moves parameters along a gradient.
type optimiser interface {
	Ascend(theta, grad []float64, lr float64)
}

// Trainer learns a fixed set over many passes by stochastic EP: the sites of
// all N samples are tied to one, of which the set has N copies. One minibatch
// step of n samples has
//
//	cavity  from (1 − 1/N)·A: one factorisation a class, none a sample
//	update  A ← (1 − ρn/N)·A + ρ Σ s1·w·wᵀ, b likewise, ρ the damping
//
// without the first factor in the first pass. With explicit sites every sample
// keeps its own, which its cavity leaves out, and A is their sum: recomputed in
// each step of a full batch, and before each pass of minibatches, in which it fades
// and is renewed as tied sites are. Kernel and inducing inputs take a
// step along the gradient after every update, and A is projected on the new basis.
//
// It is single-threaded, and a function of its configuration, the set and the
// number of steps: a restored trainer ends in the same numbers.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), Section 3; one site per
// sample and class, as in package sep.
type Trainer struct {
	cfg   online.Config
	how   Config
	set   Samples
	names []string
	n, c  int // samples, classes
	m, d  int
	batch int // samples a step
	scale model.Scale

	damping float64 // of the sites

	trained
	bases, spares []*model.Basis
	order         []int // of this pass
	loaded        int   // samples in work
	gathered      bool  // A and b are the sum of the explicit sites in these bases
	counts        sep.Counts
	work          work
}

// trained is the state that a step changes; the bases are derived from it.
type trained struct {
	params model.Params
	adam   sep.Adam  // one of the two optimisers is used
	sign   *signRule //
	A, b   []float64 // C×M×M lower triangles, C×M: Σ of the sites, as in sep
	s1, s2 []float64 // N×C explicit sites, nil if tied
	p1, p2 []float64 // N×C the label's side of each pair, nil unless there is a site for each; s1 and s2 of the label are their sums
	pass   int       // passes that are complete
	next   int       // samples of this pass that have been learnt
	sum    float64   // of their log evidence
	curve  []float64 // log evidence a sample, of each complete pass
}

// work is scratch memory.
type work struct {
	batch batch
	sites sites
	grad  gradient

	kx, w, q       [][]float64 // of each basis: n×M, n×M, n
	u              []float64   // C×n×M
	mean, variance []float64   // C×n
	gauss          model.Gaussian
	bt, y          []float64 // M
	project        sep.Projection
}

// batch holds the samples of a step.
type batch struct {
	raw, x, xs, xx []float64 // D, n×D, n×D, n
	y              []int     // n
}

// sites holds the new sites of a step.
type sites struct {
	s1, s2 []float64 // n×C; before the update those that the cavities lack
	site   sep.Site
	pair   sep.PairSite
	win    *model.Win
}

// gradient holds the derivatives of a step's samples, and the gradient.
type gradient struct {
	g, coef, d    []float64 // C×n
	vw            []float64 // n×M
	ev            sep.Evidence
	theta, theta0 []float64 // as model.Params.Theta; parameters before the step
}

// New returns a trainer at its start: standardisation, inducing inputs and kernel from
// the set, without sites. It keeps set; names are the C classes that set indexes. Errors:
// ErrConfig for settings out of range or a set that does not fit them, ErrFactor of model.
func New(cfg online.Config, how Config, names []string, set Samples) (*Trainer, error) {
	t, err := allocated(cfg, how, names, set)
	if err != nil {
		return nil, err
	}
	t.begin()
	return t, t.setBases()
}

// maxFull bounds the memory of a full batch, N·C·M numbers, and of explicit sites, N·C.
const maxFull = 1 << 27

// allocated returns a trainer with its memory, without a start.
func allocated(cfg online.Config, how Config, names []string, set Samples) (*Trainer, error) {
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
	case t.n < active.FirstLabels:
		return nil, fmt.Errorf("online: train on %d samples: want %d or more: %w", t.n, active.FirstLabels, online.ErrConfig)
	case t.c < 2 || t.c > model.MaxClasses:
		return nil, fmt.Errorf("online: train on %d classes: want 2 to %d: %w", t.c, model.MaxClasses, online.ErrConfig)
	}
	t.batch = how.Batch
	if t.batch == 0 || t.batch > t.n {
		t.batch = t.n
	}
	switch {
	case how.Damping > 0:
		t.damping = how.Damping
	case t.batch == t.n:
		t.damping = 0.5
	default:
		t.damping = 1
	}
	if int64(t.batch)*int64(t.c)*int64(t.m) > maxFull {
		return nil, fmt.Errorf("online: train on batches of %d samples of %d classes with %d inducing points: too much memory; use smaller minibatches: %w",
			t.batch, t.c, t.m, online.ErrConfig)
	}
	if t.explicit() && int64(t.n)*int64(t.c) > maxFull {
		return nil, fmt.Errorf("online: train on %d samples of %d classes with a site for each: too much memory; tie them: %w", t.n, t.c, online.ErrConfig)
	}
	t.allocate()
	return t, nil
}

func (t *Trainer) allocate() {
	n, m, d, c, groups := max(t.batch, scoreBatch), t.m, t.d, t.c, 1
	if t.cfg.Kernel == online.PerClass {
		groups = c
	}
	floats := func(n int) []float64 { return make([]float64, n) }
	t.params = model.Params{M: m, D: d, Theta: floats(groups * (m*d + d + 3))}
	t.A, t.b = floats(c*m*m), floats(c*m)
	if t.explicit() {
		t.s1, t.s2 = floats(t.n*c), floats(t.n*c)
	}
	if t.how.Sites == Pairs {
		t.p1, t.p2 = floats(t.n*c), floats(t.n*c)
	}
	if t.how.Optimizer == SignRule {
		t.sign = newSignRule(len(t.params.Theta))
	} else {
		t.adam = sep.NewAdam(len(t.params.Theta))
	}
	t.scale = model.Scale{Mu: floats(d), Sd: floats(d), Clip: t.cfg.Clip}
	w := &t.work
	size := len(t.params.Theta)
	*w = work{
		batch: batch{raw: floats(d), x: floats(n * d), xs: floats(n * d), xx: floats(n), y: make([]int, n)},
		sites: sites{s1: floats(n * c), s2: floats(n * c)},
		grad:  gradient{g: floats(c * n), coef: floats(c * n), d: floats(c * n), vw: floats(n * m), theta: floats(size), theta0: floats(size)},
		u:     floats(c * n * m), mean: floats(c * n), variance: floats(c * n),
		gauss: model.Gaussian{M: m}, bt: floats(m), y: floats(m), project: sep.NewProjection(m, d, 1, nil),
	}
	w.sites.site.Resize(c)
	w.sites.pair.Resize(c)
	w.sites.win = model.NewWin(winNodes)
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

// begin computes the standardisation and the first parameters.
func (t *Trainer) begin() {
	rng := rand.New(rand.NewPCG(t.cfg.Seed, 0))
	rows := rng.Perm(t.n)
	rows = rows[:min(len(rows), max(startRows, t.m))]
	x := make([]float64, len(rows)*t.d)
	for i, r := range rows {
		t.set.Row(r, x[i*t.d:(i+1)*t.d])
	}
	sep.RobustScale(&t.scale, x, len(rows), t.d)
	if t.how.Scaling != PerFeature {
		sep.PlainScale(&t.scale, x, len(rows), t.how.Scaling == Common)
	}
	for i := range rows {
		row := x[i*t.d : (i+1)*t.d]
		t.scale.To(row, row)
	}
	x = sep.AtMean(x)
	few := min(len(rows), max(20*t.m, 1000))
	p := sep.StartParams(x[:few*t.d], few, t.d, t.m, t.cfg.LabelNoise.Start, rng)
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
		if t.how.Start == PerClassKMeans && t.cfg.Kernel == online.PerClass {
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
	sep.KMeans(z[:half*t.d], own, len(own)/t.d, t.d, rng)
	sep.KMeans(z[half*t.d:], others, len(others)/t.d, t.d, rng)
	sep.Scatter(z, rng)
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
// probability of each label under its leave-one-out cavity. NaN before the end of the
// first pass.
func (t *Trainer) Evidence() float64 {
	if len(t.curve) == 0 {
		return math.NaN()
	}
	return t.curve[len(t.curve)-1]
}

// Step learns one minibatch and returns the number of its samples. A step that
// fails leaves the trainer as it was before the sites moved; the error is
// ErrFactor or ErrNotFinite of model, and training cannot continue.
func (t *Trainer) Step() (n int, err error) {
	if t.next == 0 {
		t.shuffle()
	}
	rows := t.order[t.next:min(t.next+t.batch, t.n)]
	full := len(rows) == t.n
	if full && t.pass == 0 {
		if err := t.settle(rows); err != nil {
			return 0, err
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
			if err := t.settle(rows); err != nil {
				return 0, err
			}
		}
	}
	return len(rows), nil
}

// settle updates the sites of all samples alone, without counting their log evidence.
func (t *Trainer) settle(rows []int) error {
	for range t.how.Settle {
		if err := t.update(rows, false); err != nil {
			return err
		}
	}
	t.sum = 0
	return nil
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

// current computes A and b in the present bases; within a pass of minibatches they
// are up to date.
func (t *Trainer) current() {
	if t.explicit() && t.next == 0 && !t.gathered {
		t.shuffle()
		t.gather()
	}
}
