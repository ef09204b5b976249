package offline

import "math"

// Constants of the pool.
const (
	poolPrior = 10    // precision of the normal prior on each exponent, around 1/2
	leastProb = 1e-12 // bounds the logs
	poolSteps = 50    // of Newton's method at most
	poolClose = 1e-8  // last step
)

// pool combines the probabilities of two kinds of models,
//
//	p(k) ∝ p_0(k)^a_0 · p_1(k)^a_1
//
// Exponents whose sum is above 1 sharpen models that are under-confident, those below 1
// flatten.
//
// Source: Genest & Zidek (1986), "Combining probability distributions", Section 3: the
// logarithmic opinion pool, its exponents by maximum a posteriori.
type pool struct{ a [2]float64 }

// probsTo stores the combination of p0 and p1, C each, in dst, and returns the log of
// their sum before it was normalised.
func (p *pool) probsTo(dst, p0, p1 []float64) float64 {
	top := math.Inf(-1)
	for k := range dst {
		dst[k] = p.a[0]*logProb(p0[k]) + p.a[1]*logProb(p1[k])
		top = max(top, dst[k])
	}
	var sum float64
	for k, z := range dst {
		dst[k] = math.Exp(z - top)
		sum += dst[k]
	}
	for k := range dst {
		dst[k] /= sum
	}
	return top + math.Log(sum)
}

func logProb(p float64) float64 { return math.Log(max(p, leastProb)) }

// fit sets the exponents that maximise
//
//	Σ_i log p(y_i) − ½·10·Σ_j (a_j − ½)²
//
// which is concave, by Newton's method with halved steps. held are the probabilities of
// each kind for samples that it has not learnt, n×C.
func (p *pool) fit(held [2][]float64, y []int) {
	c := len(held[0]) / max(len(y), 1)
	probs := make([]float64, c)
	p.a = [2]float64{0.5, 0.5}
	value, grad, curv := p.posterior(held, y, probs)
	for range poolSteps {
		det := curv[0]*curv[2] - curv[1]*curv[1]
		step := [2]float64{(grad[0]*curv[2] - grad[1]*curv[1]) / det, (grad[1]*curv[0] - grad[0]*curv[1]) / det}
		from := p.a
		for size := 1.0; ; size *= 0.5 {
			p.a = [2]float64{from[0] + size*step[0], from[1] + size*step[1]}
			v, g, h := p.posterior(held, y, probs)
			if v >= value {
				value, grad, curv = v, g, h
				break
			}
			if size < poolClose {
				p.a = from
				return
			}
		}
		if math.Abs(step[0])+math.Abs(step[1]) < poolClose {
			return
		}
	}
}

// posterior is the objective of fit, its gradient, and the negative second derivatives
// (00, 01, 11).
func (p *pool) posterior(held [2][]float64, y []int, probs []float64) (value float64, grad [2]float64, curv [3]float64) {
	c := len(probs)
	for j, a := range p.a {
		value -= 0.5 * poolPrior * (a - 0.5) * (a - 0.5)
		grad[j] = -poolPrior * (a - 0.5)
	}
	curv = [3]float64{poolPrior, 0, poolPrior}
	for i, label := range y {
		p0, p1 := held[0][i*c:(i+1)*c], held[1][i*c:(i+1)*c]
		norm := p.probsTo(probs, p0, p1)
		value += p.a[0]*logProb(p0[label]) + p.a[1]*logProb(p1[label]) - norm
		var mean [2]float64
		var square [3]float64
		for k, w := range probs {
			u, v := logProb(p0[k]), logProb(p1[k])
			mean[0], mean[1] = mean[0]+w*u, mean[1]+w*v
			square[0], square[1], square[2] = square[0]+w*u*u, square[1]+w*u*v, square[2]+w*v*v
		}
		grad[0] += logProb(p0[label]) - mean[0]
		grad[1] += logProb(p1[label]) - mean[1]
		curv[0] += square[0] - mean[0]*mean[0]
		curv[1] += square[1] - mean[0]*mean[1]
		curv[2] += square[2] - mean[1]*mean[1]
	}
	return value, grad, curv
}
