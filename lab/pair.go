package lab

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/model/dense"
)

// PairSites are two Gaussian sites for each observation i and class k ≠ y_i, one on the
// latent of the label, one on that of k, all N×C. Their columns y_i are 0.
type PairSites struct {
	S1Y, S2Y, S1K, S2K *mat.Dense
}

// NewPairSites returns sites of precision 0.
func NewPairSites(d *Data) PairSites {
	return PairSites{NewTable(d), NewTable(d), NewTable(d), NewTable(d)}
}

func (p *PairSites) tables() [4]*mat.Dense { return [4]*mat.Dense{p.S1Y, p.S2Y, p.S1K, p.S2K} }

// Rows returns the sites of those observations, copied.
func (p *PairSites) Rows(rows []int) PairSites {
	_, c := p.S1Y.Dims()
	var out [4]*mat.Dense
	for j, from := range p.tables() {
		out[j] = mat.NewDense(len(rows), c, nil)
		for at, i := range rows {
			out[j].SetRow(at, from.RawRowView(i))
		}
	}
	return PairSites{out[0], out[1], out[2], out[3]}
}

// SetRows stores the sites of those observations.
func (p *PairSites) SetRows(rows []int, sites *PairSites) {
	from := sites.tables()
	for j, to := range p.tables() {
		for at, i := range rows {
			to.SetRow(i, from[j].RawRowView(at))
		}
	}
}

// Totals adds up the sites on each latent, N×C.
func (p *PairSites) Totals(y []int) (s1, s2 *mat.Dense) {
	s1, s2 = mat.DenseCopyOf(p.S1K), mat.DenseCopyOf(p.S2K)
	for i, label := range y {
		s1.Set(i, label, mat.Sum(p.S1Y.RowView(i)))
		s2.Set(i, label, mat.Sum(p.S2Y.RowView(i)))
	}
	return s1, s2
}

// Blend replaces the sites by (1−rho) old + rho new. It returns the largest change that an
// undamped update would be, relative to the largest new value of its kind.
func (p *PairSites) Blend(next *PairSites, rho float64) (change float64) {
	to := next.tables()
	for j, old := range p.tables() {
		change = max(change, Blend(old, to[j], rho))
	}
	return change
}

// Blend replaces old by (1−rho) old + rho next, and returns max|next − old| / (1 + max|next|).
func Blend(old, next *mat.Dense, rho float64) float64 {
	a, b := old.RawMatrix().Data, next.RawMatrix().Data
	var diff, top float64
	for i, v := range b {
		diff, top = max(diff, math.Abs(v-a[i])), max(top, math.Abs(v))
		a[i] = (1-rho)*a[i] + rho*v
	}
	return diff / (1 + top)
}

// pairFloor keeps 1 − h v_c above 0 where rounding would not; in theory it is at least the
// share of the other variance in B.
const pairFloor = 1e-12

// PairFactors are the factors Φ(α) of all pairs under the cavities of their two sites:
//
//	B = q_y + v_y + q_k + v_k,  α = (a_y − a_k)/√B,  β = φ(α)/Φ(α)
//	log Z = log Φ(α),  G = ∂log Z/∂a_y = β/√B,  h = −∂²log Z/∂a² = β(β+α)/B
//	T = ∂log Z/∂v = −βα/2B
//
// All tables are N×C with 0 in column y_i; the derivative in a_k is −G. AY, VY, EY and
// AK, VK, EK are the cavities of the label's site and of that of k, with the shares e.
type PairFactors struct {
	LogZ, G, T             *mat.Dense
	AY, VY, EY, AK, VK, EK *mat.Dense
	Next                   PairSites // the sites that match the factors' moments
}

// NewPairFactors makes room for the factors of all observations.
func NewPairFactors(d *Data) *PairFactors {
	return &PairFactors{
		NewTable(d), NewTable(d), NewTable(d),
		NewTable(d), NewTable(d), NewTable(d), NewTable(d), NewTable(d), NewTable(d),
		NewPairSites(d),
	}
}

// Update computes the factors from the marginals of the latents, N×C, with the sites in
// them.
//
// q is the variance of the factor itself, N×C, or nil if the latents contain it. h is below
// 1/B, so that a site needs no floor while the other latent has a variance.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), eq. 53, with its sign for k ≠ y
// corrected.
func (f *PairFactors) Update(y []int, mean, variance, q *mat.Dense, sites *PairSites) {
	c := mean.RawMatrix().Cols
	root, alpha, logZ, beta, t := make([]float64, c), make([]float64, c), make([]float64, c), make([]float64, c), make([]float64, c)
	for i, label := range y {
		for k := range c {
			if k == label {
				alpha[k], root[k] = 0, 1
				continue
			}
			ay, vy, ey := Cavity(sites.S1Y.At(i, k), sites.S2Y.At(i, k), mean.At(i, label), variance.At(i, label))
			ak, vk, ek := Cavity(sites.S1K.At(i, k), sites.S2K.At(i, k), mean.At(i, k), variance.At(i, k))
			b := vy + vk
			if q != nil {
				b += q.At(i, label) + q.At(i, k)
			}
			root[k] = math.Sqrt(b)
			alpha[k] = (ay - ak) / root[k]
			f.AY.Set(i, k, ay)
			f.VY.Set(i, k, vy)
			f.EY.Set(i, k, ey)
			f.AK.Set(i, k, ak)
			f.VK.Set(i, k, vk)
			f.EK.Set(i, k, ek)
		}
		dense.LogPhi(logZ, alpha)
		dense.Probit(beta, t, alpha)
		for k := range c {
			if k != label {
				b := root[k] * root[k]
				f.set(i, k, logZ[k], beta[k]/root[k], t[k]/b, -0.5*beta[k]*alpha[k]/b)
			}
		}
	}
}

// set stores a factor and its sites.
func (f *PairFactors) set(i, k int, logZ, g, h, t float64) {
	f.LogZ.Set(i, k, logZ)
	f.G.Set(i, k, g)
	f.T.Set(i, k, t)
	y1, y2 := Site(g, h, f.AY.At(i, k), f.VY.At(i, k), pairFloor)
	k1, k2 := Site(-g, h, f.AK.At(i, k), f.VK.At(i, k), pairFloor)
	f.Next.S1Y.Set(i, k, y1)
	f.Next.S2Y.Set(i, k, y2)
	f.Next.S1K.Set(i, k, k1)
	f.Next.S2K.Set(i, k, k2)
}

// Evidence is Σ [log Z − D_y − D_k] over the factors, their part of EP's log evidence beside
// logN.
func (f *PairFactors) Evidence(y []int, sites *PairSites) float64 {
	var sum float64
	for i, label := range y {
		for k := range f.LogZ.RawMatrix().Cols {
			if k == label {
				continue
			}
			dy, _, _ := Normaliser(sites.S1Y.At(i, k), sites.S2Y.At(i, k), f.AY.At(i, k), f.VY.At(i, k))
			dk, _, _ := Normaliser(sites.S1K.At(i, k), sites.S2K.At(i, k), f.AK.At(i, k), f.VK.At(i, k))
			sum += f.LogZ.At(i, k) - dy - dk
		}
	}
	return sum
}
