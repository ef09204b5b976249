package sep

import "edge/model"

// work is the scratch memory of a step. Four parts of it share one piece of memory, as they are
// used one after the other: the scaled samples while features are computed, the rows for the gradient
// during sweeps, the scratch of absorbing and projecting, and before the latter that of the
// evidence.
type work struct {
	features features
	batch    batch
	grad     gradient

	u              []float64 // max(capacity, C)×M for each worker, see rows
	room           int       // length of a worker's u
	mean, variance []float64 // H×C×capacity
	bt, y          []float64 // M for each worker
	theta0         []float64 // parameters before the gradient step
	project        Projection
	added          added
	updates        []update   // of each worker
	sites          []PairSite // of each worker
	tasks          tasks
}

// rows is a worker's scratch memory for rows of M.
func (w *work) rows(worker int) []float64 { return w.u[worker*w.room : (worker+1)*w.room] }

// moments are the means and variances under horizon h, of size elements each.
func (w *work) moments(h, size int) (mean, variance []float64) {
	return w.mean[h*size : (h+1)*size], w.variance[h*size : (h+1)*size]
}

// tasks are run by a team, with their arguments.
type tasks struct {
	marginals, refine, features, absorb, renew, refresh, project, window, basis, ascend func(worker, i int) error

	sweeping
	out, recent       int // of absorb: points that leave the window; samples to fade by
	horizon, from, to int // of refresh; points of window
	place, step       int // of project: the first latent function, and their number; place is the basis of window and of basis, step the points of a task of window

	rise ascent
}

// features are those of the window points in each basis.
type features struct {
	kx, w, q [][]float64 // of each basis: capacity×M, capacity×M, capacity
	xs, xx   []float64   // capacity×D scaled; norms
	current  bool        // they are those of the window
}

// batch holds the samples of a step.
type batch struct {
	x       []float64 // n×D standardised
	latents []int     // latent functions of their labels
	weights []float64
}

// gradient holds the derivatives of a sweep for the gradient step, and the gradient.
type gradient struct {
	fresh   []float64  // H×C×n×M  V_k·w of the samples in the last sweep is U_kᵀ·fresh, see keepRows
	shift   []float64  // H×C×M    the mean then is Mean_k + U_kᵀ·shift
	g, coef []float64  // H×C×n
	resp    []float64  // n  responsibilities of the last sweep of the last horizon
	notes   []noise    // H×n
	ev      []Evidence // of each basis
	eps     float64    // ∂F/∂logit ε
	theta   []float64  // as model.Params.Theta

	trace     bool // compute the objective, for tests
	objective float64
}

// noise is a sample's part of sums over all samples.
type noise struct{ eps, objective float64 }

// ready makes the memory that only a step needs, and calls Own. Every method that learns calls
// it first, or ownForStep and makeWork.
func (b *Bank) ready() {
	b.Own()
	b.makeWork()
}

// makeWork makes the memory that only a step needs, unless it is there or the pool lends it.
func (b *Bank) makeWork() {
	if b.spares != nil || b.borrow() {
		return
	}
	b.backup = newBackup(&b.state)
	workers := b.team.size
	m, d, n, c, points := b.cfg.Inducing, b.cfg.Features, b.capacity, len(b.view.Latent), b.gradientRoom()
	floats := func(n int) []float64 { return make([]float64, n) }
	hc, room := len(b.sites)*c, max(c, n)*m
	shared := make(memory, max(n*d, hc*points*m, projectionScratch(m, d, workers), evidenceScratch(points, m, d)))
	b.work = work{
		features: features{xs: shared[:n*d], xx: floats(n)},
		batch:    batch{x: floats(points * d), latents: make([]int, b.most), weights: floats(b.most)},
		grad: gradient{
			fresh: shared[:hc*points*m], shift: floats(hc * m), g: floats(hc * points), coef: floats(hc * points), resp: floats(points),
			notes: make([]noise, len(b.sites)*points), ev: make([]Evidence, len(b.bases)), theta: floats(len(b.params.Theta)), trace: b.work.grad.trace,
		},
		u: floats(workers * room), room: room, mean: floats(hc * n), variance: floats(hc * n),
		bt: floats(workers * m), y: floats(workers * m), theta0: floats(len(b.params.Theta)),
		added: newAdded(hc, m), sites: make([]PairSite, workers),
	}
	b.work.project = NewProjection(m, d, workers, shared)
	theta := memory(b.work.grad.theta)
	for g := range b.bases {
		b.work.grad.ev[g].free, b.work.grad.ev[g].Grad = shared, theta.take(len(b.params.Theta)/len(b.bases))
	}
	for i := range workers {
		b.work.updates = append(b.work.updates, newUpdate(m, n))
		b.work.sites[i].Resize(c)
	}
	f := &b.work.features
	for range b.bases {
		b.spares = append(b.spares, model.NewBasis(m, d))
		f.kx, f.w, f.q = append(f.kx, floats(n*m)), append(f.w, floats(n*m)), append(f.q, floats(n))
	}
	b.bind()
}

// bind makes the bank's team run the tasks of a workspace, as the bank's own.
func (b *Bank) bind() {
	w := &b.work
	w.tasks = tasks{
		marginals: b.marginalsOf, refine: b.refineChunk, features: b.featuresTask, absorb: b.absorbSites, window: b.windowFeatures, renew: b.renewPosterior,
		refresh: b.refreshPosterior, project: b.projectSites, basis: b.basisRows, ascend: b.ascendPart,
	}
	w.project.team, w.project.cross = b.team, w.project.crossRows
	for g := range w.grad.ev {
		w.grad.ev[g].share(b.team)
	}
}

// Rest releases the memory that only a step needs, half of the bank's; the next
// step allocates it again.
func (b *Bank) Rest() {
	b.dropStep()
	b.spare = nil
}

// rest comes before a change of the bank's shape. The pool keeps the workspace for the next step,
// which takes it if the bank has this shape again, as after a build.
func (b *Bank) rest() {
	b.GiveBack()
	b.dropStep()
}

func (b *Bank) dropStep() {
	for f := range b.joined {
		b.joined[f].savedA, b.joined[f].savedB = nil, nil
	}
	b.stepMemory = stepMemory{work: work{grad: gradient{trace: b.work.grad.trace}}}
	b.rested = true
}
