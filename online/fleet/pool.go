package fleet

import (
	"cmp"
	"math"
	"slices"

	"edge/model"
)

// pooled is a member of a pool.
type pooled struct {
	*Basis
	weight float64 // its labels, of the sum of all
}

// pool returns a basis of the receiver and the taken members.
func (r *Receiver) pool(taken []*Contribution, points int) *Basis {
	return poolOf(append([]*Contribution{r.Own}, taken...), r.Units, points)
}

// poolOf returns a basis of contributions, the first one and those others with enough labels:
// the scaling of all their labels together, the mean of their kernels, and of all their
// inducing inputs those that explain most under it, at most points.
func poolOf(contributions []*Contribution, u Units, points int) *Basis {
	var all []pooled
	var total float64
	for i, c := range contributions {
		if i == 0 || c.N >= minShared {
			all = append(all, pooled{&c.Basis, float64(c.N)})
			total += float64(c.N)
		}
	}
	for i := range all {
		all[i].weight /= total
	}
	b := Basis{Scale: all[0].clone().Scale}
	if u == Raw {
		b.Scale = poolScale(all)
	}
	d := all[0].Params.D
	var candidates []float64
	for _, v := range all {
		z := make([]float64, v.Params.M*d)
		v.convert(z, &b.Scale, u)
		for i, x := range z { // far from the other members' features, or of a scaling that is not sound
			if z[i] = min(max(x, -maxInput), maxInput); x != x {
				z[i] = 0
			}
		}
		candidates = append(candidates, z...)
	}
	b.Params = model.NewParams(min(points, len(candidates)/d, maxInducing), d)
	*b.Params.LogitEps() = *all[0].Params.LogitEps()
	poolKernel(&b, all, u)
	copy(b.Params.Z(), spread(&b.Params, candidates))
	b.Params.Clamp(maxEps)
	return &b
}

// poolScale returns the scaling of all labels together, by the means and variances of the
// members' labels. It has ranks if all members have.
//
//	μ = Σ w_i·μ_i,  σ² = Σ w_i·(σ_i² + (μ_i − μ)²)
func poolScale(all []pooled) model.Scale {
	d := all[0].Params.D
	s := model.Scale{Mu: make([]float64, d), Sd: make([]float64, d), Clip: all[0].Scale.Clip}
	ranked := true
	for _, v := range all {
		for j := range d {
			s.Mu[j] += float64(v.weight * v.Scale.Mu[j])
		}
		ranked = ranked && v.Scale.Ranks != nil
	}
	for j := range d {
		var variance float64
		for _, v := range all {
			sd, off := v.Scale.Sd[j], v.Scale.Mu[j]-s.Mu[j]
			variance += v.weight * (float64(sd*sd) + float64(off*off))
		}
		if s.Sd[j] = min(math.Sqrt(variance), maxMoment); s.Sd[j] == 0 { // the squares are too small for a number
			s.Sd[j] = all[0].Scale.Sd[j]
		}
		if ranked {
			s.Ranks = append(s.Ranks, poolRanks(all, j)...)
		}
	}
	return s
}

// poolRanks returns the quantiles of feature j of all labels together: each member's
// quantiles stand for equal parts of its labels.
func poolRanks(all []pooled, j int) []float64 {
	var x, weight []float64 // of the points
	var order []int         // of x
	for _, v := range all {
		for _, point := range v.Scale.Ranks[j*model.RankPoints : (j+1)*model.RankPoints] {
			order, x, weight = append(order, len(x)), append(x, point), append(weight, v.weight/model.RankPoints)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	ranks, at, sum := make([]float64, model.RankPoints), 0, weight[order[0]]
	for i := range ranks {
		for want := float64(i) / (model.RankPoints - 1); sum < want && at < len(order)-1; {
			at++
			sum += weight[order[at]]
		}
		ranks[i] = x[order[at]]
	}
	ranks[0], ranks[len(ranks)-1] = x[order[0]], x[order[len(order)-1]]
	return ranks
}

// poolKernel stores the mean of the members' kernels in b, whose scaling is set. In raw
// units a lengthscale is converted to the standard deviations of b.
func poolKernel(b *Basis, all []pooled, u Units) {
	ell := b.Params.LogEll()
	clear(ell)
	*b.Params.LogAmp(), *b.Params.LogNoise() = 0, 0
	for _, v := range all {
		p := &v.Params
		for j, l := range p.LogEll() {
			if u == Raw {
				l += math.Log(v.Scale.Sd[j] / b.Scale.Sd[j])
			}
			ell[j] += float64(v.weight * l)
		}
		*b.Params.LogAmp() += float64(v.weight * *p.LogAmp())
		*b.Params.LogNoise() += float64(v.weight * *p.LogNoise())
	}
}

// spread returns M of the candidates: each the one with the largest variance that those
// before it leave, by a Cholesky factorisation with pivots of the kernel p. Candidates
// are rows of D inputs, M or more of them.
func spread(p *model.Params, candidates []float64) []float64 {
	d, m := p.D, p.M
	n := len(candidates) / d
	inverse := make([]float64, d)
	for j, l := range p.LogEll() {
		inverse[j] = math.Exp(-l)
	}
	left, rows := slices.Repeat([]float64{1}, n), make([]float64, 0, m*n) // in units of the amplitude
	var chosen []float64
	for k := range m {
		pivot := largest(left)
		z := candidates[pivot*d : (pivot+1)*d]
		chosen = append(chosen, z...)
		scale := math.Sqrt(max(left[pivot], model.Jitter))
		row := rows[k*n : (k+1)*n : (k+1)*n]
		rows = rows[:(k+1)*n]
		for i := range n {
			var d2 float64
			for j, v := range candidates[i*d : (i+1)*d] {
				e := (v - z[j]) * inverse[j]
				d2 += float64(e * e)
			}
			c := math.Exp(-d2 / 2)
			for q := range k {
				c -= float64(rows[q*n+i] * rows[q*n+pivot])
			}
			row[i] = c / scale
			left[i] -= float64(row[i] * row[i])
		}
		left[pivot] = math.Inf(-1)
	}
	return chosen
}
