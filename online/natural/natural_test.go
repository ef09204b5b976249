package natural

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/wire"
)

// logistic is the log probability of rows under a logistic regression with weights x, with
// its gradient and the negative of its Hessian, lower triangle.
func logistic(rows [][]float64, x []float64) (value float64, g, h []float64) {
	n := len(x)
	g, h = make([]float64, n), make([]float64, n*n)
	for _, row := range rows {
		var z float64
		for i, v := range row {
			z += v * x[i]
		}
		p := 1 / (1 + math.Exp(-z))
		value += math.Log(p)
		for i, v := range row {
			g[i] += (1 - p) * v
			for j := range i + 1 {
				h[i*n+j] += p * (1 - p) * v * row[j]
			}
		}
	}
	return value, g, h
}

func randomRows(rng *rand.Rand, count, n int) (rows [][]float64) {
	for range count {
		row := make([]float64, n)
		for i := range row {
			row[i] = rng.NormFloat64() + 0.5
		}
		rows = append(rows, row)
	}
	return rows
}

// A factor is of second order: its logarithm differs from the one that it learnt by terms of
// the third order.
func TestFactorIsOfSecondOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rows, x := randomRows(rng, 20, 3), []float64{0.3, -0.2, 0.5}
	at, g, h := logistic(rows, x)
	f := New(3)
	f.Learn(1, h, g, x)
	log := func(x []float64) (v float64) {
		for i := range x {
			v += x[i] * (f.Shift[i] - row(f.Precision, x, i)/2)
		}
		return v
	}
	var errs []float64
	for _, step := range []float64{0.1, 0.05} {
		moved := []float64{x[0] + step, x[1] - step, x[2] + step/2}
		value, _, _ := logistic(rows, moved)
		errs = append(errs, math.Abs(value-at-(log(moved)-log(x))))
	}
	if ratio := errs[0] / errs[1]; !(errs[0] < 1e-2 && ratio > 6.5 && ratio < 9.5) {
		t.Errorf("errors %v at steps of 0.1 and 0.05: the ratio is %.2f, want about 8", errs, ratio)
	}
}

// The mean of a product is where the sum of the logarithms is largest: Newton's step from the
// prior's mean, and the same when the rows come in two factors.
func TestMeanOfProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const n = 3
	x, prior, mean := []float64{0.1, 0.2, -0.3}, []float64{4, 0, 0, 1, 3, 0, 0.5, 0.2, 5}, []float64{0.4, -0.1, 0.2}
	all := New(n)
	for range 2 {
		_, g, h := logistic(randomRows(rng, 15, n), x)
		all.Learn(0.7, h, g, x)
	}
	got, after := make([]float64, n), slices.Clone(prior)
	if !all.Mean(got, after, mean) {
		t.Fatal("no mean")
	}
	log := func(x []float64) (v float64) {
		d := make([]float64, n)
		for i := range d {
			d[i] = x[i] - mean[i]
		}
		for i := range x {
			v += x[i]*(all.Shift[i]-row(all.Precision, x, i)/2) - d[i]*row(prior, d, i)/2
		}
		return v
	}
	const step = 1e-4
	for i := range n {
		up, down := slices.Clone(got), slices.Clone(got)
		up[i] += step
		down[i] -= step
		if slope := (log(up) - log(down)) / (2 * step); math.Abs(slope) > 1e-6 {
			t.Errorf("slope %g in direction %d at the mean", slope, i)
		}
		if curve := (2*log(got) - log(up) - log(down)) / (step * step); math.Abs(curve-after[i*n+i]) > 1e-4*after[i*n+i] {
			t.Errorf("precision %g in direction %d, want %g", after[i*n+i], i, curve)
		}
	}
	bad := New(1)
	bad.Precision[0] = -3
	if x := []float64{7}; bad.Mean(x, []float64{1}, []float64{0}) || x[0] != 7 {
		t.Errorf("a mean of a product that is no Gaussian: %g", x[0])
	}
}

func TestFade(t *testing.T) {
	f := &Factor{[]float64{8, 0, 2, 4}, []float64{6, -2}}
	f.Fade(0.5)
	if !slices.Equal(f.Precision, []float64{4, 0, 1, 2}) || !slices.Equal(f.Shift, []float64{3, -1}) {
		t.Errorf("faded to %+v", f)
	}
}

// exponents are two factors of random numbers.
func exponents(seed uint64) *Exponents {
	rng := rand.New(rand.NewPCG(seed, 3))
	x := &Exponents{Experts: Experts{Own: 3, Fleet: 2, Forest: true}}
	for _, n := range []int{2, 3} {
		f := New(n)
		_, g, h := logistic(randomRows(rng, 9, n), make([]float64, n))
		f.Learn(1, h, g, make([]float64, n))
		x.Factors = append(x.Factors, f)
	}
	return x
}

// Products are sums, in either order; those of other experts and unsound ones change nothing.
func TestAdd(t *testing.T) {
	a, b := exponents(1), exponents(2)
	for i, f := range a.Add(b).Factors {
		for j := range f.Shift {
			if want := a.Factors[i].Shift[j] + b.Factors[i].Shift[j]; f.Shift[j] != want || b.Add(a).Factors[i].Shift[j] != want {
				t.Errorf("shift %d of factor %d is %g, want %g", j, i, f.Shift[j], want)
			}
		}
	}
	other, fewer, negative := exponents(3), exponents(3), exponents(3)
	other.Fleet, fewer.Factors, negative.Factors[0].Precision[0] = 3, fewer.Factors[:1], -50
	for _, o := range []*Exponents{other, fewer, negative} {
		if a.Add(o) != a {
			t.Errorf("%+v was added", o)
		}
	}
	if !a.Sound() || negative.Sound() {
		t.Error("sound and unsound are not told apart")
	}
	huge := exponents(4)
	huge.Factors[1].Shift[0] = 2e7
	if huge.Sound() {
		t.Error("a huge number is sound")
	}
}

func TestEncode(t *testing.T) {
	want := exponents(5)
	var e wire.Encoder
	want.Encode(&e)
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	got := Decode(d)
	if err := d.End(); err != nil || !want.like(got) {
		t.Fatalf("%v: %+v", err, got)
	}
	for i, f := range want.Factors {
		for j, v := range f.Shift {
			if got.Factors[i].Shift[j] != float64(float32(v)) {
				t.Errorf("shift %d of factor %d is %g, want %g", j, i, got.Factors[i].Shift[j], v)
			}
		}
		for j, v := range f.Precision {
			if got.Factors[i].Precision[j] != float64(float32(v)) {
				t.Errorf("precision %d of factor %d is %g, want %g", j, i, got.Factors[i].Precision[j], v)
			}
		}
	}
	for n := range e.Buf {
		d := wire.NewDecoder(e.Buf[:n], "", wire.ErrState)
		if Decode(d) != nil || !errors.Is(d.End(), wire.ErrState) {
			t.Fatalf("the first %d bytes are read", n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	var e wire.Encoder
	exponents(1).Encode(&e)
	f.Add(e.Buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := wire.NewDecoder(data, "", wire.ErrState)
		x := Decode(d)
		if (x == nil) != (d.Err() != nil) {
			t.Fatalf("%v: %+v", d.Err(), x)
		}
		if x == nil || !x.Sound() {
			return
		}
		if sum := x.Add(x); !sum.Sound() {
			t.Error("an unsound sum")
		}
		for _, f := range x.Factors {
			n := len(f.Shift)
			prior, at := make([]float64, n*n), make([]float64, n)
			for i := range n {
				prior[i*n+i] = 3
			}
			if !f.Mean(at, prior, at) {
				t.Error("a sound factor has no mean")
			}
		}
	})
}
