package mixture

import (
	"math"
	"slices"

	"edge/model"
	"edge/model/dense"
)

// regression learns model.Stack.Linear label by label, in order, by assumed density
// filtering with one curvature for all classes:
//
//	c   = curvature·max(C/(2(C−1))·Σ_k p_k(1 − p_k), minCurvature)·weight    p = P(y | x)
//	W_k ← W_k − weight·(p_k − [k is the label])·Vx/(1 + c·xᵀVx)
//	V   ← V − c·Vx(Vx)ᵀ/(1 + c·xᵀVx)
//
// so that features of any scale, and features that say the same, learn alike. V fades: it
// grows by 1/(1 − 1/memory) with each label, up to the variance that the weights begin with
// in the mean. Every build of the model starts the regression again with all labels of the build.
//
// Source: Opper (1998), "A Bayesian approach to on-line learning"; Böhning (1992),
// "Multinomial logistic regression algorithm", for a bound of that form with curvature 1.
type regression struct {
	x, vx []float64 // D+1  scratch: the input and its product with V
	logs  []float64 // C  scratch
}

const (
	linearCurvature    = 0.25
	linearMinCurvature = 1e-3
	linearMemory       = 5000 // labels
	linearFarthest     = 1e12 // magnitude of a variance, of 1 divided by one, and of a weight
)

// StartRegression begins with weights of 0.
func (m *Mixture) StartRegression() {
	m.regression, m.view.Pool.Stack.Linear = regression{}, model.Regression{D: m.cfg.Features}
	m.growRegression()
}

// growRegression makes room for the classes that were added to the view, once the
// model is built.
func (m *Mixture) growRegression() {
	former, c := m.view.Pool.Stack.Linear.W, len(m.view.Names)
	if !m.cfg.Regression || !m.view.Built() || len(former) >= c*(m.cfg.Features+1) {
		return
	}
	v := model.NewRegression(m.cfg.Features, c)
	if copy(v.W, former) > 0 {
		v.V = m.view.Pool.Stack.Linear.V
	}
	m.useRegression(v)
}

// useRegression goes on with v.
func (m *Mixture) useRegression(v model.Regression) {
	m.view.Pool.Stack.Linear = v
	m.regression = regression{make([]float64, v.D+1), make([]float64, v.D+1), make([]float64, len(m.view.Names))}
}

// LearnRegression learns samples in order.
//
//	x        n×D  raw
//	labels   n    classes
//	weights  n
func (m *Mixture) LearnRegression(x []float64, labels []int, weights []float64) {
	r, v := &m.regression, &m.view.Pool.Stack.Linear
	if len(v.W) == 0 {
		return
	}
	d := m.cfg.Features
	r.x[d] = 1
	for i, label := range labels {
		m.view.Scale.To(r.x[:d], x[i*d:(i+1)*d])
		model.KnownTo(r.x, r.x[:d])
		v.LogsTo(r.logs, r.x[:d])
		c := weights[i] * curvature(r.logs)
		gain := 1 / (1 + float64(c*r.project(v)))
		for k, logp := range r.logs {
			miss := math.Exp(logp)
			if k == label {
				miss--
			}
			dense.Axpy(-weights[i]*miss*gain, r.vx, v.W[k*(d+1):(k+1)*(d+1)])
		}
		r.shrink(v, c*gain)
	}
}

// curvature is c for log probabilities and a weight of 1.
func curvature(logs []float64) float64 {
	var sum float64
	for _, logp := range logs {
		p := math.Exp(logp)
		sum += float64(p * (1 - p))
	}
	c := float64(len(logs))
	return linearCurvature * max(c/(2*max(c-1, 1))*sum, linearMinCurvature)
}

// project stores Vx and returns xᵀVx.
func (r *regression) project(v *model.Regression) float64 {
	rest := v.V
	for i, x := range r.x {
		if v.Diagonal() {
			r.vx[i] = v.V[i] * x
			continue
		}
		r.vx[i] = dense.Dot(rest[:i+1], r.x)
		dense.Axpy(x, rest[:i], r.vx)
		rest = rest[i+1:]
	}
	return max(dense.Dot(r.x, r.vx), 0)
}

// shrink takes f·Vx(Vx)ᵀ off V, and lets V fade.
func (r *regression) shrink(v *model.Regression, f float64) {
	var trace float64
	for j := range r.x {
		trace += *v.VarianceAt(j)
	}
	grow := 1.
	if trace < float64(len(r.x)) {
		grow = 1 / (1 - 1./linearMemory)
	}
	rest := v.V
	for i, y := range r.vx {
		row, others := rest[:1], r.vx[i:]
		if !v.Diagonal() {
			row, others = rest[:i+1], r.vx
		}
		for j := range row {
			row[j] = grow * (row[j] - float64(f*float64(y*others[j])))
		}
		rest = rest[len(row):]
	}
}

// RescaleRegression writes the weights for the scaling of the view, in place of the one of
// before. Where one of them has ranks, which are not linear, the regression starts again.
//
//	w_j ← w_j·sd_j'/sd_j,  b ← b + Σ_j w_j·(μ_j' − μ_j)/sd_j,  V ← TVTᵀ for this w ← Tw
func (m *Mixture) RescaleRegression(before *model.Scale) {
	v, now := &m.view.Pool.Stack.Linear, &m.view.Scale
	if len(v.W) == 0 {
		return
	}
	if before.Ranks != nil || now.Ranks != nil {
		if !slices.Equal(before.Ranks, now.Ranks) || !slices.Equal(before.Mu, now.Mu) || !slices.Equal(before.Sd, now.Sd) {
			m.StartRegression()
		}
		return
	}
	d := v.D
	ratio, shift := make([]float64, d+1), make([]float64, d+1)
	for j := range d {
		ratio[j], shift[j] = now.Sd[j]/before.Sd[j], (now.Mu[j]-before.Mu[j])/before.Sd[j]
	}
	ratio[d], shift[d] = 1, 1
	m.regression.rescale(v, ratio, shift)
	if !sound(v) {
		m.StartRegression() // the scalings are too far apart
	}
}

// rescale writes weights and V for other units: weight j times ratio_j, and the constant's the sum
// of all, each times shift_j.
func (r *regression) rescale(v *model.Regression, ratio, shift []float64) {
	n := v.D + 1
	for row := 0; row < len(v.W); row += n {
		w := v.W[row : row+n]
		w[v.D] = dense.Dot(shift, w)
		for j := range v.D {
			w[j] *= ratio[j]
		}
	}
	copy(r.x, shift)
	variance, rest := r.project(v), v.V
	for i, x := range ratio {
		row, others := rest[:1], ratio[i:]
		if !v.Diagonal() {
			row, others = rest[:i+1], ratio
		}
		for j := range row {
			row[j] *= x * others[j]
		}
		rest = rest[len(row):]
	}
	if last := len(v.V) - len(r.x); !v.Diagonal() {
		for j, y := range r.vx {
			v.V[last+j] = ratio[j] * y
		}
	}
	*v.VarianceAt(v.D) = variance
}

// sound reports whether all numbers are finite, and none too large.
func sound(v *model.Regression) bool {
	far := func(v float64) bool { return !(math.Abs(v) <= linearFarthest) }
	for j := range v.D + 1 {
		if !(*v.VarianceAt(j) >= 1/linearFarthest) {
			return false
		}
	}
	return !slices.ContainsFunc(v.W, far) && !slices.ContainsFunc(v.V, far)
}

// dropFromRegression removes class k.
func (m *Mixture) dropFromRegression(k int) {
	r, v := &m.regression, &m.view.Pool.Stack.Linear
	if len(v.W) == 0 {
		return
	}
	from, to := k*(m.cfg.Features+1), (k+1)*(m.cfg.Features+1)
	v.W = slices.Concat(v.W[:from], v.W[to:])
	r.logs = r.logs[:len(r.logs)-1]
}
