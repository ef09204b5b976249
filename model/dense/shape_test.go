package dense

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzShapes runs every kernel on the shapes and strides that the fuzzer picks.
func FuzzShapes(f *testing.F) {
	for _, n := range []uint16{0, 1, 3, 12, 13, 133, 200} {
		f.Add(uint64(n), n, n/2+1, n+1, byte(n))
		f.Add(uint64(n)+1, n/3, n, n/2, byte(n+1))
	}
	f.Fuzz(func(t *testing.T, seed uint64, m16, n16, k16 uint16, flags byte) {
		m, n, k, pad := int(m16%290), int(n16%290), int(k16%290), int(flags>>6)
		r := rand.New(rand.NewPCG(seed, 2))
		was := vectorised
		defer func() { vectorised = was }()
		vectorised = was && flags&1 == 0
		checkGemm(t, r, m, n, k, pad, flags&2 != 0, flags&4 != 0, coefficient(r), coefficient(r))
		checkGram(t, r, n, m, pad, 1+int(flags>>4&3))
		checkTriangular(t, r, n, m, pad)
		checkFactor(t, r, m, pad)
		checkGemv(t, r, m, n, pad, flags&8 != 0, coefficient(r), coefficient(r))
	})
}

// TestAllocates checks that no function allocates.
func TestAllocates(t *testing.T) {
	paths(t, func(t *testing.T) {
		for _, m := range []int{1, 3, 13, 50, 256} {
			r := rand.New(rand.NewPCG(11, 1))
			n := m + 3
			a, c, s := random(r, n, m, 1), random(r, n, m, 1), random(r, 1, n, 0)
			u, p, w := triangle(r, m, 1), positive(r, m, 1), newMatrix(m, m, 1)
			x, y := random(r, 1, n, 0).data, random(r, 1, n, 0).data
			for name, f := range map[string]func(){
				"Gemm":          func() { Gemm(false, true, n, n-3, m, 1, a.data, a.ld, p.data, p.ld, 0, c.data, c.ld) },
				"GemmTN":        func() { Gemm(true, false, m, m, n, 1, a.data, a.ld, c.data, c.ld, 2, w.data, w.ld) },
				"WeightedGram":  func() { WeightedGram(n, m, s.data, 1, a.data, a.ld, w.data, w.ld) },
				"Symmetric":     func() { SymmetricProduct(true, false, m, n, a.data, a.ld, c.data, c.ld, w.data, w.ld) },
				"MulTriTrans":   func() { MulTriTrans(n, m, a.data, a.ld, u.data, u.ld, c.data, c.ld) },
				"MulTri":        func() { MulTri(n, m, a.data, a.ld, u.data, u.ld, c.data, c.ld) },
				"SolveTriTrans": func() { SolveTriTrans(n, m, u.data, u.ld, c.data, c.ld) },
				"SolveTri":      func() { SolveTri(n, m, u.data, u.ld, c.data, c.ld) },
				"MulTri, a row": func() { MulTri(1, m, a.data, a.ld, u.data, u.ld, c.data, c.ld) },
				"Cholesky":      func() { copy(w.data, p.data); Cholesky(m, w.data, w.ld) },
				"InvertTri":     func() { copy(w.data, u.data); InvertTri(m, w.data, w.ld) },
				"Dot":           func() { y[0] += Dot(x, y) },
				"Axpy":          func() { Axpy(1e-3, x, y) },
				"Gemv":          func() { Gemv(true, n, m, 1, a.data, a.ld, x, 0, y[:m]) },
				"ExpSqDist":     func() { ExpSqDist(y, 1, 2, x) },
				"NormalGrid":    func() { NormalGrid(y, x, -5, 0.1, 1) },
				"Probit":        func() { Probit(y, s.data, x) },
				"LogPhi":        func() { LogPhi(y, x) },
			} {
				if got := testing.AllocsPerRun(3, f); got != 0 {
					t.Errorf("%s at M = %d: %v allocations", name, m, got)
				}
			}
		}
	})
}

// TestSame checks that every function gives the same bits in a second run.
func TestSame(t *testing.T) {
	paths(t, func(t *testing.T) {
		run := func() matrix {
			r := rand.New(rand.NewPCG(12, 1))
			const n, m = 61, 50
			a, s, p := random(r, n, m, 0), random(r, n, 1, 0), positive(r, m, 0)
			for i := range s.data {
				s.data[i] *= s.data[i]
			}
			WeightedGram(n, m, s.data, 1, a.data, m, p.data, m)
			if !Cholesky(m, p.data, m) {
				t.Fatal("not positive definite")
			}
			InvertTri(m, p.data, m)
			c := newMatrix(n, m, 0)
			MulTriTrans(n, m, a.data, m, p.data, m, c.data, m)
			ExpSqDist(c.data, 1, 0, c.data)
			return c
		}
		first, second := run(), run()
		for i, v := range first.data {
			if math.Float64bits(v) != math.Float64bits(second.data[i]) {
				t.Fatalf("element %d: %v and then %v", i, v, second.data[i])
			}
		}
	})
}

// Each of more than Few rows is the same, to the last bit, in the company of any others, and
// each of up to Few as alone.
func TestRowsAlone(t *testing.T) {
	paths(t, func(t *testing.T) {
		const n, m = 40, 50
		r := rand.New(rand.NewPCG(14, 1))
		a, l := random(r, n, m, 0), triangle(r, m, 0)
		for name, f := range map[string]func(n int, rows, out []float64){
			"Gemm":          func(n int, rows, out []float64) { Gemm(false, true, n, m, m, 1, rows, m, l.data, m, 0, out, m) },
			"MulTriTrans":   func(n int, rows, out []float64) { MulTriTrans(n, m, rows, m, l.data, m, out, m) },
			"MulTri":        func(n int, rows, out []float64) { MulTri(n, m, rows, m, l.data, m, out, m) },
			"SolveTriTrans": func(n int, rows, out []float64) { copy(out, rows); SolveTriTrans(n, m, l.data, m, out, m) },
			"SolveTri":      func(n int, rows, out []float64) { copy(out, rows); SolveTri(n, m, l.data, m, out, m) },
		} {
			all := make([]float64, n*m)
			f(n, a.data, all)
			alone := make([]float64, n*m)
			for i := range n {
				f(1, a.data[i*m:(i+1)*m], alone[i*m:(i+1)*m])
			}
			for few := 2; few < 20; few++ {
				if few == Few+1 {
					alone = all
				}
				for _, at := range []int{0, 1, 17, n - few} {
					some := make([]float64, few*m)
					f(few, a.data[at*m:(at+few)*m], some)
					for i, v := range some {
						if math.Float64bits(v) != math.Float64bits(alone[at*m+i]) {
							t.Fatalf("%s: row %d of %d from %d on is another than alone or among %d", name, i/m, few, at, n)
						}
					}
				}
			}
		}
	})
}

func TestShortSlicesPanic(t *testing.T) {
	x := make([]float64, 5)
	for name, f := range map[string]func(){
		"Gemm":          func() { Gemm(false, false, 2, 2, 2, 1, x, 2, x, 2, 0, x[:3], 2) },
		"Gemm, stride":  func() { Gemm(false, false, 1, 2, 2, 1, x, 2, x, 1, 0, x, 2) },
		"WeightedGram":  func() { WeightedGram(3, 2, x, 1, x, 2, x, 2) },
		"MulTriTrans":   func() { MulTriTrans(1, 3, x, 3, x, 3, x, 3) },
		"MulTri":        func() { MulTri(3, 2, x, 2, x, 2, x, 2) },
		"SolveTriTrans": func() { SolveTriTrans(1, 3, x, 3, x, 3) },
		"SolveTri":      func() { SolveTri(3, 2, x, 2, x, 2) },
		"Cholesky":      func() { Cholesky(3, x, 3) },
		"InvertTri":     func() { InvertTri(3, x, 3) },
		"Dot":           func() { Dot(x, x[:4:4]) },
		"Axpy":          func() { Axpy(1, x, x[:4:4]) },
		"Gemv":          func() { Gemv(false, 2, 2, 1, x, 2, x[:1:1], 0, x) },
		"ExpSqDist":     func() { ExpSqDist(x, 1, 0, x[:4:4]) },
		"NormalGrid":    func() { NormalGrid(x, x[:4:4], 0, 1, 1) },
		"Probit":        func() { Probit(x, x[:4:4], x) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("%s on a slice that is too short returned", name)
				}
			}()
			f()
		})
	}
}

// TestIllConditioned factors a kernel matrix of points that lie close together.
// The residuals A − L·Lᵀ, L·L⁻¹ − I and L·x − b are rounding alone: no element is
// larger than n·ε times the same sum over absolute values (Higham, Accuracy and
// Stability of Numerical Algorithms, theorems 8.5, 10.3 and section 14.2). The
// worst element of a good algorithm lies far below that, and where depends on the
// order of its sums, so that residuals of two algorithms are not compared.
func TestIllConditioned(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 1))
		const n = 100
		x := random(r, n, 2, 0)
		k := newMatrix(n, n, 0)
		for i := range n {
			for j := range i + 1 {
				d0, d1 := x.data[2*i]-x.data[2*j], x.data[2*i+1]-x.data[2*j+1]
				k.data[i*n+j] = math.Exp(-0.5 * (d0*d0 + d1*d1))
			}
			k.data[i*n+i] += 1e-6
		}
		b := random(r, 1, n, 0)
		l := k.clone()
		if !Cholesky(n, l.data, n) {
			t.Fatal("not positive definite")
		}
		inverse, solved := l.clone(), b.clone()
		InvertTri(n, inverse.data, n)
		SolveTriTrans(1, n, l.data, n, solved.data, n)

		// rounding returns |x·y − want| in units of ε·|x|·|y|; strides are those of
		// the elements of x and of y.
		rounding := func(length int, x []float64, strideX int, y []float64, strideY int, want float64) float64 {
			sum, size := -want, 0.0
			for i := range length {
				product := x[i*strideX] * y[i*strideY]
				sum += product
				size += math.Abs(product)
			}
			return math.Abs(sum) / (size * 0x1p-53)
		}
		var factor, identity, solution float64
		for i := range n {
			for j := range i + 1 {
				factor = max(factor, rounding(j+1, l.data[i*n:], 1, l.data[j*n:], 1, k.data[i*n+j]))
				want := 0.0
				if i == j {
					want = 1
				}
				identity = max(identity, rounding(i-j+1, l.data[i*n+j:], 1, inverse.data[j*n+j:], n, want))
			}
			solution = max(solution, rounding(i+1, l.data[i*n:], 1, solved.data, 1, b.data[i]))
		}
		t.Logf("residuals in units of rounding: factor %.1f, inverse %.1f, solution %.1f", factor, identity, solution)
		if !(factor <= n && identity <= n && solution <= n) {
			t.Errorf("residuals %.1f, %.1f and %.1f exceed %d units of rounding", factor, identity, solution, n)
		}
	})
}
