package fleet

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// The pooled scaling is that of all labels in one.
func TestPoolScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var all []pooled
	var union []float64
	for i, n := range []int{400, 100, 300} {
		x := make([]float64, n)
		for j := range x {
			x[j] = float64(3*i) + float64(1+i)*rng.NormFloat64()
		}
		union = append(union, x...)
		all = append(all, pooled{&Basis{Params: model.Params{M: 1, D: 1}, Scale: scaleOf(x)}, float64(n) / 800})
	}
	got, want := poolScale(all), scaleOf(union)
	if math.Abs(got.Mu[0]-want.Mu[0]) > 1e-9 || math.Abs(got.Sd[0]-want.Sd[0]) > 1e-9 {
		t.Errorf("mean %g, standard deviation %g, want %g and %g", got.Mu[0], got.Sd[0], want.Mu[0], want.Sd[0])
	}
	for i, v := range got.Ranks { // 33 quantiles of each stand for its labels
		below, _ := slices.BinarySearch(slices.Sorted(slices.Values(union)), v)
		if p := float64(below) / float64(len(union)); math.Abs(p-float64(i)/(model.RankPoints-1)) > 0.04 {
			t.Errorf("quantile %d is %g, which is above %.3f of the labels", i, v, p)
		}
	}
	if !slices.IsSorted(got.Ranks) {
		t.Error("the ranks fall")
	}
	all[1].Scale.Ranks = nil
	if got := poolScale(all); got.Ranks != nil {
		t.Error("there are ranks although a member has none")
	}
}

// Whatever scalings and inducing inputs members may send, the basis of all is in range.
func TestPoolOfAnyMembers(t *testing.T) {
	for _, sd := range []float64{5e-324, 1e-200, 1, 1e100} {
		for _, mu := range []float64{0, -1e100, 1e100} {
			for _, rank := range []float64{0, 1e-30, 3e38} {
				for _, others := range []float64{5e-324, 1} { // deviations
					a, _ := member(t, "a", 9, 5, Float32, "x", "y")
					b, _ := member(t, "b", 3, 5, Float32, "x", "z")
					a.Scale.Sd[0], b.Scale.Sd[0], b.Scale.Mu[0] = others, sd, mu
					for i := range b.Params.Z() {
						b.Params.Z()[i] = 1e6 * float64(1-2*(i%2))
					}
					for _, c := range []*Contribution{a, b} {
						if rank > 0 {
							c.Scale.Ranks = make([]float64, 2*model.RankPoints)
							for i := range c.Scale.Ranks {
								c.Scale.Ranks[i] = rank * float64(i%model.RankPoints/15-1)
							}
						}
						if err := c.Basis.check(); err != nil {
							t.Fatal(err)
						}
					}
					for _, u := range []Units{Raw, Standard} {
						if err := poolOf([]*Contribution{a, b}, u, 7).check(); err != nil {
							t.Errorf("deviations %g and %g, mean %g, ranks to %g, units %d: %v", others, sd, mu, rank, u, err)
						}
					}
				}
			}
		}
	}
}

// scaleOf returns the scaling of the values of one feature.
func scaleOf(x []float64) model.Scale {
	var mean, squares float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean) / float64(len(x))
	}
	sorted := slices.Sorted(slices.Values(x))
	s := model.Scale{Mu: []float64{mean}, Sd: []float64{math.Sqrt(squares)}}
	for i := range model.RankPoints {
		s.Ranks = append(s.Ranks, sorted[i*(len(x)-1)/(model.RankPoints-1)])
	}
	return s
}

// Each input that is chosen has the largest variance given those before it, by the formula
// of the conditional variance with an inverse by Gauss and Jordan.
func TestSpread(t *testing.T) {
	const m, d, n = 5, 2, 20
	rng := rand.New(rand.NewPCG(2, 2))
	p := model.NewParams(m, d)
	p.LogEll()[0], p.LogEll()[1], *p.LogAmp() = 0.2, -0.3, 1.5
	z := make([]float64, n*d)
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	kernel := func(a, b []float64) float64 {
		var d2 float64
		for j := range a {
			d2 += (a[j] - b[j]) * (a[j] - b[j]) / math.Exp(2*p.LogEll()[j])
		}
		return math.Exp(-d2 / 2)
	}
	variance := func(x []float64, given []float64) float64 {
		k := len(given) / d
		a := square(k, k+1) // K v = c
		for i := range k {
			for j := range k {
				a[i][j] = kernel(given[i*d:i*d+d], given[j*d:j*d+d])
			}
			a[i][k] = kernel(given[i*d:i*d+d], x)
		}
		for i := range k {
			for j := range k {
				if f := a[j][i] / a[i][i]; j != i {
					for q := range k + 1 {
						a[j][q] -= f * a[i][q]
					}
				}
			}
		}
		v := 1.
		for i := range k {
			v -= a[i][k] / a[i][i] * kernel(given[i*d:i*d+d], x)
		}
		return v
	}
	got := spread(&p, z)
	if len(got) != m*d {
		t.Fatalf("%d numbers", len(got))
	}
	for k := range m {
		chosen, most := variance(got[k*d:(k+1)*d], got[:k*d]), 0.
		for i := range n {
			most = max(most, variance(z[i*d:(i+1)*d], got[:k*d]))
		}
		if chosen < most-1e-9 {
			t.Errorf("input %d has the variance %g, the largest is %g", k, chosen, most)
		}
	}
	if got := spread(&p, slices.Repeat(z[:d], m)); !slices.Equal(got, slices.Repeat(z[:d], m)) { // as often as there are
		t.Errorf("of equal inputs: %v", got)
	}
}

// The pool of members that are alike is what each of them has, and their kernels are
// those of the raw features.
func TestPool(t *testing.T) {
	const m = 6
	r := sharer(t, m, Birth{})
	c, _ := member(t, "a", 3, m, Float32, "x", "y")
	c.Basis = r.Basis.clone()
	c.N = r.Own.N
	for i := range c.Scale.Sd { // the same functions of raw features, in units twice as large
		c.Scale.Sd[i] *= 2
		c.Params.LogEll()[i] -= math.Log(2)
		for j := range m {
			z := &c.Params.Z()[j*2+i]
			*z /= 2
		}
	}
	s := NewSet(0)
	s.Put(c)
	s.Rebase = Pooled
	got, err := r.Merge(s)
	if err != nil || got.Sharing.Start == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	b := got.Sharing.Start
	for j := range r.Scale.Sd {
		if want := r.Scale.Sd[j] * math.Sqrt(2.5); math.Abs(b.Scale.Sd[j]-want) > 1e-6 || math.Abs(b.Scale.Mu[j]-r.Scale.Mu[j]) > 1e-9 {
			t.Errorf("feature %d: standard deviation %g, want %g", j, b.Scale.Sd[j], want)
		}
		if got, want := b.Params.LogEll()[j]+math.Log(b.Scale.Sd[j]), r.Params.LogEll()[j]+math.Log(r.Scale.Sd[j]); math.Abs(got-want) > 1e-6 {
			t.Errorf("feature %d: raw lengthscale %g, want %g", j, got, want)
		}
	}
	for j := range m { // each is one of the members', which have the same raw ones
		x := b.Scale.Raw(0, b.Params.Z()[j*2])
		if !slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5}, func(i int) bool { return math.Abs(r.Scale.Raw(0, r.Params.Z()[i*2])-x) < 1e-5 }) {
			t.Errorf("inducing input %d is of no member", j)
		}
	}
}
