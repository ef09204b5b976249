package model

import (
	"math"

	"edge/model/dense"
)

// Workspace is scratch memory for predictions, one per goroutine. The zero
// value is ready; it grows to what predictions need and then stays.
type Workspace struct {
	x, xs, kx, w, u []float64
	q               []float64
	xx              [1]float64
	mean, variance  []float64 // H×C
	latent          []float64
	perHorizon      []float64
	clipped         int
	grid            Grid
	belief          belief
	second          second
	bout            bout
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

// PredictNextTo is PredictTo for a sample that comes ahead samples after the
// last one that the posterior has learnt, 1 being the next: the order in which
// labels follow each other then counts, too. 0: nobody knows.
func (p *Posterior) PredictNextTo(dst, x []float64, ahead int, ws *Workspace) (probs []float64, novelty float64, err error) {
	return p.PredictAfterTo(dst, x, p.Pool.Last, ahead, ws)
}

// PredictAfterTo is PredictTo for a sample that comes ahead samples after one
// of class last. ahead 0, or last −1: nobody knows.
func (p *Posterior) PredictAfterTo(dst, x []float64, last, ahead int, ws *Workspace) (probs []float64, novelty float64, err error) {
	if err := p.CheckInput(x); err != nil {
		return dst, 0, err
	}
	classes := len(p.Names)
	ws.clipped = 0
	dst = grow(dst, classes)
	if !p.Built() {
		n := p.learnt()
		for k := range dst {
			dst[k] = p.frequency(k, n)
		}
		return dst, 1, nil
	}
	latent := p.latentProbs(x, ws)
	clear(dst) // a class that was declared a moment ago has no latent function yet
	for k, class := range p.Latent {
		dst[class] = latent[k]
	}
	if p.Pool.Weights != nil {
		p.pool(dst, last, ahead, &ws.belief)
		p.stack(dst, ws)
	}
	return dst, ws.novelty(p), nil
}

// latentProbs returns the mixture's probabilities over the latent functions,
// and leaves those of each horizon in ws.perHorizon, H×C.
func (p *Posterior) latentProbs(x []float64, ws *Workspace) []float64 {
	c, kernels := len(p.Latent), len(p.Bases)
	m, d, eps := p.Bases[0].M, p.Bases[0].D, p.Bases[0].Eps
	ws.x, ws.xs = grow(ws.x, d), grow(ws.xs, d)
	ws.kx, ws.w, ws.u = grow(ws.kx, m), grow(ws.w, kernels*m), grow(ws.u, m)
	ws.q = grow(ws.q, kernels)
	ws.mean, ws.variance = grow(ws.mean, len(p.Bank)*c), grow(ws.variance, len(p.Bank)*c)
	ws.latent, ws.perHorizon = grow(ws.latent, c), grow(ws.perHorizon, len(p.Bank)*c)
	p.Scale.To(ws.x, x)
	limit := p.Scale.Limit()
	for _, v := range ws.x {
		if v == limit || v == -limit {
			ws.clipped++
		}
	}
	for g, b := range p.Bases {
		b.FeaturesTo(ws.kx, ws.w[g*m:(g+1)*m], ws.q[g:g+1], 1, ws.x, ws.xs, ws.xx[:])
	}
	clear(ws.latent)
	for h := range p.Bank {
		g := &p.Bank[h]
		mean, variance := ws.mean[h*c:(h+1)*c], ws.variance[h*c:(h+1)*c]
		for k := range c {
			at := min(k, kernels-1)
			w := ws.w[at*m : (at+1)*m]
			mean[k] = dense.Dot(g.Mean[k*m:(k+1)*m], w)
			dense.MulTriTrans(1, m, w, m, g.U[k*m*m:], m, ws.u, m)
			variance[k] = ws.q[at] + dense.Dot(ws.u, ws.u)
		}
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

// Clipped is the number of features that the last prediction found further from
// their mean than the scale lets them be.
func (ws *Workspace) Clipped() int { return ws.clipped }

// PerHorizon returns what each horizon alone would have answered in the last
// PredictTo: H×C over the latent functions. Valid until the next call.
func (ws *Workspace) PerHorizon() []float64 { return ws.perHorizon }

// PerMember returns what each member of the pool alone would have answered in
// the last prediction: Members×C. Valid until the next call.
func (ws *Workspace) PerMember() []float64 { return ws.belief.members }

// novelty is the mean over classes of (posterior variance of f_k at x)/s,
// mixed over the horizons.
func (ws *Workspace) novelty(p *Posterior) float64 {
	c := len(p.Latent)
	var sum float64
	for h, weight := range p.Weights {
		for k, v := range ws.variance[h*c : (h+1)*c] {
			b := p.Basis(k)
			sum += weight * (v - b.Noise) / b.Amp
		}
	}
	return min(max(sum/float64(c), 0), 1)
}

// Resolution says how finely a Grid integrates.
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
