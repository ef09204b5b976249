package sep

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"edge/model"
)

// Config holds the settings of a Bank. Symbols as in the package comment.
type Config struct {
	Features int       // D
	Inducing int       // M
	Horizons []float64 // lengths in observations; +Inf never forgets
	Window   int       // R, observations whose sites are kept explicitly
	Batch    int       // samples that a minibatch may hold
	Sweeps   int       // over the window in each step
	Damping  float64   // of a site's update after the first sweep

	LearningRate float64 // of Adam at fullRate samples; 0 keeps the parameters
	Gradient     int     // observations that a gradient step of the warm-up follows, at least
	NoiseStart   float64 // ε at the start; 0 turns the robust likelihood off
	NoiseMax     float64 // bounds ε
	LearnNoise   bool    // ε follows the gradient
	PerClass     bool    // a kernel and inducing inputs for each latent function

	Track float64 // memory of the feature scaling in observations; 0 keeps it
	Clip  float64 // of a standardised feature
	Seed  uint64
}

const (
	maxStep   = 16  // samples of a step; a larger minibatch makes several
	fullRate  = 32  // samples of a step at which the learning rate is the configured one
	noiseRate = 2   // of the logit of the label noise, in learning rates
	liveRate  = 0.8 // of the learning rate after the warm-up
	passRate  = 3   // of the learning rate in all passes of a build but the first
	passPrior = 10  // precision of the prior on log ℓ in these passes

	refinedSteps = 4 // whose samples a step refines after the warm-up, its own included

	minWeight = 1e-3 // of a horizon, below which its gradient is not computed

	// Replay is the number of recent samples that make a step; fewer are filtered
	// until there are that many.
	Replay = 4

	maxRecent = Replay - 1 + maxStep // samples of a step, and filtered ones before them
)

// horizon holds the sites of one posterior of the bank, which forget at their own
// rate.
type horizon struct {
	length   float64   // in observations, may be +Inf
	diagonal []float64 // C×M  of A = Σ s1·w·wᵀ of the absorbed sites, in whitened coordinates; see precision for the rest
	b        []float64 // C×M  Σ s2·w of them
	s1, s2   []float64 // C×capacity  explicit sites of the window
	p1, p2   []float64 // C×capacity  the label's side of each pair; their sums are the sites of the label's class
}

// window are the explicit sites, C×capacity each.
func (z *horizon) window() [4]*[]float64 { return [...]*[]float64{&z.s1, &z.s2, &z.p1, &z.p2} }

// state is the part of a Bank that a step may change and that Undo restores.
type state struct {
	params model.Params
	opt    Adam
	scale  model.Scale
	sites  []horizon // of each horizon
	winX   []float64 // capacity×D  standardised, oldest first
	winY   []int     // latent function of each window point's label
	winW   []float64 // its weight

	filtered int // latest window points that have not been swept
	waiting  int // latest window points, or more if some left it, whose evidence the gradient has not followed
}

// Counts are the steps of a Bank since it was made.
type Counts struct {
	Steps           uint64 // minibatches learnt
	CholeskyRetries uint64 // factorisations repeated with more jitter
	JoinedDropped   uint32 // sums of a fleet that did not factor, counted by several goroutines
}

// Bank approximates the posterior of C latent functions under H forgetting
// horizons that share kernel, inducing inputs and window. It works on latent
// functions alone: its owner assigns them to classes. It is single-threaded.
//
// It keeps fields of the posterior that it was made with up to date: Latent, Bases,
// Scale, Bank, Memory, and Fleet.Foreign. It reads Weights, which are the owner's.
type Bank struct {
	Counts Counts

	cfg      Config
	view     *model.Posterior
	most     int // samples of the largest minibatch
	capacity int // window points that a step may hold

	state
	sd0   []float64 // standard deviations at the end of the warm-up
	live  bool      // the warm-up is over
	reach float64   // bound on the horizons' lengths in this minibatch
	refit int       // observations of a later pass of a build; 0 in any other step

	rateFactor float64 // of the learning rate

	// OwnWeights are those of the horizons in the gradient, which the fleet has no part
	// in; nil: those of the view.
	OwnWeights []float64
	joined     []joined         // posteriors of a fleet, behind those of the horizons in view.Bank
	foreign    []model.Gaussian // of each joined one: classes without a latent function

	posteriors

	team *team
	stepMemory
	lease
}

// lease is a bank's share in a pool.
type lease struct {
	pool   *Pool  // that lends the memory of a step; nil: it is the bank's own
	alive  func() // called while the bank waits for it; may be nil
	lent   bool   // the pool counts this bank
	rested bool   // the numbers of this bank in a workspace are out of date
}

// stepMemory is the memory that only a step needs, see ready.
type stepMemory struct {
	backup backup
	spares []*model.Basis
	work   work
}

// New returns a bank without latent functions, which keeps view up to date.
func New(cfg Config, view *model.Posterior) *Bank {
	cfg.Horizons = slices.Clone(cfg.Horizons)
	b := &Bank{cfg: cfg, view: view, rateFactor: 1, team: newTeam()}
	view.Scale = model.Scale{Mu: make([]float64, cfg.Features), Sd: slices.Repeat([]float64{1}, cfg.Features), Clip: cfg.Clip}
	b.makeRoom(cfg.Batch, 0)
	return b
}

// makeRoom prepares for minibatches of that many samples and for a window that
// may hold that many already.
func (b *Bank) makeRoom(samples, window int) {
	b.most = samples
	b.capacity = max(b.cfg.Window, Replay+samples, window) + Replay + samples
}

// Cores is the number of cores that a step may use.
func (b *Bank) Cores() int { return b.team.size }

// Run runs n tasks of about that many multiplications each on these cores, in any order,
// and waits for all of them; the worker of a task is below Cores. Of several errors and
// panics it returns, or panics with, that of the first task.
func (b *Bank) Run(n int, multiplications float64, task func(worker, i int) error) error {
	return b.team.run(n, multiplications, task)
}

// Awake announces that a step follows the next Run at once: the other cores then wait for
// it awake, for a while. If more is true, another Run follows that step.
func (b *Bank) Awake(more bool) {
	b.team.begin()
	b.team.more = more
}

// Aside offers a job, which does not panic, to the other cores. Await follows.
func (b *Bank) Aside(job func()) { b.team.offer(job) }

// Await waits until the job of Aside is done, and does it where no core has begun it.
func (b *Bank) Await() { b.team.await() }

// Window is the number of observations whose sites are kept explicitly.
func (b *Bank) Window() int { return len(b.winY) }

// WindowWeights are the R weights of these observations, oldest first. The caller
// may change them while it restores a state.
func (b *Bank) WindowWeights() []float64 { return b.winW }

// EstimateScale stores the feature scaling of n raw rows before the first build.
func (b *Bank) EstimateScale(x []float64, n int) { RobustScale(&b.view.Scale, x, n, b.cfg.Features) }

// EndWarmup keeps the scaling's standard deviations: those that Track follows
// stay above a tenth of them.
func (b *Bank) EndWarmup() { b.sd0 = slices.Clone(b.view.Scale.Sd) }

// Begin makes an empty model for n raw observations, x of n×D: their scaling, with their ranks
// if ranked is true, inducing inputs and a kernel at its start. Latent functions are
// added by Grow; room is the number of them to make room for. The error is model.ErrFactor.
func (b *Bank) Begin(x []float64, n, room int, ranked bool) error {
	d, m := b.cfg.Features, b.cfg.Inducing
	b.allocate()
	RobustScale(&b.scale, x, n, d)
	if ranked {
		b.scale.Ranks = ranks(x, n, d)
		b.view.Scale.Ranks = b.scale.Ranks
	}
	scaled := make([]float64, len(x))
	for i := range n {
		b.scale.To(scaled[i*d:(i+1)*d], x[i*d:(i+1)*d])
	}
	rng := rand.New(rand.NewPCG(b.cfg.Seed, uint64(n)))
	b.team.begin()
	b.params = b.team.startParams(AtMean(scaled), n, d, m, b.cfg.NoiseStart, rng)
	b.team.end()
	if _, err := b.bases[0].Set(&b.params); err != nil {
		return fmt.Errorf("online: build from %d observations: %w", n, err)
	}
	b.reserve(room)
	return nil
}

// allocate makes the memory of the model, empty. It takes the large parts from the
// model before, which a build makes up to three times.
func (b *Bank) allocate() {
	hs, d, m := len(b.cfg.Horizons), b.cfg.Features, b.cfg.Inducing
	b.rest()
	sites, posteriors := b.sites, b.view.Bank
	if b.shared {
		posteriors = b.takeSpare()
	}
	b.state = state{
		params: model.NewParams(m, d),
		scale:  model.Scale{Mu: make([]float64, d), Sd: make([]float64, d), Clip: b.cfg.Clip},
		winX:   make([]float64, 0, b.capacity*d),
		winY:   make([]int, 0, b.capacity),
		winW:   make([]float64, 0, b.capacity),
		sites:  make([]horizon, hs),
	}
	b.opt = NewAdam(len(b.params.Theta))
	for h, length := range b.cfg.Horizons {
		b.sites[h].length = length
		if h < len(sites) {
			b.sites[h].diagonal, b.sites[h].b = emptied(sites[h].diagonal), emptied(sites[h].b)
		}
	}
	b.bases, b.shared = []*model.Basis{model.NewBasis(m, d)}, false
	b.view.Bases, b.view.Scale = b.bases, b.scale
	b.view.Latent = nil
	b.view.Bank = make([]model.Gaussian, hs)
	for h := range b.view.Bank {
		b.view.Bank[h].M = m
		if h < len(posteriors) {
			b.view.Bank[h].U, b.view.Bank[h].Mean = emptied(posteriors[h].U), emptied(posteriors[h].Mean)
		}
	}
}

// emptied returns the memory of s, cleared, as an empty slice.
func emptied(s []float64) []float64 {
	s = s[:cap(s)]
	clear(s)
	return s[:0]
}

// reserve makes room for exactly c latent functions.
func (b *Bank) reserve(c int) {
	m := b.cfg.Inducing
	for h := range b.sites {
		z := &b.sites[h]
		z.diagonal, z.b = withRoom(z.diagonal, c*m), withRoom(z.b, c*m)
		for _, sites := range z.window() {
			*sites = withRoom(*sites, c*b.capacity)
		}
		b.view.Bank[h].Reserve(c)
	}
}

// withRoom returns s with room for n elements, and no more if it has to be moved.
func withRoom(s []float64, n int) []float64 {
	if cap(s) >= n {
		return s
	}
	return append(make([]float64, 0, n), s...)
}

// Grow adds a latent function for a class, at its prior: without sites, in any
// horizon. It returns its number.
func (b *Bank) Grow(class int) int {
	b.rest()
	m := b.cfg.Inducing
	b.view.Latent = append(b.view.Latent, class)
	c := len(b.view.Latent)
	if b.cfg.PerClass && c > 1 {
		b.addBasis()
	}
	b.reserve(c)
	for h := range b.sites {
		z := &b.sites[h]
		z.diagonal, z.b = z.diagonal[:c*m], z.b[:c*m] // the memory beyond the length is always zero
		for _, sites := range z.window() {
			*sites = (*sites)[:c*b.capacity]
		}
		b.view.Bank[h].Grow()
	}
	b.growJoined()
	return c - 1
}

// addBasis gives the newest latent function a kernel of its own, which starts
// as the first one is now.
func (b *Bank) addBasis() {
	one := len(b.params.Group(0).Theta)
	b.params.Theta = append(b.params.Theta, b.params.Theta[:one]...)
	b.opt.M, b.opt.V = append(b.opt.M, make([]float64, one)...), append(b.opt.V, make([]float64, one)...)
	b.bases = append(b.bases, b.bases[0].Clone())
	b.view.Bases = b.bases
}

// setBases computes the bases of the parameters as they are.
func (b *Bank) setBases() error {
	for g, basis := range b.bases {
		p := b.params.Group(g)
		if _, err := basis.Set(&p); err != nil {
			return err
		}
	}
	return nil
}

// basis returns the index of latent function k's basis.
func (b *Bank) basis(k int) int { return min(k, len(b.bases)-1) }

// Share declares that a snapshot of view shares bases and view.Bank: the next
// step changes copies of them.
func (b *Bank) Share() { b.shared = true }

// Own copies bases and view.Bank if a snapshot shares them. Every method that
// changes them calls it first.
func (b *Bank) Own() {
	b.ownForStep()
	b.copyJoined()
}

// ownForStep is Own for a step. It leaves out the posteriors of a fleet, which the step's
// refresh computes without those before it; copyJoined comes before any other use of them.
func (b *Bank) ownForStep() {
	if !b.shared {
		return
	}
	b.shared = false
	for g, basis := range b.bases {
		b.bases[g] = basis.Clone()
	}
	b.ownPosteriors()
	b.ownJoined()
}

// Fit holds a fitted model: its parameters, its scaling and the product of its
// sites, as a lower triangle A (C×M×M) and b (C×M) for each latent function.
type Fit struct {
	Params model.Params
	Scale  model.Scale
	A, B   []float64
}

// Load replaces the model by f, whose latent functions belong to the first of
// classes; the others begin at their prior. The window is empty and every horizon
// begins with all the sites. The error is model.ErrFactor or model.ErrNotFinite.
func (b *Bank) Load(f *Fit, classes []int) error {
	b.allocate()
	copy(b.scale.Mu, f.Scale.Mu)
	copy(b.scale.Sd, f.Scale.Sd)
	b.scale.Ranks, b.view.Scale.Ranks = f.Scale.Ranks, f.Scale.Ranks
	first := f.Params.Group(0)
	copy(b.params.Theta, first.Theta)
	m := b.cfg.Inducing
	fitted := len(f.B) / m
	for _, class := range classes[:fitted] {
		b.Grow(class)
	}
	copy(b.params.Theta, f.Params.Theta)
	for _, class := range classes[fitted:] {
		b.Grow(class)
	}
	for h := range b.sites {
		for k := range fitted {
			b.SetAbsorbed(h, k, f.A[k*m*m:(k+1)*m*m], f.B[k*m:(k+1)*m])
		}
	}
	b.EndWarmup()
	if err := b.setBases(); err != nil {
		return err
	}
	return b.Refresh()
}
