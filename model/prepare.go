package model

import "edge/model/dense"

// predicted holds the probabilities of horizons and experts for the n inputs of Prepare.
type predicted struct {
	n          int       // 0: Prepare was not the last one that loaded inputs
	perHorizon []float64 // n×H×C
	experts    []float64 // n×E×C  see featureExperts
}

// prepared holds the answers for n inputs that are computed together.
type prepared struct {
	replies []reply // of which n are in use
	scratch []preparing

	p     *Posterior
	ws    *Workspace
	x     []float64 // n×D
	tasks [3]func(worker, i int) error
}

// reply is an answer, with the workspace that it leaves.
type reply struct {
	ws      Workspace
	probs   []float64
	novelty float64
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

// Foresee gives ws the forecast of the present order of the labels for input i of the next
// Prepare, whose label comes ahead labels after the last one that p knows; 0: unknown.
func (p *Posterior) Foresee(i, ahead int, ws *Workspace) {
	t := &ws.prepared
	for len(t.replies) <= i {
		t.replies = append(t.replies, reply{})
	}
	if p.Pool.Weights != nil {
		p.foresee(ahead, &t.replies[i].ws.forecast)
	}
}

// Prepare answers inputs as PredictNextTo would answer each alone, to the last bit, at the
// places in the order of the labels that Foresee took before, for each of them. Load's
// products of matrices round in another way.
//
//	x   n×D raw features that CheckInput accepts
//	ws  scratch; Reply returns the answers until the next Load or prediction
//
// It reports false, and nothing is prepared, if class frequencies or a fleet answer.
func (p *Posterior) Prepare(x []float64, n int, team Team, ws *Workspace) bool {
	t, s := &ws.prepared, &ws.predicted
	s.n = 0
	if !p.Built() || p.Fleet != nil {
		return false
	}
	c, m, d := len(p.Latent), p.Bases[0].M, p.Bases[0].D
	posteriors, experts := len(p.Bank)*c, p.featureExperts()*len(p.Names)
	p.makeRoom(n, ws)
	s.perHorizon, s.experts = grow(s.perHorizon, n*posteriors), grow(s.experts, n*experts)
	if len(t.scratch) < team.Cores() {
		t.scratch = make([]preparing, team.Cores())
	}
	for i := range t.scratch {
		t.scratch[i].u = grow(t.scratch[i].u, dense.Few*m)
	}
	if t.tasks[0] == nil {
		t.tasks = [...]func(worker, i int) error{t.features, t.moments, t.answers}
	}
	t.p, t.ws, t.x, s.n = p, ws, p.calibrated(x, ws), n
	cost := float64(n) * float64(2*m*(d+m)+posteriors*(m*m/2+preparedCost))
	for i, tasks := range [...]int{(n + dense.Few - 1) / dense.Few, posteriors, n} {
		if team.Run(tasks, cost/float64(tasks), t.tasks[i]) != nil { // to wake a core is worth it for all of them
			s.n = 0
			return false
		}
	}
	t.p, t.ws, t.x = nil, nil, nil
	return true
}

// preparedCost is the number of multiplications that take as long as the probabilities of
// one posterior's input.
const preparedCost = 2500

// Prepared is the number of inputs that Prepare answered and that no Load or prediction has
// replaced.
func (ws *Workspace) Prepared() int { return ws.predicted.n }

// Reply returns the probabilities of C classes and the novelty for input i of Prepare, and the
// workspace as it was after that answer. All are valid until the next Prepare.
func (ws *Workspace) Reply(i int) (probs []float64, novelty float64, after *Workspace) {
	r := &ws.prepared.replies[i]
	return r.probs, r.novelty, &r.ws
}

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

// answers computes the probabilities of horizons and experts for input i, and the answer.
func (t *prepared) answers(worker, i int) error {
	p, ws, r := t.p, t.ws, &t.replies[i]
	posteriors, experts := len(p.Bank)*len(p.Latent), p.featureExperts()*len(p.Names)
	own := ws.predicted.perHorizon[i*posteriors : (i+1)*posteriors]
	p.horizonsTo(own, i, &t.scratch[worker].grid, ws)
	p.featureExpertsTo(ws.predicted.experts[i*experts:(i+1)*experts], own, i, ws)
	r.ws.inputs = ws.inputs
	r.probs, r.novelty = p.answerTo(r.probs, i, &r.ws)
	return nil
}
