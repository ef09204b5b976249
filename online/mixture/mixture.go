package mixture

import (
	"math"
	"slices"

	"edge/model"
	"edge/online/wire"
)

// Config holds the settings of a Mixture.
type Config struct {
	Features int  // D
	Horizons int  // H
	Chain    bool // the order of the labels counts
	Always   bool // only members that use the chain answer

	Regression bool // on the features, learnt by the mixture
	Forest     bool // is among the experts; package forest learns it

	// FewLabels: labels are requested for selected samples, the hardest ones. They teach the blends
	// slowly, and the class frequencies have no weight.
	FewLabels bool

	// Weighted: samples weigh by their class, so that rare classes are found. The class
	// frequencies, which never find one, then have no weight.
	Weighted bool
}

const (
	memory  = 500   // observations that the weights of horizons and members remember
	minProb = 1e-12 // floor of a probability before its logarithm
	earned  = -30   // log weight of a member that has to earn its weight
)

// Mixture learns how the answers of a posterior are combined. It is
// single-threaded, and keeps Weights and Pool of the posterior that it was made
// with up to date.
type Mixture struct {
	cfg  Config
	view *model.Posterior

	horizons, saved []float64 // H  log weights, the largest 0; their copy for Undo
	fleet           fleet
	guest           guest
	own             own       // the answer without the fleet
	members         []float64 // log weights of the pool's members, the largest 0
	pending         []float64 // Σ log p_m(label) of the minibatch that is filling
	ordered         blend     // of model.Stack
	plain           blend
	regression      regression
	noise           noise
	frequencies     frequencies
	order           order
}

// New returns a mixture in which all members have the same weight.
func New(cfg Config, view *model.Posterior) *Mixture {
	floats := func(n int) []float64 { return make([]float64, n) }
	m := &Mixture{cfg: cfg, view: view, members: floats(len(model.Members)), pending: floats(len(model.Members))}
	view.Pool = model.Pool{Weights: floats(len(model.Members)), Order: model.Order{Last: -1}}
	m.setMembers()
	m.setPaths()
	m.startStack()
	m.frequencies.odds = firstOdds
	m.setFrequencies()
	return m
}

// weigh updates the log weights of a mixture by evidence, the sum of each
// member's log probabilities of n labels, and makes the largest 0: a Bayesian
// mixture that forgets, with a memory in observations. One is the weight of a label.
func weigh(logw, evidence []float64, n int, one, memory float64) {
	top := math.Inf(-1)
	for h := range logw {
		logw[h] = logw[h]*max(0, 1-float64(n)/memory) + one*evidence[h]
		top = max(top, logw[h])
	}
	for h := range logw {
		logw[h] -= top
	}
}

// weightsTo stores the weights of a mixture, softmax(logw), in dst. The largest log
// weight is 0.
func weightsTo(dst, logw []float64) {
	var sum float64
	for i, v := range logw {
		dst[i] = math.Exp(v)
		sum += dst[i]
	}
	for i := range dst {
		dst[i] /= sum
	}
}

// ResetHorizons gives every horizon the same weight.
func (m *Mixture) ResetHorizons() {
	m.horizons = make([]float64, m.cfg.Horizons)
	m.view.Weights = make([]float64, m.cfg.Horizons+m.fleet.horizons)
	m.setHorizons()
}

// WeighHorizons updates the weights of the horizons by evidence, the sums in nats of their
// log probabilities of the labels of a minibatch: those of the H own horizons, then
// those of the fleet's.
func (m *Mixture) WeighHorizons(evidence []float64, b Batch) {
	weigh(m.horizons, evidence[:m.cfg.Horizons], b.N, b.root(), memory)
	if m.fleet.horizons > 0 {
		weigh(m.fleet.logw, evidence[:len(m.fleet.logw)], b.N, b.root(), memory)
	}
	m.setHorizons()
}

// setHorizons stores softmax(horizons) in the view, and with a fleet that of all.
func (m *Mixture) setHorizons() {
	if m.fleet.horizons == 0 {
		weightsTo(m.view.Weights, m.horizons)
		return
	}
	weightsTo(m.fleet.own, m.horizons)
	m.own.view.Weights = m.fleet.own
	weightsTo(m.view.Weights, m.fleet.logw)
}

// Save copies the weights of the horizons, for Undo.
func (m *Mixture) Save() {
	m.saved = append(m.saved[:0], m.horizons...)
	m.fleet.saved = append(m.fleet.saved[:0], m.fleet.logw...)
}

// Undo restores the weights of the last Save.
func (m *Mixture) Undo() {
	copy(m.horizons, m.saved)
	copy(m.fleet.logw, m.fleet.saved)
	m.setHorizons()
}

// Observe adds the evidence of a sample of a class, with that weight, of which the
// last prediction of the view is in ws. The class has a latent function.
func (m *Mixture) Observe(class int, weight float64, ws *model.Workspace) {
	if paths := ws.PerPath(); paths != nil {
		c := len(m.view.Names)
		for i := range m.order.pending {
			m.order.pending[i] += weight * math.Log(max(paths[i*c+class], minProb))
		}
	}
	m.observeAnswer(class, weight, ws)
	m.own.observe(class, weight, m.view.Names, ws)
}

// observeAnswer is Observe without the order of the labels.
func (m *Mixture) observeAnswer(class int, weight float64, ws *model.Workspace) {
	answers := ws.PerMember()
	c := len(answers) / len(model.Members)
	for i := range m.pending {
		m.pending[i] += weight * math.Log(max(answers[i*c+class], minProb))
	}
	m.ordered.observe(ws.Ordered(), class, weight)
	m.plain.observe(ws.Plain(m.view), class, weight)
	m.noise.observe(class, weight, ws)
	m.frequencies.observe(class, weight, ws)
}

// HorizonEvidence is log p_h(label) of horizon h for a sample of a class, whose last
// prediction is in ws.
func (m *Mixture) HorizonEvidence(h, class int, ws *model.Workspace) float64 {
	return ws.Experts()[h*len(m.view.Names)+class]
}

// Learn updates the weights of the members and the exponents of the blends by the
// samples of the minibatch. It does so even if the model's step is refused: the
// predictions were made.
func (m *Mixture) Learn(b Batch) {
	m.learnAnswer(b)
	m.own.learn(b)
	weigh(m.order.paths[:], m.order.pending[:], b.N, b.root(), pathMemory)
	clear(m.order.pending[:])
	m.setPaths()
	m.learnForests(b)
}

// learnAnswer is Learn without the order of the labels and forests.
func (m *Mixture) learnAnswer(b Batch) {
	weigh(m.members, m.pending, b.N, b.root(), memory)
	clear(m.pending)
	m.setMembers()
	v := &m.view.Pool.Stack
	m.ordered.learn(&v.Ordered, b)
	m.plain.learn(&v.Plain, b)
	m.setStack()
	m.noise.learn(b)
	m.setNoise()
	m.frequencies.learn(b)
	m.setFrequencies()
}

// Grow makes room for the classes that were added to the view since it had old.
// CountMoves comes before they are added.
func (m *Mixture) Grow(old int) {
	m.growOrder(old)
	m.growRegression()
}

// DropClass removes class k, after CountMoves. To maps each class before to its index
// afterwards.
func (m *Mixture) DropClass(k int, to []int) {
	m.dropFromOrder(k, to)
	m.dropFromRegression(k)
}

// TrustBank lets the bank's mixture alone answer, until the stream shows that it
// should be corrected: for a model that was fitted to a set that is no stream.
func (m *Mixture) TrustBank() {
	for i, member := range model.Members {
		if m.members[i] = earned; member == (model.Member{Sharpness: 1}) {
			m.members[i] = 0
		}
	}
	m.setMembers()
	m.RestartForest()
	m.distrustStack()
	m.StartNoise(true)
	m.distrustFrequencies()
}

// EncodeHorizons appends the log weights of the horizons.
func (m *Mixture) EncodeHorizons(e *wire.Encoder) { e.Floats(m.horizons) }

// DecodeHorizons reads the values that EncodeHorizons wrote.
func (m *Mixture) DecodeHorizons(d *wire.Decoder) {
	m.ResetHorizons()
	d.Numbers(m.horizons, "horizons' weights")
	m.setHorizons()
}

// appendWithout appends s without element k of each row of c.
func appendWithout[T any](dst, s []T, k, c int) []T {
	for row := range slices.Chunk(s, c) {
		dst = append(append(dst, row[:k]...), row[k+1:]...)
	}
	return dst
}

// scale multiplies x by f.
func scale(f float64, x []float64) {
	for i := range x {
		x[i] *= f
	}
}
