package fleet

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/model/dense"
)

// receiver returns one with a basis of its own.
func receiver(t testing.TB, m int) *Receiver {
	c, _ := member(t, "own", 50, m, Float32, "x", "y")
	return &Receiver{Member: "own", Features: 7, Inputs: 2, Basis: c.Basis, Horizons: c.Horizons, Own: c, Trust: DefaultTrust}
}

func mergeOf(t testing.TB, r *Receiver, all ...*Contribution) *Merge {
	t.Helper()
	s := NewSet(0)
	for _, c := range all {
		s.Put(c)
	}
	m, err := r.Merge(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func bits(m *Merge) []byte {
	data, _ := m.AppendBinary(nil)
	return data
}

// The order and the repetition of contributions, and older versions among them, change
// no bit of a merge; and after a member has left, it is as if it had never been there.
func TestMergeIsAFunctionOfTheSet(t *testing.T) {
	r := receiver(t, 7)
	var newest, older []*Contribution
	for i := range 6 {
		name := fmt.Sprint("m", i)
		c, _ := member(t, name, uint64(10+i), 4+i%3, Bfloat16, "x", "y", fmt.Sprint("z", i%2))
		o, _ := member(t, name, uint64(3+i), 5, Float32, "x", "y")
		newest, older = append(newest, c), append(older, o)
	}
	want := bits(mergeOf(t, r, newest...))
	without := bits(mergeOf(t, r, slices.Concat(newest[:2], newest[3:])...))
	if bytes.Equal(want, without) {
		t.Fatal("a member makes no difference")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		s := NewSet(0)
		for range 60 {
			if i := rng.IntN(len(newest)); rng.IntN(2) == 0 {
				s.Put(older[i])
			} else {
				s.Put(newest[i])
			}
		}
		for _, i := range rng.Perm(len(newest)) {
			s.Put(newest[i])
			s.Put(older[i])
		}
		if m, err := r.Merge(s); err != nil || !bytes.Equal(bits(m), want) {
			t.Fatalf("another order, another merge (%v)", err)
		}
		s.Remove("m2")
		if m, err := r.Merge(s); err != nil || !bytes.Equal(bits(m), without) {
			t.Fatalf("a removed member leaves a trace (%v)", err)
		}
	}
	if m := mergeOf(t, r); m.Taken() != 0 || len(m.A)+len(m.Classes) != 0 {
		t.Error("the merge of an empty set has sums")
	}
}

// The sums are those of the formula, T = L_i⁻¹c(Z_i, Z)L⁻ᵀ, evaluated here by dense
// matrices without any of the package's routines. Long: the formula once more.
func TestProjection(t *testing.T) {
	const m, mi = 6, 5
	r := receiver(t, m)
	r.Scale = model.Scale{Mu: []float64{0.5, -1}, Sd: []float64{1.5, 0.7}}
	c, sites := member(t, "a", 3, mi, Float32, "x", "y")
	got := mergeOf(t, r, c)
	if got.Taken() != 1 {
		t.Fatalf("refused: %+v", got.Members)
	}
	kernel := func(p *model.Params, a, b []float64) float64 {
		var d2 float64
		for j := range a {
			l := math.Exp(p.LogEll()[j])
			d2 += (a[j] - b[j]) * (a[j] - b[j]) / (l * l)
		}
		return math.Exp(*p.LogAmp()) * math.Exp(-d2/2)
	}
	// cholesky returns L of c(Z, Z) + jitter.
	cholesky := func(p *model.Params) [][]float64 {
		n := p.M
		k := square(n, n)
		for i := range n {
			for j := range n {
				k[i][j] = kernel(p, p.Z()[i*2:i*2+2], p.Z()[j*2:j*2+2])
			}
			k[i][i] += model.Jitter * math.Exp(*p.LogAmp())
		}
		l := square(n, n)
		for i := range n {
			for j := range i + 1 {
				v := k[i][j]
				for q := range j {
					v -= l[i][q] * l[j][q]
				}
				if i == j {
					l[i][i] = math.Sqrt(v)
				} else {
					l[i][j] = v / l[j][j]
				}
			}
		}
		return l
	}
	from, to := cholesky(&c.Params), cholesky(&r.Params)
	z := slices.Clone(c.Params.Z()) // of the sender, in the receiver's units
	for i := range z {
		z[i] = (z[i]*c.Scale.Sd[i%2] + c.Scale.Mu[i%2] - r.Scale.Mu[i%2]) / r.Scale.Sd[i%2]
	}
	cross := square(mi, m)
	for i := range mi {
		for j := range m {
			cross[i][j] = kernel(&r.Params, z[i*2:i*2+2], r.Params.Z()[j*2:j*2+2])
		}
	}
	// T by forward substitution from both sides.
	for j := range m {
		for i := range mi {
			for q := range i {
				cross[i][j] -= from[i][q] * cross[q][j]
			}
			cross[i][j] /= from[i][i]
		}
	}
	for i := range mi {
		for j := range m {
			for q := range j {
				cross[i][j] -= to[j][q] * cross[i][q]
			}
			cross[i][j] /= to[j][j]
		}
	}
	for k, name := range got.Classes {
		e, linear := make([]float64, m*m), make([]float64, m)
		got.Sum(0, k, e, linear)
		a, b := sites[name].a, sites[name].b
		for i := range m {
			var wantB float64
			for p := range mi {
				wantB += cross[p][i] * b[p]
			}
			if math.Abs(linear[i]-wantB) > 1e-3*(1+math.Abs(wantB)) {
				t.Errorf("class %s: e %d is %g, want %g", name, i, linear[i], wantB)
			}
			for j := range i + 1 {
				var want float64
				for p := range mi {
					for q := range mi {
						v := a[max(p, q)*mi+min(p, q)]
						if p == q {
							v += ridge
						}
						want += cross[p][i] * v * cross[q][j]
					}
				}
				if math.Abs(e[i*m+j]-want) > 1e-3*(1+math.Abs(want)) {
					t.Errorf("class %s: E %d,%d is %g, want %g", name, i, j, e[i*m+j], want)
				}
			}
		}
	}
}

func square(n, m int) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, m)
	}
	return rows
}

// On the basis of the receiver nothing is projected; a merge on its own basis adds the
// numbers that it holds, and on another one what the members' own projection would give.
func TestMergeOnAnotherBasis(t *testing.T) {
	r := receiver(t, 6)
	a, _ := member(t, "a", 3, 6, Float32, "x", "y")
	m := mergeOf(t, r, a)
	n := 0
	if err := m.On(&m.Basis, Raw, func(h, k int, e, linear []float64) {
		want, wantB := make([]float64, 36), make([]float64, 6)
		m.Sum(h, k, want, wantB)
		if !slices.Equal(e, want) || !slices.Equal(linear, wantB) {
			t.Errorf("horizon %d, class %d: the sums have changed", h, k)
		}
		n++
	}); err != nil || n != 6 {
		t.Fatalf("%d sums, %v", n, err)
	}
	a.Basis, r.Own = r.Basis, nil // written in the receiver's own basis: the factor's product remains
	same := mergeOf(t, r, a)
	e, linear := make([]float64, 36), make([]float64, 6)
	same.Sum(0, 0, e, linear)
	factor, b := make([]float64, 36), make([]float64, 6)
	a.Factor(0, 0, factor, b)
	if got, want := e[0], factor[0]*factor[0]; math.Abs(got/want-1) > 1e-6 {
		t.Errorf("E of the same basis begins with %g, want %g", got, want)
	}
	// From a's basis to r's in one step or by way of On: T of a merge in a's basis.
	a, _ = member(t, "a", 3, 6, Float32, "x", "y")
	direct := mergeOf(t, &Receiver{Features: 7, Inputs: 2, Basis: r.Basis, Horizons: r.Horizons}, a)
	guest := mergeOf(t, &Receiver{Features: 7, Inputs: 2, Horizons: r.Horizons}, a)
	if !guest.Basis.equal(&a.Basis, Raw) {
		t.Fatal("the basis of the only member was not taken")
	}
	if err := guest.On(&r.Basis, Raw, func(h, k int, got, gotB []float64) {
		want, wantB := make([]float64, 36), make([]float64, 6)
		direct.Sum(h, k, want, wantB)
		for i := range 6 {
			for j := range i + 1 {
				if math.Abs(got[i*6+j]-want[i*6+j]) > 1e-4*(1+math.Abs(want[i*6+j])) {
					t.Errorf("E %d,%d is %g, directly %g", i, j, got[i*6+j], want[i*6+j])
				}
			}
			if math.Abs(gotB[i]-wantB[i]) > 1e-4*(1+math.Abs(wantB[i])) {
				t.Errorf("e %d is %g, directly %g", i, gotB[i], wantB[i])
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// Each reason to refuse a contribution.
func TestRefusals(t *testing.T) {
	r := receiver(t, 6)
	own, _ := member(t, "own", 3, 6, Bfloat16, "x", "y")
	features, _ := member(t, "features", 3, 6, Bfloat16, "x", "y")
	features.Features = 8
	shape, _ := member(t, "shape", 3, 6, Bfloat16, "x", "y")
	shape.Horizons[0], shape.Horizons[1], shape.Horizons[2] = 90, 50, 20
	sure, _ := member(t, "sure", 3, 6, Bfloat16, "x", "y")
	*sure.Params.LogAmp() = -4 // at which the same sites say 55 times as much
	good, _ := member(t, "good", 3, 6, Bfloat16, "x", "y")
	m := mergeOf(t, r, own, features, shape, sure, good)
	want := map[string]Reason{"own": Own, "features": OtherInputs, "shape": OtherShape, "sure": TooSure, "good": None}
	for _, v := range m.Members {
		if v.Refused != want[v.Name] {
			t.Errorf("%s: refused for %q, want %q", v.Name, v.Refused, want[v.Name])
		}
	}
	alone := mergeOf(t, r, good)
	if m.Taken() != 1 || !slices.Equal(m.A, alone.A) || !slices.Equal(m.B, alone.B) {
		t.Error("refused contributions are in the sums")
	}
}

// A member that says it has learnt far more labels than it has, or of which the horizon has
// forgotten most of them, does not make others too sure: a newcomer with two members takes
// both, unless one of them claims more in all.
func TestClaims(t *testing.T) {
	for name, test := range map[string]struct {
		change func(good, other *Contribution)
		own    bool
		want   []Reason // of good and other
	}{
		"equal":                   {func(_, _ *Contribution) {}, false, []Reason{None, None}},
		"labels":                  {func(_, other *Contribution) { other.N = 1_000_000 }, false, []Reason{None, None}},
		"labels, own ones":        {func(_, other *Contribution) { other.N = 1_000_000 }, true, []Reason{None, None}},
		"few labels":              {func(_, other *Contribution) { other.N = 1 }, false, []Reason{None, None}},
		"precision":               {func(_, other *Contribution) { *other.Params.LogAmp() = -4 }, false, []Reason{None, TooSure}},
		"precision, own ones":     {func(_, other *Contribution) { *other.Params.LogAmp() = -4 }, true, []Reason{None, TooSure}},
		"precision and labels":    {func(_, other *Contribution) { *other.Params.LogAmp(), other.N = -5, 1000 }, false, []Reason{None, TooSure}},
		"precision of few labels": {func(good, other *Contribution) { *other.Params.LogAmp(), good.N = -4, 10_000 }, false, []Reason{None, TooSure}},
	} {
		r := receiver(t, 6)
		if !test.own {
			r.Own = nil
		}
		good, _ := member(t, "a", 3, 6, Float32, "x", "y")
		other, _ := member(t, "b", 4, 6, Float32, "x", "y")
		test.change(good, other)
		m := mergeOf(t, r, good, other)
		if got := []Reason{m.Members[0].Refused, m.Members[1].Refused}; !slices.Equal(got, test.want) {
			t.Errorf("%s: refused for %q, want %q", name, got, test.want)
		}
	}
}

// The test of own labels takes a contribution that predicts them and refuses one that
// contradicts them; labels of a class with few own labels do not count against what is
// known about others. Long: the members are made here as well.
func TestTrust(t *testing.T) {
	const m, n = 6, 80
	r := receiver(t, m)
	rng := rand.New(rand.NewPCG(4, 4))
	w := &Window{Classes: []string{"x", "y", "z"}, Known: []bool{true, true, false}, A: make([]float64, 3*m*m), B: make([]float64, 3*m), Eps: 0.01}
	basis := model.NewBasis(m, 2)
	if _, err := basis.Set(&r.Params); err != nil {
		t.Fatal(err)
	}
	x := make([]float64, 2*n)
	for i := range n {
		k := rng.IntN(2)
		w.Y = append(w.Y, k)
		x[2*i], x[2*i+1] = 1.5*float64(1-2*k)+0.4*rng.NormFloat64(), 0.4*rng.NormFloat64()
	}
	w.W, w.Q = make([]float64, n*m), make([]float64, n)
	basis.FeaturesTo(make([]float64, n*m), w.W, w.Q, n, x, make([]float64, 2*n), make([]float64, n))
	r.Window, r.Own = w, nil
	// teacher has sites that say of each point of the window whether it is x.
	teacher := func(name string, sign float64, classes ...string) *Contribution {
		c, _ := member(t, name, 3, m, Float32, classes...)
		c.Basis = r.Basis
		for h := range c.Horizons {
			for k, class := range classes {
				a, b, s1 := make([]float64, m*m), make([]float64, m), slices.Repeat([]float64{1}, n)
				dense.WeightedGram(n, m, s1, 1, w.W, m, a, m)
				for i, y := range w.Y {
					f := -1.
					if w.Classes[y] == class {
						f = 1
					}
					dense.Axpy(sign*f, w.W[i*m:(i+1)*m], b)
				}
				if class == "z" { // is everywhere very probable
					for i := range b {
						b[i] = 0
						for _, v := range w.W[i*m : (i+1)*m] {
							b[i] += 40 * v
						}
					}
				}
				if err := c.Put(h, k, a, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		return c
	}
	got := mergeOf(t, r, teacher("good", 1, "x", "y"), teacher("bad", -1, "x", "y"), teacher("more", 1, "x", "y", "z"))
	for i, want := range []Reason{Distrusted, None, None} { // bad, good, more
		if v := got.Members[i]; v.Refused != want || !v.Tested || (v.Trust < 0) != (want == Distrusted) {
			t.Errorf("%s: refused for %q, want %q; trust %g", v.Name, v.Refused, want, v.Trust)
		}
	}
	if good, more := got.Members[1].Trust, got.Members[2].Trust; good != more {
		t.Errorf("trust %g, with a class that does not come %g", good, more)
	}
	// Of a member that knows one class of the receiver's, own labels tell less.
	r.Trust = got.Members[0].Trust + 1
	for counts, want := range map[uint64]Reason{MinKnown: Distrusted, MinKnown - 1: None} {
		bad := teacher("bad", -1, "x", "y")
		bad.Counts = []uint64{40, counts}
		if v := mergeOf(t, r, bad).Members[0]; v.Refused != want || v.Trust != got.Members[0].Trust {
			t.Errorf("%d labels of the second class: refused for %q, want %q; trust %g", counts, v.Refused, want, v.Trust)
		}
	}
	r.Trust = DefaultTrust
	// Mean and standard error by the textbook, for the good one.
	trial, err := newTrial(w, m)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newProjector(&r.Basis, Raw)
	good := teacher("good", 1, "x", "y")
	if err := p.from(&good.Basis); err != nil {
		t.Fatal(err)
	}
	add := func(class string, a, b []float64) {
		if k := slices.Index(good.Classes, class); k >= 0 {
			ea, eb := make([]float64, m*m), make([]float64, m)
			p.project(good, 0, k, ea, eb)
			dense.Axpy(1, ea, a)
			dense.Axpy(1, eb, b)
		}
	}
	after := make([]float64, n)
	if err := trial.logProbs(after, add); err != nil {
		t.Fatal(err)
	}
	var sum, squares float64
	for i := range after {
		d := after[i] - math.Log(0.5) // two classes at their prior
		sum += d
		squares += d * d
	}
	mean := sum / n
	if want := mean / math.Sqrt((squares/n-mean*mean)/(n-1)); math.Abs(got.Members[1].Trust/want-1) > 1e-6 {
		t.Errorf("trust %g, want %g", got.Members[1].Trust, want)
	}
	// The score by the sites alone: own ones do not count.
	var scores moments
	counts := [2]float64{}
	for _, y := range w.Y {
		counts[y]++
	}
	for i, y := range w.Y {
		scores.add(counts[1-y] / n * (after[i] - math.Log(1-math.Exp(after[i]))))
	}
	for i := range w.B {
		w.B[i] = float64(i)
	}
	if skill, err := trial.skill(add); err != nil || math.Abs(skill/scores.inErrors()-1) > 1e-6 {
		t.Errorf("skill %g, want %g (%v)", skill, scores.inErrors(), err)
	}
	w.Y = w.Y[:MinWindow-1]
	if v := mergeOf(t, r, teacher("bad", -1, "x", "y")).Members[0]; v.Tested || v.Refused != None {
		t.Errorf("tested by %d labels", len(w.Y))
	}
}

// A merge is decoded as it was, and no damaged one is.
func TestMergeIsEncoded(t *testing.T) {
	r := receiver(t, 5)
	r.Scale.Ranks = make([]float64, 2*model.RankPoints)
	for i := range r.Scale.Ranks {
		r.Scale.Ranks[i] = float64(i % model.RankPoints)
	}
	a, _ := member(t, "a", 3, 4, Bfloat16, "x", "z")
	data := bits(mergeOf(t, r, a))
	m, err := DecodeMerge(data)
	if err != nil || !bytes.Equal(bits(m), data) || m.Taken() != 1 {
		t.Fatalf("another merge after decoding (%v)", err)
	}
	refusesDamage(t, data, DecodeMerge, ErrMerge)
}

// A set keeps the members with the most labels.
func TestSetIsBounded(t *testing.T) {
	s := NewSet(2)
	for _, seed := range []uint64{5, 1, 9, 3} { // labels are 100 and the seed
		c, _ := member(t, fmt.Sprint("m", seed), seed, 3, Bfloat16, "x", "y")
		if taken := s.Put(c); taken != (seed != 3) {
			t.Errorf("m%d: taken %v", seed, taken)
		}
	}
	if got := s.Members(); len(got) != 2 || got[0].Member != "m5" || got[1].Member != "m9" || s.Get("m1") != nil {
		t.Errorf("%d members", len(got))
	}
}
