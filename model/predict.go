package model

import (
	"fmt"
	"math"

	"edge/model/dense"
)

// Workspace is scratch memory for predictions, one per goroutine. The zero
// value is ready; it grows to the size that predictions need and then stays.
type Workspace struct {
	x, xs, xx      []float64 // n×D, n×D, n
	raw            []float32 // n×D  for the forest
	kx, w, q, u    []float64 // n×M, G×n×M, G×n, n×M
	mean, variance []float64 // n×H×C
	latent         []float64
	perHorizon     []float64
	clips          []int // n, for each input that is loaded
	row            int   // input of the last answer
	grid           Grid
	forecast       forecast
	blends         blends
	answer         answer
	contest        contest
	company        company
}

// NewWorkspace returns an empty workspace.
func NewWorkspace() *Workspace { return &Workspace{} }

// grow returns s with length n, reallocating only if its capacity is too small.
func grow(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n, n+n/4)
	}
	return s[:n]
}

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
// follow each other then counts as well. ahead 0: unknown.
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

// AnswerTo is PredictNextTo for input i of the last Load.
func (p *Posterior) AnswerTo(dst []float64, i, ahead int, ws *Workspace) (probs []float64, novelty float64) {
	classes := len(p.Names)
	dst = grow(dst, classes)
	if ws.answer = (answer{novelty: 1}); !p.Built() {
		dst = p.FrequenciesTo(dst)
		p.accompany(dst, i, ws)
		return dst, ws.answer.novelty
	}
	ws.row, ws.answer.clipped = i, ws.clips[i]
	latent := p.latentProbs(ws)
	clear(dst) // a class that was just declared has no latent function yet
	for k, class := range p.Latent {
		dst[class] = latent[k]
	}
	if p.Pool.Weights != nil {
		p.pool(dst, ahead, &ws.forecast)
		p.stack(dst, ws)
		p.mixFrequencies(dst, ws)
		ws.answer.combined = p.Pool.Stack.Plain.Exponents != nil
	}
	ws.answer.novelty = ws.novelty(p)
	p.accompany(dst, i, ws)
	return dst, ws.answer.novelty
}

// load leaves mean and variance of the latent functions at n inputs in ws.
func (p *Posterior) load(x []float64, n int, ws *Workspace) {
	p.loadGuest(x, n, ws)
	if !p.Built() {
		return
	}
	c, hc, kernels := len(p.Latent), len(p.Bank)*len(p.Latent), len(p.Bases)
	m, d := p.Bases[0].M, p.Bases[0].D
	ws.x, ws.xs, ws.xx = grow(ws.x, n*d), grow(ws.xs, n*d), grow(ws.xx, n)
	ws.kx, ws.w, ws.u, ws.q = grow(ws.kx, n*m), grow(ws.w, kernels*n*m), grow(ws.u, n*m), grow(ws.q, kernels*n)
	ws.mean, ws.variance = grow(ws.mean, n*hc), grow(ws.variance, n*hc)
	if cap(ws.clips) < n {
		ws.clips = make([]int, n)
	}
	ws.clips = ws.clips[:n]
	if p.Pool.Stack.Forest != nil {
		if cap(ws.raw) < n*d {
			ws.raw = make([]float32, n*d)
		}
		ws.raw = ws.raw[:n*d]
		RawTo(ws.raw, x)
	}
	for i := range n {
		row := ws.x[i*d : (i+1)*d]
		ws.clips[i] = p.Scale.To(row, x[i*d:(i+1)*d])
	}
	for g, b := range p.Bases {
		b.FeaturesTo(ws.kx, ws.w[g*n*m:(g+1)*n*m], ws.q[g*n:(g+1)*n], n, ws.x, ws.xs, ws.xx)
	}
	for h := range p.Bank {
		g := &p.Bank[h]
		for k := range c {
			at, mean := min(k, kernels-1), g.Mean[k*m:(k+1)*m]
			w, q := ws.w[at*n*m:(at+1)*n*m], ws.q[at*n:(at+1)*n]
			dense.MulTriTrans(n, m, w, m, g.U[k*m*m:], m, ws.u, m)
			for i := range n {
				u := ws.u[i*m : (i+1)*m]
				ws.mean[i*hc+h*c+k] = dense.Dot(mean, w[i*m:(i+1)*m])
				ws.variance[i*hc+h*c+k] = q[i] + dense.Dot(u, u)
			}
		}
	}
}

// latentProbs returns the mixture's probabilities over the latent functions
// at the input of ws.row, and leaves those of each horizon in ws.perHorizon, H×C.
func (p *Posterior) latentProbs(ws *Workspace) []float64 {
	c, eps := len(p.Latent), p.Bases[0].Eps
	ws.latent, ws.perHorizon = grow(ws.latent, c), grow(ws.perHorizon, len(p.Bank)*c)
	clear(ws.latent)
	for h := range p.Bank {
		mean, variance := ws.moments(h, p)
		probs := ws.perHorizon[h*c : (h+1)*c]
		ws.grid.Probs(probs, mean, variance, Fine)
		for k, v := range probs {
			v = (1-eps)*v + eps/float64(c)
			probs[k] = v
			ws.latent[k] += p.Weights[h] * v
		}
	}
	return ws.latent
}

// moments returns mean and variance of the latent functions, with the noise,
// under horizon h, at the input of the last answer: C each.
func (ws *Workspace) moments(h int, p *Posterior) (mean, variance []float64) {
	c := len(p.Latent)
	at := (ws.row*len(p.Bank) + h) * c
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
			b := p.Basis(k)
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
