package sep

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"edge/model"
)

// Minibatch is one minibatch of labelled samples.
type Minibatch struct {
	X       []float64 // n×D  raw
	Classes []int     // n
	Weights []float64 // n
	Latents []int     // latent function of each class, not of each sample
	Live    bool      // the warm-up is over: the scaling follows the samples if it tracks
	Reach   float64   // bound on the length of every horizon; +Inf: none
}

// Save copies the state, for Undo.
func (b *Bank) Save() {
	b.ownForStep()
	b.makeWork()
	b.save()
	b.saveJoined()
}

// Undo restores the state of the last Save after err, and returns err; a state
// that does not factor any more adds its own error.
func (b *Bank) Undo(err error) error {
	b.restore()
	b.undoJoined()
	if again := b.setBases(); again != nil {
		return errors.Join(err, again)
	}
	return errors.Join(err, b.Refresh())
}

// Learn learns one minibatch, in one step or in several if it is large. Save
// comes before it: an error, which is model.ErrFactor or model.ErrNotFinite, or a panic leaves
// the state damaged until Undo.
func (b *Bank) Learn(mb Minibatch) error {
	b.live, b.reach = mb.Live, mb.Reach
	b.team.begin()
	defer b.team.end()
	n, d, w := len(mb.Classes), b.cfg.Features, &b.work.batch
	if mb.Live && b.cfg.Track > 0 {
		track(&b.scale, b.sd0, mb.X, n, b.cfg.Track)
	}
	if len(b.view.Latent) < 2 || n == 0 {
		b.copyJoined()
		return nil
	}
	// Every parts-th sample makes a step: neighbours are alike, a step's samples
	// should not be.
	parts := (n + maxStep - 1) / maxStep
	for first := range parts {
		at := 0
		for i := first; i < n; i += parts {
			w.latents[at], w.weights[at] = mb.Latents[mb.Classes[i]], mb.Weights[i]
			b.scale.To(w.x[at*d:(at+1)*d], mb.X[i*d:(i+1)*d])
			at++
		}
		if err := b.step(at); err != nil {
			return err
		}
	}
	b.Counts.Steps++
	return nil
}

// step learns the n samples in work.batch. A few of them are filtered only, until
// there are enough for a step that refines them all: its rate is that of all the
// minibatches for which it stands.
func (b *Bank) step(n int) error {
	recent := b.filtered + n
	if recent < Replay {
		return b.filter(n)
	}
	points := b.gradientPoints(recent, min(len(b.winY)+n, max(b.cfg.Window, recent)))
	if err := b.sweeps(n, points); err != nil {
		return err
	}
	if b.cfg.LearningRate > 0 {
		b.waiting += recent
	}
	if points == 0 {
		return nil
	}
	b.gradient(points)
	size := n
	if b.live { // with the filtered ones: the gradient is of these as well
		size = recent
	}
	rate := b.cfg.LearningRate * math.Sqrt(float64(size)/fullRate) * float64(b.waiting) / float64(size)
	if b.live {
		rate *= liveRate * b.ageFactor()
	}
	if b.refit > 0 {
		rate *= passRate
	}
	rate *= b.rateFactor
	b.waiting = 0
	if err := b.move(rate); err != nil {
		return err
	}
	return b.Refresh()
}

// BeginPass begins a later pass over the n observations of a build: every
// observation is taken out of the model. The parameters stay; the inducing inputs
// also lose their momentum, and do not move until EndPasses. The error is that of Refresh.
func (b *Bank) BeginPass(n int) error {
	b.refit = n
	b.ready()
	size := len(b.opt.M) / len(b.bases)
	for g := range b.bases {
		clear(b.opt.M[g*size:][:b.cfg.Inducing*b.cfg.Features])
	}
	b.winX, b.winY, b.winW, b.filtered, b.waiting = b.winX[:0], b.winY[:0], b.winW[:0], 0, 0
	for h := range b.sites {
		z := &b.sites[h]
		for k := range b.view.Latent {
			b.precision(h, k).clear()
		}
		clear(z.b)
		for _, sites := range z.window() {
			clear(*sites)
		}
	}
	return b.refreshAll()
}

// EndPasses ends the later passes that BeginPass began.
func (b *Bank) EndPasses() { b.refit = 0 }

// gradientPoints is the number of samples whose evidence a step's gradient follows. In
// the warm-up they are the recent ones, and the latest of the window before them up to
// the configured number. Later, when many were learnt, repeating the same samples did
// harm: every second step follows its own and those of the step before, and the others
// none, because a new basis is a quarter of a step's work.
func (b *Bank) gradientPoints(recent, window int) int {
	switch {
	case b.cfg.LearningRate == 0 || b.live && b.waiting == 0:
		return 0
	case b.live:
		return min(b.waiting+recent, window, b.gradientMost(b.cfg.Batch))
	}
	return min(max(recent, b.cfg.Gradient), window)
}

// gradientMost is the largest number that gradientPoints returns for minibatches of that many samples.
func (b *Bank) gradientMost(samples int) int {
	return max(2*min(Replay+samples, maxRecent), b.cfg.Gradient)
}

// gradientRoom is gradientMost for the largest minibatch: there may be one of an earlier
// configuration, of more samples than those of this one.
func (b *Bank) gradientRoom() int { return b.gradientMost(b.most) }

// gradient turns the evidence that the last sweeps left in work.grad.ev into the
// gradient of the n latest samples' evidence with respect to the parameters.
func (b *Bank) gradient(n int) {
	w, f := &b.work.grad, &b.work.features
	x := b.completeRows(n)
	size, first := len(w.theta)/len(b.bases), (len(b.winY)-n)*b.cfg.Inducing
	for g, basis := range b.bases {
		p := b.params.Group(g)
		w.ev[g].Backprop(basis, &p, n, x, f.kx[g][first:], f.w[g][first:])
		into := w.ev[g].Grad // in w.theta
		into[size-1] = 0
		if b.refit > 0 {
			inputs := b.cfg.Inducing * b.cfg.Features
			clear(into[:inputs])
			Pull(into[inputs:], p.LogEll(), passPrior*float64(n)/float64(b.refit))
		}
	}
	if b.cfg.LearnNoise && b.bases[0].Eps > 0 {
		w.theta[size-1] = w.eps
	}
}

// completeRows returns the n latest samples' standardised features for the
// gradient. Samples that lack a feature update the sites alone: their rows do not
// count.
func (b *Bank) completeRows(n int) []float64 {
	w, d := &b.work, b.cfg.Features
	x := b.winX[(len(b.winY)-n)*d:]
	if !slices.Contains(x, model.Missing) {
		return x
	}
	copy(w.batch.x, x)
	x = w.batch.x[:n*d]
	for i := range n {
		row := x[i*d : (i+1)*d]
		if !slices.Contains(row, model.Missing) {
			continue
		}
		clear(row)
		for g := range w.grad.ev {
			w.grad.ev[g].ignore(i)
		}
	}
	return x
}

// move takes one ascent step of rate lr along the gradient, twice that for the logit
// of the label noise, which may have a long way to go, and projects the absorbed
// sites on the new basis. The sites of the window need nothing: they are scalars
// in f.
func (b *Bank) move(lr float64) error {
	w := &b.work
	b.keepParams()
	if b.live {
		b.ascend(lr, liveBeta1, 1-liveBeta1)
	} else {
		b.ascend(lr, adamBeta1, 1-adamBeta1)
	}
	if noise := len(b.params.Theta)/len(b.bases) - 1; b.bases[0].Eps > 0 { // all groups have the first one's ε
		b.params.Theta[noise] += (noiseRate - 1) * (b.params.Theta[noise] - w.theta0[noise])
	}
	b.keepSignal()
	b.params.Clamp(b.cfg.NoiseMax)
	return b.rebase(nil)
}

// ascend takes a step of the optimiser along the gradient.
func (b *Bank) ascend(lr, beta1, rest float64) {
	t := &b.work.tasks
	t.rise = b.opt.begin(lr, beta1, rest)
	_ = b.team.run((len(b.params.Theta)+ascentPart-1)/ascentPart, ascentPart*ascentCost, t.ascend)
}

const (
	ascentPart = 1024 // parameters of a task
	ascentCost = 80   // multiplications that take as long as one of them
)

// ascendPart is task i of ascend.
func (b *Bank) ascendPart(_, i int) error {
	from, to := i*ascentPart, min((i+1)*ascentPart, len(b.params.Theta))
	b.opt.ascend(b.params.Theta, b.work.grad.theta, from, to, b.work.tasks.rise)
	return nil
}

// setSpare computes the basis that replaces basis g.
func (b *Bank) setSpare(g int, p *model.Params) (retries int, err error) {
	s := b.spares[g]
	s.Begin(p)
	b.work.tasks.place = g
	tasks := model.RowTasks(s.M)
	_ = b.team.run(tasks, float64(s.M*s.M*(s.D+expCost)/2)/float64(tasks), b.work.tasks.basis)
	return s.Factor()
}

// basisRows is task i of setSpare.
func (b *Bank) basisRows(_, i int) error {
	b.spares[b.work.tasks.place].SetRows(i)
	return nil
}

// rebase computes the bases of the parameters, which were work.theta0 before, and projects
// the absorbed sites on them. z are the inducing inputs of before in the present scaling;
// nil: the scaling is the same.
func (b *Bank) rebase(z []float64) error {
	b.keepSites()
	w, m := &b.work, b.cfg.Inducing
	old := model.Params{M: m, D: b.cfg.Features, Theta: w.theta0}
	for g := range b.bases {
		p, before := b.params.Group(g), old.Group(g)
		if err := CheckFinite(&p); err != nil {
			return err
		}
		retries, err := b.setSpare(g, &p)
		b.Counts.CholeskyRetries += uint64(retries)
		if err != nil {
			return fmt.Errorf("online: new basis: %w", err)
		}
		if z == nil {
			w.project.Between(b.bases[g], b.spares[g], before.Z())
		} else {
			w.project.Between(b.bases[g], b.spares[g], z)
		}
		first, end := g, g+1 // latent functions of the basis
		if end == len(b.bases) {
			end = len(b.view.Latent)
		}
		w.tasks.place, w.tasks.step = first, end-first
		if err := b.team.run(len(b.sites)*(end-first), 1.5*b.factors()*float64(m*m*m), w.tasks.project); err != nil {
			return err
		}
		b.projectForeign()
	}
	b.bases, b.spares = b.spares, b.bases
	b.view.Bases = b.bases
	return nil
}

// projectSites projects the absorbed sites of task i of rebase on the new basis, and the sums
// of a fleet that join them.
func (b *Bank) projectSites(worker, i int) error {
	t, m := &b.work.tasks, b.cfg.Inducing
	h, k := i/t.step, t.place+i%t.step
	a, square := b.precision(h, k), b.work.project.workers[worker].square
	a.load(square)
	b.work.project.Site(worker, square, b.sites[h].b[k*m:(k+1)*m])
	a.store(square)
	b.projectJoined(worker, h, k)
	return nil
}

// Reseed moves half of the inducing inputs, drawn at random, to centres of the
// window, and projects the absorbed sites on the new basis. Moving all of them
// there would forget too much: the window may hold samples of one kind. Save comes
// before it, and errors are those of Learn.
func (b *Bank) Reseed() error {
	n, d, m := len(b.winY), b.cfg.Features, b.cfg.Inducing
	rng := rand.New(rand.NewPCG(b.cfg.Seed, b.view.N))
	b.keepParams()
	for g := range b.bases {
		p := b.params.Group(g)
		fresh := make([]float64, min(n, (m+1)/2)*d)
		b.team.kMeans(fresh, AtMean(b.winX), n, d, rng)
		for i, at := range rng.Perm(m)[:len(fresh)/d] {
			for f := range d {
				p.Z()[at*d+f] = fresh[i*d+f] + centreNoise*rng.NormFloat64()
			}
		}
	}
	clear(b.opt.M)
	clear(b.opt.V)
	if err := b.rebase(nil); err != nil {
		return err
	}
	return b.Refresh()
}
