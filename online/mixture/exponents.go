package mixture

import (
	"math"
	"slices"

	"edge/model"
	"edge/model/dense"
	"edge/online/natural"
)

// exponents learns the exponents of F experts: Newton's steps on the log probability of
// the labels, one a minibatch of n samples, with a curvature that fades.
//
//	g = w Σ_i (e_iy − E[e_i])          e_i the experts' logarithms for sample i, E under the own answer
//	F ← F + w Σ_i Cov[e_i]             at ← at + F⁻¹g
//	F ← (1 − n/memory)·F + n/memory·prior·I
//
// The weight w is Batch.root where the errors of a minibatch's samples are taken for alike.
// Elsewhere it is 1, but more than mostApart samples with like errors count as so many.
type exponents struct {
	prior float64   // precision of the start
	alike bool      // the samples of a minibatch count as √n
	at    []float64 // F
	curve []float64 // F×F  lower triangle of the curvature

	pendGrad, pendCurve []float64 // F, F×F  sums of the minibatch that is filling
	pendLL              float64   // log probability of its labels

	factor *natural.Factor // of F, by the labels since the fleet began; nil: there is none

	answer, mean, step, chol []float64 // scratch
	off, offs                []float64 // the same: C, F×C  the experts' distances from their means, the first times the answer
}

// newExponents begins with those of start, and its precision.
func newExponents(start []float64, prior float64, alike bool) exponents {
	x := emptyExponents(len(start), prior, alike)
	copy(x.at, start)
	return x
}

// emptyExponents begins with 0, and with that precision.
func emptyExponents(n int, prior float64, alike bool) exponents {
	floats := func(n int) []float64 { return make([]float64, n) }
	x := exponents{
		prior: prior, alike: alike, at: floats(n), curve: floats(n * n), pendGrad: floats(n), pendCurve: floats(n * n),
		mean: floats(n), step: floats(n), chol: floats(n * n),
	}
	for i := range n {
		x.curve[i*n+i] = prior
	}
	return x
}

// restart begins expert i again with an exponent, which nothing is known about.
func (x *exponents) restart(i int, exponent float64) {
	n := len(x.at)
	for j := range n {
		for _, at := range [2]int{i*n + j, j*n + i} {
			x.curve[at], x.pendCurve[at] = 0, 0
		}
	}
	x.at[i], x.curve[i*n+i], x.pendGrad[i] = exponent, x.prior, 0
}

// resize moves the experts: expert i is now the one that was kept[i], −1 is a new one with
// an exponent of 0. It returns the sum of the exponents of those that are not kept.
func (x *exponents) resize(kept []int) (dropped float64) {
	old, next := len(x.at), emptyExponents(len(kept), x.prior, x.alike)
	next.pendLL = x.pendLL
	n := len(kept)
	for i, row := range kept {
		if row < 0 {
			continue
		}
		next.at[i], next.pendGrad[i] = x.at[row], x.pendGrad[row]
		for j, column := range kept[:i+1] {
			if column >= 0 { // the order of the experts stays: row ≥ column
				next.curve[i*n+j], next.pendCurve[i*n+j] = x.curve[row*old+column], x.pendCurve[row*old+column]
			}
		}
	}
	for i, v := range x.at {
		if !slices.Contains(kept, i) {
			dropped += v
		}
	}
	*x = next
	return dropped
}

// observe adds a sample of class k with that weight, of which the experts' logarithms are
// given, F×C.
func (x *exponents) observe(experts []float64, k int, weight float64) {
	n := len(x.at)
	c := len(experts) / n
	x.answer = append(x.answer[:0], experts[:c]...)
	model.AnswerTo(x.answer, x.at, experts)
	x.pendLL += weight * math.Log(max(x.answer[k], minProb))
	x.off, x.offs = sized(x.off, c), sized(x.offs, n*c)
	for i := range n {
		row, off := experts[i*c:(i+1)*c], x.offs[i*c:(i+1)*c]
		x.mean[i] = dense.Dot(x.answer, row)
		x.pendGrad[i] += weight * (row[k] - x.mean[i])
		for k, v := range row {
			off[k] = v - x.mean[i]
			x.off[k] = x.answer[k] * off[k]
		}
		for j := range i + 1 {
			other, cov := x.offs[j*c:(j+1)*c], 0.0
			for k, v := range x.off {
				cov += float64(v * other[k])
			}
			x.pendCurve[i*n+j] += float64(weight * cov)
		}
	}
}

// sized returns s with length n.
func sized(s []float64, n int) []float64 { return slices.Grow(s[:0], n)[:n] }

// learn takes the step of a minibatch.
func (x *exponents) learn(b Batch) {
	size, one := len(x.at), b.most(mostApart)
	if x.alike {
		one = b.root()
	}
	fade := 1 - float64(b.N)/stackMemory
	if x.factor != nil {
		x.factor.Learn(one, x.pendCurve, x.pendGrad, x.at)
		x.factor.Fade(fade)
	}
	dense.Axpy(one, x.pendCurve, x.curve)
	copy(x.chol, x.curve)
	if dense.Cholesky(size, x.chol, size) {
		for i, g := range x.pendGrad {
			x.step[i] = one * g
		}
		dense.SolveTriTrans(1, size, x.chol, size, x.step, size)
		dense.SolveTri(1, size, x.chol, size, x.step, size)
		for i, step := range x.step {
			x.at[i] += min(max(step, -maxStackStep), maxStackStep)
		}
	}
	scale(fade, x.curve)
	for i := range size {
		x.curve[i*size+i] += (1 - fade) * x.prior
	}
	clear(x.pendGrad)
	clear(x.pendCurve)
	x.pendLL = 0
}
