package online

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"edge/model"
)

// Errors that a caller may branch on.
var (
	// ErrShape: a state was made under a configuration of another shape.
	ErrShape = errors.New("state has another shape than the configuration")
	// ErrState: bytes are not a learner's state, or are damaged.
	ErrState = errors.New("not a valid learner state")
	// ErrClass: a label is not one of the declared classes, or one too many.
	ErrClass = errors.New("label is not accepted")
	// ErrWeight: a sample's weight is not a number from 0 to MaxWeight.
	ErrWeight = errors.New("weight is out of range")
	// ErrKind: an event of a kind that this learner does not know.
	ErrKind = errors.New("kind of event is not known")
)

const (
	minBuild    = 8    // observations before the first model is built
	buildGrowth = 1.5  // the buffer grows by this before the model is rebuilt
	fewGrowth   = 1.25 // the same where labels are asked for
	mixMemory   = 500  // observations that the weights of horizons and members remember
	minMixProb  = 1e-12
	maxStep     = 16   // samples of a step; a larger minibatch makes several
	replay      = 4    // recent samples that make a step; fewer are filtered until there are so many
	fullRate    = 32   // samples of a step at which the learning rate is the configured one
	noiseRate   = 2    // times the learning rate: of the logit of the label noise
	passRate    = 3    // of the learning rate in all passes of a build but the first
	passPrior   = 10   // precision of the prior on log ℓ in these passes
	minWeight   = 1e-3 // of a horizon, below which its gradient is not computed
)

// horizon is one posterior of the bank: sites that forget at their own rate.
// The capital A is a C×M×M stack of lower triangles in whitened coordinates.
type horizon struct {
	length float64   // in observations, may be +Inf
	A, b   []float64 // C×M×M, C×M  absorbed sites: Σ s1·w·wᵀ and Σ s2·w
	s1, s2 []float64 // C×capacity  explicit sites of the window
}

// state is what one step may change, and what a refused step gives back.
type state struct {
	params model.Params
	opt    adam
	scale  model.Scale
	logw   []float64 // H  log weights of the horizons, the largest 0
	bank   []horizon
	winX   []float64 // capacity×D  standardised, oldest first
	winY   []int     // latent function of each window point's label
	winW   []float64 // its weight

	filtered int // latest window points that no sweep has seen yet
}

// Counters count what a learner did since it began.
type Counters struct {
	Steps, StepsRefused, LabelsRefused, CholeskyRetries uint64

	CorrectionsExact  uint64 // the wrong label was taken out of what was learnt
	CorrectionsAdded  uint64 // the right label was taught beside the wrong one
	CandidatesDropped uint64 // labels that were forgotten before they were confirmed
}

// Learner holds a model's whole state and learns. It is single-threaded.
type Learner struct {
	cfg      Config
	d, m     int
	room     int // samples that a minibatch may hold
	recent   int // samples that a step may take the gradient of
	capacity int // window points that a step may hold

	names  []string       // every class so far; those of the last snapshot are view.Names
	class  map[string]int // index in names
	latent []int          // class → latent function, −1 if it has none yet
	view   model.Posterior
	state
	sd0 []float64 // standard deviations at the end of the warm-up

	bufX      []float64 // warm-up buffer, raw; nil when the warm-up is over
	bufY      []int     // classes
	bufW      []float64 // weights
	lastBuild int       // observations in the buffer when the model was last built
	again     bool      // a build goes over the buffer once more
	alive     func()    // called between the minibatches of a build; nil: nobody wants to know
	warm      bool      // the warm-up is over

	pendX  []float64 // n×D  raw samples of the minibatch that is filling
	pendY  []int     // n    classes
	pendW  []float64 // n    weights
	pendLL []float64 // n×H  log p_h(label) when the sample was judged

	poolLogw []float64 // log weights of the pool's members, the largest 0
	pendPool []float64 // Σ log p_m(label) of the minibatch that is filling
	ordered  blend     // of model.Stack
	plain    blend

	regression regression

	judge     prequential
	conformal conformal
	watch     watch
	opinion   opinion // scratch
	roster    roster
	counters  Counters

	bases     []*model.Basis // one that all latent functions share, or one each
	shared    bool           // a snapshot has bases and view.Bank too
	noiseRate float64        // the constant; that of version 1 in the test of its states

	// What only a step needs, see ready.
	backup backup
	spares []*model.Basis
	work   work

	ws    model.Workspace
	probs []float64
}

// work is the scratch memory of a step.
type work struct {
	xs, xx         []float64   // capacity×D scaled; norms
	kx, w, q       [][]float64 // of each basis: capacity×M, capacity×M, capacity
	current        bool        // they are those of the window
	u              []float64   // max(capacity, C)×M
	mean, variance []float64   // C×capacity
	fresh          []float64   // C×n×M  U_k·w of the samples of the gradient in the last sweep
	g, coef        []float64   // C×n
	bt, y          []float64   // M
	theta0         []float64   // parameters before the gradient step
	project        projection
	labels         []int     // latent functions of the minibatch
	weights        []float64 // of its samples
	batchX         []float64 // n×D standardised
	site           site
	ev             []evidence // of each basis
	grad           []float64  // as model.Params.Theta
	epsGrad        float64
	resp           []float64 // n  responsibilities of the last sweep of the last horizon
	trace          bool      // whether the objective is computed: nothing but tests needs it
	objective      float64
}

// NewLearner returns a learner that knows nothing yet. It validates and copies cfg.
func NewLearner(cfg Config) (*Learner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("online: %w", err)
	}
	cfg.Horizons = slices.Clone(cfg.Horizons)
	cfg.Classes.Names = slices.Clone(cfg.Classes.Names)
	cfg.Features = slices.Clone(cfg.Features)
	l := &Learner{cfg: cfg, d: len(cfg.Features), m: cfg.Inducing, class: map[string]int{}, roster: roster{gone: map[string]bool{}}, noiseRate: noiseRate}
	l.setRoom(cfg.Batch.MaxSize, 0)
	for _, name := range cfg.Classes.Names {
		l.addClass(name)
	}
	l.view.Scale = model.Scale{Mu: make([]float64, l.d), Sd: slices.Repeat([]float64{1}, l.d), Clip: cfg.Clip}
	l.conformal, l.watch = newConformal(cfg.Conformal.Coverage), newWatch(&cfg.Drift)
	l.startPool()
	l.startStack()
	l.publishClasses()
	return l, nil
}

// setRoom makes room for minibatches of so many samples and for a window that
// may hold so many already.
func (l *Learner) setRoom(samples, window int) {
	l.room = samples
	l.recent = replay + samples
	l.capacity = max(l.cfg.Window, l.recent, window) + l.recent
}

// Config returns the configuration. Read only.
func (l *Learner) Config() Config { return l.cfg }

// Counters returns what the learner did since it began.
func (l *Learner) Counters() Counters { return l.counters }

// WarmedUp reports whether the raw warm-up buffer has been dropped.
func (l *Learner) WarmedUp() bool { return l.warm }

// Pending is the number of samples in the minibatch that is filling.
func (l *Learner) Pending() int { return len(l.pendY) }

func (l *Learner) addClass(name string) int {
	k := len(l.names)
	l.class[name] = k
	l.names = append(l.names, name)
	l.latent = append(l.latent, -1)
	return k
}

// publishClasses lets predictions know the classes that were added since.
func (l *Learner) publishClasses() {
	old := len(l.view.Names)
	l.view.Names = l.names[:len(l.names):len(l.names)]
	for len(l.view.Counts) < len(l.names) {
		l.view.Counts = append(l.view.Counts, 0)
	}
	l.growChain(old)
	l.growRecent(old)
	l.growRegression()
}

// Outcome says what an event did.
type Outcome struct {
	Closed     bool   // the minibatch was closed, by count or by a Boundary
	Stepped    bool   // and learnt: Posterior is new
	Built      bool   // the model was (re)built from the warm-up buffer
	ClassAdded string // a class seen for the first time
	Change     string // what an event that is no sample did: a Notice's kind; "" for nothing
	Detail     string // and its detail
	Since      uint64 // for NoticeDrift, the labels since the change, as far as is known
	Refused    error  // the step, or the event, was refused; the state is as before
}

// Add learns from one event. A labelled sample is judged first, by the
// prediction under the state before its minibatch (or by ev.Probs, if its label
// came late), then waits until its minibatch is full. Nothing of ev is kept.
//
// A sample whose label came late is judged by ev.Probs, and the pool's members
// by what they would have said then of the order of the labels. A new label is a
// class once classes.confirm samples were given it; they are learnt then.
//
// Refused is ErrDimension, ErrNotFinite, ErrClass, ErrKind, ErrShape or ErrState
// for an event that cannot be learnt, ErrFactor or ErrNotFinite for a step that was rolled back.
func (l *Learner) Add(ev *Event) (out Outcome) {
	switch ev.Kind {
	case Observe:
		l.observe(ev, &out)
	case Boundary:
		l.flush(&out)
	case ClassAdd, ClassRemove, ClassRename:
		l.changeClasses(ev, &out)
	case Correct:
		l.correct(ev, &out)
	case Reset, Replace:
		l.replace(ev, &out)
	default:
		out.Refused = fmt.Errorf("online: event of kind %d: %w", ev.Kind, ErrKind)
	}
	return out
}

// observe teaches a labelled sample.
func (l *Learner) observe(ev *Event, out *Outcome) {
	if !(ev.Weight >= 0 && ev.Weight <= MaxWeight) {
		out.Refused = fmt.Errorf("online: sample of weight %g: want 0 to %d: %w", ev.Weight, MaxWeight, ErrWeight)
		return
	}
	if err := l.view.CheckInput(ev.X); err != nil {
		out.Refused = err
		return
	}
	if k, known := l.class[ev.Label]; known {
		l.teach(ev, k, out)
		return
	}
	if err := l.refusal(ev.Label); err != nil {
		out.Refused = err
		return
	}
	if samples := l.nominate(ev); len(samples) > 0 {
		k := l.addClass(ev.Label)
		out.ClassAdded = ev.Label
		for i := range samples {
			l.teach(&samples[i], k, out)
		}
	}
}

// refusal returns why a label that is no class may not become one, and counts it.
func (l *Learner) refusal(label string) error {
	err := l.accept(label)
	if err == nil && !l.cfg.Classes.Open {
		err = fmt.Errorf("online: label %.40q is not one of the classes, which are closed: %w", label, ErrClass)
	}
	if err != nil {
		l.counters.LabelsRefused++
	}
	return err
}

// teach judges a sample of class k and lets it wait for its minibatch to fill.
func (l *Learner) teach(ev *Event, k int, out *Outcome) {
	last, ahead := l.view.Pool.Last, len(l.pendY)+1
	if ev.Probs != nil { // it was predicted long ago
		last, ahead = l.roster.today(ev.Last, ev.Epoch), ev.Ahead
	}
	var novelty float64
	l.probs, novelty, _ = l.view.PredictAfterTo(l.probs, ev.X, last, ahead, &l.ws)
	if ev.Probs == nil {
		l.assess(ev.X, l.probs, novelty, nil, k, out)
	} else if probs := l.roster.translate(ev.Probs, ev.Epoch); probs != nil {
		l.assess(ev.X, probs, novelty, &ev.Said, k, out)
	}
	weight := l.weightOf(ev, k)
	l.hold(ev.X, k, weight)
	c, at := len(l.view.Latent), l.latent[k]
	for h := range l.cfg.Horizons {
		var ll float64 // a class without a latent function tells the horizons nothing
		if l.view.Built() && at >= 0 {
			ll = weight * math.Log(max(l.ws.PerHorizon()[h*c+at], minMixProb))
		}
		l.pendLL = append(l.pendLL, ll)
	}
	if l.view.Built() && at >= 0 {
		l.observePool(k, weight)
		l.observeStack(k, weight)
	}
	if len(l.pendY) >= l.cfg.Batch.MaxSize {
		l.closeMinibatch(out, true)
	}
}

// hold puts a sample in the minibatch that is filling.
func (l *Learner) hold(x []float64, k int, weight float64) {
	for _, v := range x {
		l.pendX = append(l.pendX, bounded(v))
	}
	l.pendY, l.pendW = append(l.pendY, k), append(l.pendW, weight)
}

// bounded returns a raw feature as it is learnt.
func bounded(v float64) float64 {
	if v != v {
		return model.Missing
	}
	return min(max(v, -model.MaxFeature), model.MaxFeature)
}

// flush closes the minibatch that is filling, if there is one.
func (l *Learner) flush(out *Outcome) {
	if len(l.pendY) > 0 {
		l.closeMinibatch(out, true)
	}
}

// closeMinibatch learns the samples that have been judged; inOrder says that
// their labels follow each other.
func (l *Learner) closeMinibatch(out *Outcome, inOrder bool) {
	n := len(l.pendY)
	out.Closed = true
	if !l.warm {
		l.bufX, l.bufY, l.bufW = append(l.bufX, l.pendX...), append(l.bufY, l.pendY...), append(l.bufW, l.pendW...)
	}
	var err error
	switch {
	case l.buildDue():
		out.Built = true
		if err = l.build(); !l.view.Built() {
			l.keepLatest(l.cfg.warmup())
		}
	case l.view.Built():
		err = l.learn(l.pendX, l.pendY, l.pendW, l.warm)
	default: // the mean of what was seen, for whoever fills in what is missing
		robustScale(&l.view.Scale, l.bufX, len(l.bufY), l.d)
	}
	if err != nil {
		l.counters.StepsRefused++
		out.Refused = err
	} else {
		out.Stepped = true
		if l.watch.reseed {
			l.watch.reseed = false
			out.Refused = l.reseedNow()
		}
	}
	l.publishClasses()
	l.weighPool(n)
	l.learnStack(n)
	switch {
	case err != nil || !l.view.Built():
	case out.Built:
		l.startRegression()
		l.learnRegression(l.bufX, l.bufY, l.bufW)
	default:
		l.learnRegression(l.pendX, l.pendY, l.pendW)
	}
	for _, k := range l.pendY {
		l.view.Counts[k]++
		if inOrder {
			l.extendChain(k)
			l.noteRecent(k)
		}
	}
	l.view.N += uint64(n)
	l.pendX, l.pendY, l.pendW, l.pendLL = l.pendX[:0], l.pendY[:0], l.pendW[:0], l.pendLL[:0]
	if !l.warm && len(l.bufY) >= l.cfg.warmup() && l.view.Built() {
		l.warm, l.bufX, l.bufY, l.bufW = true, nil, nil, nil
		l.sd0 = slices.Clone(l.view.Scale.Sd)
	}
}

// weighHorizons updates the log weights by how well each horizon predicted the
// minibatch.
func (l *Learner) weighHorizons(n int) {
	var sum [maxHorizons]float64
	for h := range l.logw {
		for i := range n {
			sum[h] += l.pendLL[i*len(l.logw)+h]
		}
	}
	weigh(l.logw, sum[:], n, mixMemory)
	l.setWeights()
}

// weigh updates the log weights of a mixture by evidence, the sum of each
// member's log probabilities of n labels, and makes the largest 0: a Bayesian
// mixture that forgets, in memory observations. The n samples were predicted without news of each
// other, so that the errors of neighbours are one error: they count as √n.
func weigh(logw, evidence []float64, n int, memory float64) {
	top, one := math.Inf(-1), 1/math.Sqrt(float64(n))
	for h := range logw {
		logw[h] = logw[h]*max(0, 1-float64(n)/memory) + one*evidence[h]
		top = max(top, logw[h])
	}
	for h := range logw {
		logw[h] -= top
	}
}

// setWeights puts softmax(logw) into the view.
func (l *Learner) setWeights() {
	var sum float64
	for h, v := range l.logw {
		l.view.Weights[h] = math.Exp(v)
		sum += l.view.Weights[h]
	}
	for h := range l.view.Weights {
		l.view.Weights[h] /= sum
	}
}

// buildDue reports whether the model should be built from the warm-up buffer:
// with eight observations of two classes, whenever the buffer has grown by half,
// or a quarter where labels are asked for, since, and for the last time when it is full. A full buffer of one class is
// enough where others are declared: that is evidence against them. Where none
// are, the buffer keeps its latest observations and waits.
func (l *Learner) buildDue() bool {
	if l.warm {
		return false
	}
	n, full := len(l.bufY), l.cfg.warmup()
	if n < minBuild {
		return false
	}
	if slices.IndexFunc(l.bufY, func(k int) bool { return k != l.bufY[0] }) < 0 {
		if len(l.names) > 1 {
			return n >= full
		}
		l.keepLatest(full)
		return false
	}
	growth := buildGrowth
	if l.cfg.Passes > 0 {
		growth = fewGrowth
	}
	return n >= full || float64(n) >= growth*float64(l.lastBuild)
}

// keepLatest leaves the n latest observations in the warm-up buffer.
func (l *Learner) keepLatest(n int) {
	if extra := len(l.bufY) - n; extra > 0 {
		l.bufX = slices.Delete(l.bufX, 0, extra*l.d)
		l.bufY, l.bufW = slices.Delete(l.bufY, 0, extra), slices.Delete(l.bufW, 0, extra)
	}
}

// build makes the model anew from the whole warm-up buffer and learns the
// buffer in order, as often as Config.Passes says where there are enough of them: every
// pass begins without what the one before has learnt, under its parameters, and
// all but the first move the kernel alone.
func (l *Learner) build() error {
	n := len(l.bufY)
	l.lastBuild = n
	if err := l.begin(n); err != nil {
		l.view.Bases = nil // class frequencies answer until the next attempt
		return err
	}
	size := l.cfg.Batch.MaxSize
	passes := 1
	if n >= l.m {
		passes = max(l.cfg.Passes, 1)
	}
	defer func() { l.again = false }()
	for pass := range passes {
		if l.again = pass > 0; l.again {
			if err := l.unlearn(); err != nil {
				return err
			}
		}
		for i := 0; i < n; i += size {
			if l.alive != nil {
				l.alive()
			}
			end := min(i+size, n)
			if err := l.learn(l.bufX[i*l.d:end*l.d], l.bufY[i:end], l.bufW[i:end], false); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlearn takes every observation out of the model. The parameters stay; the
// inducing inputs lose their momentum, too.
func (l *Learner) unlearn() error {
	l.ready()
	size := len(l.opt.m) / len(l.bases)
	for g := range l.bases {
		clear(l.opt.m[g*size:][:l.m*l.d])
	}
	l.winX, l.winY, l.winW, l.filtered = l.winX[:0], l.winY[:0], l.winW[:0], 0
	for h := range l.bank {
		b := &l.bank[h]
		for _, sites := range [][]float64{b.A, b.b, b.s1, b.s2} {
			clear(sites)
		}
	}
	return l.refreshAll()
}

// begin makes a model that has learnt nothing, for the n observations of the
// warm-up buffer.
func (l *Learner) begin(n int) (err error) {
	defer Survive(&err)
	l.allocate()
	robustScale(&l.scale, l.bufX, n, l.d)
	x := make([]float64, len(l.bufX))
	for i := range n {
		l.scale.To(x[i*l.d:(i+1)*l.d], l.bufX[i*l.d:(i+1)*l.d])
	}
	rng := rand.New(rand.NewPCG(l.cfg.Seed, uint64(n)))
	l.params = startParams(atMean(x), n, l.d, l.m, l.cfg.LabelNoise.Start, rng)
	if _, err := l.bases[0].Set(&l.params); err != nil {
		return fmt.Errorf("online: build from %d observations: %w", n, err)
	}
	l.reserve(len(l.names))
	for k := range l.names {
		l.ensureLatent(k)
	}
	return nil
}

// allocate makes the memory of the model, empty.
func (l *Learner) allocate() {
	hs := len(l.cfg.Horizons)
	l.Rest()
	l.state = state{
		params: model.NewParams(l.m, l.d),
		logw:   make([]float64, hs),
		scale:  model.Scale{Mu: make([]float64, l.d), Sd: make([]float64, l.d), Clip: l.cfg.Clip},
		winX:   make([]float64, 0, l.capacity*l.d),
		winY:   make([]int, 0, l.capacity),
		winW:   make([]float64, 0, l.capacity),
		bank:   make([]horizon, hs),
	}
	l.opt = newAdam(len(l.params.Theta))
	for h, length := range l.cfg.Horizons {
		l.bank[h].length = float64(length)
	}
	l.bases, l.shared = []*model.Basis{model.NewBasis(l.m, l.d)}, false
	l.view.Bases, l.view.Scale = l.bases, l.scale
	l.view.Latent = nil
	for k := range l.latent {
		l.latent[k] = -1
	}
	l.view.Bank = make([]model.Gaussian, hs)
	for h := range l.view.Bank {
		l.view.Bank[h].M = l.m
	}
	l.view.Weights = make([]float64, hs)
	l.setWeights()
}

// reserve makes room for just so many latent functions.
func (l *Learner) reserve(c int) {
	for h := range l.bank {
		b := &l.bank[h]
		b.A, b.b = withRoom(b.A, c*l.m*l.m), withRoom(b.b, c*l.m)
		b.s1, b.s2 = withRoom(b.s1, c*l.capacity), withRoom(b.s2, c*l.capacity)
		l.view.Bank[h].Reserve(c)
	}
}

// withRoom returns s with room for n elements, and no more if it has to be moved.
func withRoom(s []float64, n int) []float64 {
	if cap(s) >= n {
		return s
	}
	return append(make([]float64, 0, n), s...)
}

// own makes bases and bank the learner's own, if a snapshot has them too.
// Whoever changes them calls it first.
func (l *Learner) own() {
	if !l.shared {
		return
	}
	l.shared = false
	for g, b := range l.bases {
		l.bases[g] = b.Clone()
	}
	for h := range l.view.Bank {
		g := &l.view.Bank[h]
		g.U, g.Mean = slices.Clone(g.U), slices.Clone(g.Mean)
	}
}

// ready makes what only a step needs, if it is not there, and calls own.
// Whoever learns calls it first.
func (l *Learner) ready() {
	l.own()
	if l.spares != nil {
		return
	}
	l.backup = newBackup(&l.state)
	m, d, n, c, points := l.m, l.d, l.capacity, len(l.view.Latent), l.gradientRoom()
	floats := func(n int) []float64 { return make([]float64, n) }
	l.work = work{
		xs: floats(n * d), xx: floats(n),
		u: floats(max(c, n) * m), mean: floats(c * n), variance: floats(c * n),
		fresh: floats(c * points * m), g: floats(c * points), coef: floats(c * points),
		ev: make([]evidence, len(l.bases)), grad: floats(len(l.params.Theta)),
		bt: floats(m), y: floats(m), theta0: floats(len(l.params.Theta)), project: newProjection(m, d),
		batchX: floats(points * d), labels: make([]int, l.room), weights: floats(l.room),
		resp: floats(points), trace: l.work.trace,
	}
	w := &l.work
	for range l.bases {
		l.spares = append(l.spares, model.NewBasis(m, d))
		w.kx, w.w, w.q = append(w.kx, floats(n*m)), append(w.w, floats(n*m)), append(w.q, floats(n))
	}
	w.site.resize(c)
}

// Rest gives up the memory that only a step needs, half of the learner's; the
// next one makes it anew.
func (l *Learner) Rest() {
	l.backup, l.spares, l.work = backup{}, nil, work{trace: l.work.trace}
}

// ensureLatent gives class k a latent function at its prior if it has none: no
// sites, in any horizon. Declared classes get theirs with the first model, a
// class that turns up later when its first sample is learnt.
func (l *Learner) ensureLatent(k int) {
	if l.latent[k] >= 0 {
		return
	}
	l.latent[k] = len(l.view.Latent)
	l.view.Latent = append(l.view.Latent, k)
	if l.cfg.Kernel == PerClass && len(l.view.Latent) > 1 {
		l.addBasis()
	}
	c := len(l.view.Latent)
	l.reserve(c)
	for h := range l.bank {
		b := &l.bank[h]
		b.A, b.b = b.A[:c*l.m*l.m], b.b[:c*l.m] // what is cut off is cleared
		b.s1, b.s2 = b.s1[:c*l.capacity], b.s2[:c*l.capacity]
		l.view.Bank[h].Grow()
	}
	l.Rest()
}

// addBasis gives the newest latent function a kernel of its own, which starts
// as the first one is now.
func (l *Learner) addBasis() {
	one := len(l.params.Group(0).Theta)
	l.params.Theta = append(l.params.Theta, l.params.Theta[:one]...)
	l.opt.m, l.opt.v = append(l.opt.m, make([]float64, one)...), append(l.opt.v, make([]float64, one)...)
	l.bases = append(l.bases, l.bases[0].Clone())
	l.view.Bases = l.bases
}

// setBases computes the bases of the parameters as they are.
func (l *Learner) setBases() error {
	for g, b := range l.bases {
		p := l.params.Group(g)
		if _, err := b.Set(&p); err != nil {
			return err
		}
	}
	return nil
}

// basis is the number of latent function k's basis.
func (l *Learner) basis(k int) int { return min(k, len(l.bases)-1) }

// learn takes one minibatch of raw samples, their classes and weights through a step, or
// several if it is large, or leaves the state as it was. Live samples were
// predicted before, by the model that now learns them: they weigh the horizons,
// and the scaling follows them if it tracks.
func (l *Learner) learn(rawX []float64, classes []int, weights []float64, live bool) error {
	for _, k := range classes {
		l.ensureLatent(k)
	}
	l.ready()
	l.backup.save(&l.state)
	if err := l.steps(rawX, classes, weights, live); err != nil {
		return l.takeBack(err)
	}
	return nil
}

// steps does what learn says; an error, or a panic, leaves the state spoilt.
func (l *Learner) steps(rawX []float64, classes []int, weights []float64, live bool) (err error) {
	defer Survive(&err)
	n, w := len(classes), &l.work
	if live {
		l.weighHorizons(n)
		if l.cfg.Track > 0 {
			track(&l.scale, l.sd0, rawX, n, l.cfg.Track)
		}
	}
	if len(l.view.Latent) < 2 {
		return nil
	}
	// Every parts-th sample makes a step: neighbours are alike, a step's samples
	// should not be.
	parts := (n + maxStep - 1) / maxStep
	for first := range parts {
		at := 0
		for i := first; i < n; i += parts {
			w.labels[at], w.weights[at] = l.latent[classes[i]], weights[i]
			l.scale.To(w.batchX[at*l.d:(at+1)*l.d], rawX[i*l.d:(i+1)*l.d])
			at++
		}
		if err := l.step(at); err != nil {
			return err
		}
	}
	l.counters.Steps++
	return nil
}

// takeBack puts the state of the backup in the place of one that was spoilt by err.
func (l *Learner) takeBack(err error) error {
	l.backup.giveBack(&l.state)
	l.setWeights()
	if again := l.setBases(); again != nil {
		return errors.Join(err, again)
	}
	l.features()
	return errors.Join(err, l.refreshAll())
}

// step learns the n samples in work.batchX and work.labels. A few of them are
// filtered only, until there are enough for a step that refines them all: its
// rate is that of all the minibatches for which it stands.
func (l *Learner) step(n int) error {
	recent := l.filtered + n
	if recent < replay {
		return l.filter(n)
	}
	if err := l.sweeps(n); err != nil {
		return err
	}
	if l.cfg.LearningRate > 0 {
		l.gradient(l.gradientPoints(recent, len(l.winY)))
		rate := l.cfg.LearningRate * math.Sqrt(float64(n)/fullRate) * float64(recent) / float64(n)
		if l.again {
			rate *= passRate
		}
		if err := l.move(rate); err != nil {
			return err
		}
	}
	l.features()
	return l.refreshAll()
}

// Posterior returns an immutable snapshot of the posterior. The next step works
// on copies of what is large in it.
func (l *Learner) Posterior() *model.Posterior {
	l.shared = true
	return l.view.Snapshot()
}

// Scores returns the prequential scores so far.
func (l *Learner) Scores() Scores { return l.judge.scores(slices.Clone(l.names)) }

// Digest is the SHA-256 of AppendBinary's bytes, in hexadecimal.
func (l *Learner) Digest() string {
	buf, _ := l.AppendBinary(nil)
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:])
}
