package model

import "edge/model/dense"

// prepared holds, for n inputs, the parts of their answers that depend on the features
// alone, and neither on the order of the labels nor on how the answers are combined.
type prepared struct {
	n          int       // inputs; 0: none
	perHorizon []float64 // n×H×C
	experts    []float64 // n×E×C  see featureExperts
	scratch    []preparing

	p     *Posterior
	ws    *Workspace
	x     []float64 // n×D
	tasks [3]func(worker, i int) error
}

// preparing is the scratch memory of a worker.
type preparing struct {
	grid Grid
	u    []float64 // Few×M
}

// Team runs n tasks of about that many multiplications each, in any order, by workers whose
// numbers are below Cores.
type Team interface {
	Cores() int
	Run(n int, multiplications float64, task func(worker, i int) error) error
}

// Prepare is Load for inputs that are answered as PredictNextTo would answer each alone, to
// the last bit, of a posterior that does not change meanwhile but for the order of its
// labels and the weights in its pool. Load's products of matrices round in another way.
//
//	x   n×D raw features that CheckInput accepts
//	ws  scratch; holds the inputs until the next Load or prediction
//
// It reports false, and nothing is prepared, if class frequencies or a fleet answer.
func (p *Posterior) Prepare(x []float64, n int, team Team, ws *Workspace) bool {
	t := &ws.prepared
	t.n = 0
	if !p.Built() || p.Fleet != nil {
		return false
	}
	c, m, d := len(p.Latent), p.Bases[0].M, p.Bases[0].D
	posteriors, experts := len(p.Bank)*c, p.featureExperts()*len(p.Names)
	p.makeRoom(n, ws)
	t.perHorizon, t.experts = grow(t.perHorizon, n*posteriors), grow(t.experts, n*experts)
	if len(t.scratch) < team.Cores() {
		t.scratch = make([]preparing, team.Cores())
	}
	for i := range t.scratch {
		t.scratch[i].u = grow(t.scratch[i].u, dense.Few*m)
	}
	if t.tasks[0] == nil {
		t.tasks = [...]func(worker, i int) error{t.features, t.moments, t.answers}
	}
	t.p, t.ws, t.x = p, ws, x
	cost := float64(n) * float64(2*m*(d+m)+posteriors*(m*m/2+preparedCost))
	for i, tasks := range [...]int{(n + dense.Few - 1) / dense.Few, posteriors, n} {
		if team.Run(tasks, cost/float64(tasks), t.tasks[i]) != nil { // to wake a core is worth it for all of them
			return false
		}
	}
	t.p, t.ws, t.x, t.n = nil, nil, nil, n
	return true
}

// preparedCost is the number of multiplications that take as long as the probabilities of
// one posterior's input.
const preparedCost = 2500

// Prepared is the number of inputs that Prepare left and that no Load or prediction has
// replaced; AnswerTo answers for them.
func (ws *Workspace) Prepared() int { return ws.prepared.n }

// features standardises dense.Few inputs and computes their features. So few have the bits
// of one alone.
func (t *prepared) features(_, i int) error {
	p, ws := t.p, t.ws
	m, d, n := p.Bases[0].M, p.Bases[0].D, len(ws.clips)
	from, to := i*dense.Few, min((i+1)*dense.Few, n)
	for at := from; at < to; at++ {
		p.standardise(at, t.x[at*d:(at+1)*d], ws)
	}
	for g, b := range p.Bases {
		first, end := g*n+from, g*n+to
		b.FeaturesTo(ws.kx[from*m:to*m], ws.w[first*m:end*m], ws.q[first:end], to-from, ws.x[from*d:to*d], ws.xs[from*d:to*d], ws.xx[from:to])
	}
	return nil
}

// moments computes those of posterior i at all inputs, dense.Few at a time.
func (t *prepared) moments(worker, i int) error {
	p, n := t.p, len(t.ws.clips)
	h, k := i/len(p.Latent), i%len(p.Latent)
	for at := 0; at < n; at += dense.Few {
		p.momentsTo(h, k, at, min(at+dense.Few, n), n, t.scratch[worker].u, t.ws)
	}
	return nil
}

// answers computes what horizons and experts say about input i.
func (t *prepared) answers(worker, i int) error {
	p, ws := t.p, t.ws
	posteriors, experts := len(p.Bank)*len(p.Latent), p.featureExperts()*len(p.Names)
	own := t.perHorizon[i*posteriors : (i+1)*posteriors]
	p.horizonsTo(own, i, &t.scratch[worker].grid, ws)
	p.featureExpertsTo(t.experts[i*experts:(i+1)*experts], own, i, ws)
	return nil
}
