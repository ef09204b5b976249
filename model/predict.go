package model

import (
	"fmt"
	"math"
	"slices"

	"edge/model/dense"
)

// Workspace is scratch memory for predictions, one per goroutine. The zero
// value is ready; it grows to the size that predictions need and then stays.
type Workspace struct {
	inputs
	u          []float64 // n×M
	latent     []float64 // C
	perHorizon []float64 // H×C
	grid       Grid
	forecast   forecast
	blends     blends
	answer     answer
	prepared   prepared
	contest    contest
	company    company
}

// inputs are the n inputs that are loaded, with their kernel values and moments.
type inputs struct {
	calibrated     []float64 // n×D  raw, in the model's units
	x, xs, xx      []float64 // n×D, n×D, n
	raw            []float32 // n×D  for the forest
	known          []float64 // n×D  for the regression
	kx, w, q       []float64 // n×M, G×n×M, G×n
	mean, variance []float64 // n×H×C
	clips          []int     // n
	predicted      predicted
}

// NewWorkspace returns an empty workspace.
func NewWorkspace() *Workspace { return &Workspace{} }

// grow returns s with length n, reallocating only if its capacity is too small.
func grow(s []float64, n int) []float64 {
	if cap(s) < n {
		return larger(n)
	}
	return s[:n]
}

// larger returns a slice of length n with some room. It is a call of its own, so that grow
// takes little code where it is inlined.
//
//go:noinline
func larger(n int) []float64 { return make([]float64, n, n+n/4) }

// PredictTo stores P(class | x) for every class in dst and returns dst and the
// novelty of x: the fraction of the latent functions' prior variance that is
// left at x, 0 to 1.
//
//	dst  grown to len(Classes()); sums to 1; empty while no class is known
//	x    D raw features
//	ws   scratch, one per goroutine
//
// Cost O(G·M(D+M/2) + H·C·M²/2) for G kernels. On ErrDimension or ErrNotFinite dst is returned as it was.
func (p *Posterior) PredictTo(dst, x []float64, ws *Workspace) (probs []float64, novelty float64, err error) {
	return p.PredictNextTo(dst, x, 0, ws)
}

// PredictNextTo is PredictTo for a sample whose label comes ahead labels after the
// last one that the posterior knows, 1 being the next: the order in which labels
// follow each other then counts as well. ahead 0: unknown. Shapes and errors are those of PredictTo.
func (p *Posterior) PredictNextTo(dst, x []float64, ahead int, ws *Workspace) (probs []float64, novelty float64, err error) {
	if err := p.CheckInput(x); err != nil {
		return dst, 0, err
	}
	p.load(x, 1, ws)
	probs, novelty = p.AnswerTo(dst, 0, ahead, ws)
	return probs, novelty, nil
}

// Load prepares n inputs for AnswerTo (batch prediction): the part that their
// predictions share is computed once, by products of matrices.
//
//	x    n×D raw features, one input behind the other
//	ws   scratch, one per goroutine; holds the inputs until the next Load or prediction
//
// On ErrDimension or ErrNotFinite, whose text has the number of the input, ws holds
// no input.
func (p *Posterior) Load(x []float64, n int, ws *Workspace) error {
	d := p.Dim()
	if len(x) != n*d {
		return fmt.Errorf("model: %d inputs have %d features, want %d each: %w", n, len(x), d, ErrDimension)
	}
	for i := range n {
		if err := p.CheckInput(x[i*d : (i+1)*d]); err != nil {
			return fmt.Errorf("model: input %d: %w", i, err)
		}
	}
	p.load(x, n, ws)
	return nil
}

// AnswerTo is PredictNextTo for input i of the last Load, which has checked it.
func (p *Posterior) AnswerTo(dst []float64, i, ahead int, ws *Workspace) (probs []float64, novelty float64) {
	if p.Built() && p.Pool.Weights != nil {
		p.foresee(ahead, &ws.forecast)
	}
	return p.answerTo(dst, i, ws)
}

// answerTo is AnswerTo with the forecast in ws.
func (p *Posterior) answerTo(dst []float64, i int, ws *Workspace) (probs []float64, novelty float64) {
	classes := len(p.Names)
	dst = grow(dst, classes)
	if ws.answer = (answer{row: i, novelty: 1}); !p.Built() {
		dst = p.FrequenciesTo(dst)
		p.accompany(dst, i, ws)
		return dst, ws.answer.novelty
	}
	ws.answer.clipped = ws.clips[i]
	latent := p.latentProbs(ws)
	clear(dst) // a class that was just declared has no latent function yet
	for k, class := range p.Latent {
		dst[class] = latent[k]
	}
	if p.Pool.Weights != nil {
		p.pool(dst, &ws.forecast)
		p.stack(dst, ws)
		p.mixNoise(dst, ws)
		p.mixFrequencies(dst, ws)
		p.mixOwn(dst, ws)
		ws.answer.combined = p.Pool.Stack.Plain.Exponents != nil
	}
	ws.answer.novelty = ws.novelty(p)
	p.accompany(dst, i, ws)
	return dst, ws.answer.novelty
}

// load leaves mean and variance of the latent functions at n inputs in ws.
func (p *Posterior) load(x []float64, n int, ws *Workspace) {
	ws.predicted.n = 0
	x = p.calibrated(x, ws)
	p.loadFleet(x, n, ws)
	if !p.Built() {
		return
	}
	m, d := p.Bases[0].M, p.Bases[0].D
	p.makeRoom(n, ws)
	ws.u = grow(ws.u, n*m)
	for i := range n {
		p.standardise(i, x[i*d:(i+1)*d], ws)
	}
	for g, b := range p.Bases {
		b.FeaturesTo(ws.kx, ws.w[g*n*m:(g+1)*n*m], ws.q[g*n:(g+1)*n], n, ws.x, ws.xs, ws.xx)
	}
	for h := range p.Bank {
		for k := range p.Latent {
			p.momentsTo(h, k, 0, n, n, ws.u, ws)
		}
	}
}

// makeRoom makes room for n inputs of a built model.
func (p *Posterior) makeRoom(n int, ws *Workspace) {
	hc, kernels := len(p.Bank)*len(p.Latent), len(p.Bases)
	m, d := p.Bases[0].M, p.Bases[0].D
	for _, s := range [...]struct {
		s    *[]float64
		each int
	}{{&ws.x, d}, {&ws.xs, d}, {&ws.xx, 1}, {&ws.kx, m}, {&ws.w, kernels * m}, {&ws.q, kernels}, {&ws.mean, hc}, {&ws.variance, hc}} {
		*s.s = grow(*s.s, n*s.each)
	}
	ws.clips = slices.Grow(ws.clips[:0], n)[:n]
	if p.Pool.Stack.asksForests() {
		ws.raw = slices.Grow(ws.raw[:0], n*d)[:n*d]
	}
	if len(p.Pool.Stack.Linear.W) > 0 {
		ws.known = grow(ws.known, n*d)
	}
}

// standardise stores input i, D raw features, as the experts need it.
func (p *Posterior) standardise(i int, x []float64, ws *Workspace) {
	d := len(x)
	if p.Pool.Stack.asksForests() {
		RawTo(ws.rawInput(i, d), x)
	}
	ws.clips[i] = p.Scale.To(ws.x[i*d:(i+1)*d], x)
	if len(p.Pool.Stack.Linear.W) > 0 {
		KnownTo(ws.known[i*d:(i+1)*d], ws.x[i*d:(i+1)*d])
	}
}

// rawInput returns input i as a forest compares it, D.
func (ws *inputs) rawInput(i, d int) []float32 { return ws.raw[i*d : (i+1)*d] }

// momentsTo leaves mean and variance of latent function k under horizon h at the inputs
// from from to to, of n, in ws.
//
//	u  scratch, (to − from)×M
func (p *Posterior) momentsTo(h, k, from, to, n int, u []float64, ws *Workspace) {
	g, m, c, hc := &p.Bank[h], p.Bases[0].M, len(p.Latent), len(p.Bank)*len(p.Latent)
	basis, mean := min(k, len(p.Bases)-1), g.Mean[k*m:(k+1)*m]
	w, q := ws.w[(basis*n+from)*m:(basis*n+to)*m], ws.q[basis*n+from:basis*n+to]
	dense.MulTriTrans(to-from, m, w, m, g.U[k*m*m:], m, u, m)
	for i := range to - from {
		row, at := u[i*m:(i+1)*m], (from+i)*hc+h*c+k
		ws.mean[at] = dense.Dot(mean, w[i*m:(i+1)*m])
		ws.variance[at] = q[i] + dense.Dot(row, row)
	}
}

// latentProbs returns the mixture's probabilities over the latent functions
// at the input of ws.answer.row, and leaves those of each horizon in ws.perHorizon, H×C.
func (p *Posterior) latentProbs(ws *Workspace) []float64 {
	c, all := len(p.Latent), len(p.Bank)*len(p.Latent)
	ws.latent, ws.perHorizon = grow(ws.latent, c), grow(ws.perHorizon, all)
	if ws.predicted.n > 0 {
		copy(ws.perHorizon, ws.predicted.perHorizon[ws.answer.row*all:])
	} else {
		p.horizonsTo(ws.perHorizon, ws.answer.row, &ws.grid, ws)
	}
	clear(ws.latent)
	for h := range p.Bank {
		for k, v := range ws.perHorizon[h*c : (h+1)*c] {
			ws.latent[k] += p.Weights[h] * v
		}
	}
	return ws.latent
}

// horizonsTo stores the answer of each horizon alone to input i in dst, H×C over the latent
// functions.
func (p *Posterior) horizonsTo(dst []float64, i int, grid *Grid, ws *Workspace) {
	c, eps := len(p.Latent), p.Bases[0].Eps
	for h := range p.Bank {
		mean, variance := ws.momentsOf(i, h, p)
		probs := dst[h*c : (h+1)*c]
		grid.Probs(probs, mean, variance, Fine)
		for k, v := range probs {
			probs[k] = (1-eps)*v + eps/float64(c)
		}
	}
}

// moments returns mean and variance of the latent functions, with the noise,
// under horizon h, at the input of the last answer: C each.
func (ws *Workspace) moments(h int, p *Posterior) (mean, variance []float64) {
	return ws.momentsOf(ws.answer.row, h, p)
}

// momentsOf returns those at input i.
func (ws *Workspace) momentsOf(i, h int, p *Posterior) (mean, variance []float64) {
	c := len(p.Latent)
	at := (i*len(p.Bank) + h) * c
	return ws.mean[at : at+c], ws.variance[at : at+c]
}

// Clipped is the number of features that the last prediction found further from
// their mean than the scale lets them be.
func (ws *Workspace) Clipped() int { return ws.answer.clipped }

// PerHorizon returns what each horizon alone would have answered in the last
// PredictTo: H×C over the latent functions. Valid until the next call.
func (ws *Workspace) PerHorizon() []float64 { return ws.perHorizon }

// PerMember returns what each member of the pool alone would have answered in
// the last prediction: Members×C. Valid until the next call.
func (ws *Workspace) PerMember() []float64 { return ws.forecast.members }

// novelty is the mean over classes of (posterior variance of f_k at x)/s,
// mixed over the horizons.
func (ws *Workspace) novelty(p *Posterior) float64 {
	c := len(p.Latent)
	var sum float64
	for h, weight := range p.Weights {
		_, variance := ws.moments(h, p)
		for k, v := range variance {
			b := p.basis(k)
			sum += weight * (v - b.Noise) / b.Amp
		}
	}
	return min(max(sum/float64(c), 0), 1)
}

// Resolution is the number of nodes of a Grid.
type Resolution struct {
	min, max int
	width    float64 // distance of the nodes in the smallest standard deviation
}

// Fine is for probabilities that leave the program (largest absolute error
// 6e-5, typically 1e-7), Coarse for those inside a site (typically 1e-4).
var (
	Fine   = Resolution{min: 32, max: 1024, width: 1.25}
	Coarse = Resolution{min: 16, max: 512, width: 2.5}
)

// span is how many standard deviations the grid covers: beyond, a class is
// taken to be certainly below or above.
const span = 5

// Grid integrates the probability that each of C independent Gaussians is the
// largest. The zero value is ready; it keeps its scratch memory.
type Grid struct {
	ratio []float64 // C×nodes  density over distribution function
	prod  []float64 // nodes    product of the distribution functions
}

// Probs stores in dst the probability that class k has the largest latent value,
//
//	p_k = ∫ N(f; mean_k, var_k) Π_{l≠k} Φ((f−mean_l)/√var_l) df,   Σ p_k = 1
//
// by the midpoint rule on one grid that all classes share, from the largest
// lower end mean_k − 5√var_k (the winner is above all others) to the largest
// upper end. The number of nodes follows from the width and the smallest
// standard deviation. Two classes have a closed form.
//
//	dst, mean, variance  C
//
// The products need no logarithms: no node lies below −5 standard deviations
// of any class, and the class with the largest upper end keeps the sum away
// from zero.
func (g *Grid) Probs(dst, mean, variance []float64, res Resolution) {
	c := len(mean)
	if c == 1 {
		dst[0] = 1
		return
	}
	if c == 2 {
		z := (mean[0] - mean[1]) / math.Sqrt(variance[0]+variance[1]) / math.Sqrt2
		dst[0], dst[1] = 0.5*math.Erfc(-z), 0.5*math.Erfc(z)
		return
	}
	lo, hi, narrow := math.Inf(-1), math.Inf(-1), math.Inf(1)
	for k, v := range variance {
		sd := math.Sqrt(v)
		lo, hi, narrow = max(lo, mean[k]-span*sd), max(hi, mean[k]+span*sd), min(narrow, sd)
	}
	nodes := res.min
	if want := (hi - lo) / (res.width * narrow); want > float64(nodes) {
		nodes = int(math.Ceil(min(want, float64(res.max))))
	}
	g.probs(dst, mean, variance, lo, hi, nodes)
}

func (g *Grid) probs(dst, mean, variance []float64, lo, hi float64, nodes int) {
	c := len(mean)
	g.ratio, g.prod = grow(g.ratio, c*nodes), grow(g.prod, nodes)
	prod := g.prod
	for i := range prod {
		prod[i] = 1
	}
	step := (hi - lo) / float64(nodes)
	for k := range c {
		inv := 1 / math.Sqrt(variance[k])
		z0, dz := (lo+0.5*step-mean[k])*inv, step*inv
		dense.NormalGrid(g.ratio[k*nodes:(k+1)*nodes], prod, z0, dz, inv)
	}
	var sum float64
	for k := range c {
		dst[k] = dense.Dot(g.ratio[k*nodes:(k+1)*nodes], prod)
		sum += dst[k]
	}
	for k := range c {
		dst[k] /= sum
	}
}
