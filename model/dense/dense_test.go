package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	lapack "gonum.org/v1/gonum/lapack/gonum"
)

// The reference.
var (
	ref    gonum.Implementation
	refLap lapack.Implementation
)

// matrix is a row-major matrix whose leading dimension exceeds its columns.
// What lies outside of it is NaN, so that a kernel that touches it shows.
type matrix struct {
	rows, cols, ld int
	data           []float64
}

func newMatrix(rows, cols, pad int) matrix {
	m := matrix{rows, cols, max(1, cols+pad), nil}
	if rows > 0 {
		m.data = make([]float64, (rows-1)*m.ld+cols)
	}
	for i := range m.data {
		m.data[i] = math.NaN()
	}
	return m
}

func random(r *rand.Rand, rows, cols, pad int) matrix {
	m := newMatrix(rows, cols, pad)
	for i := range rows {
		for j := range cols {
			m.data[i*m.ld+j] = r.NormFloat64()
		}
	}
	return m
}

// triangle returns a lower triangular matrix of moderate condition; its strict
// upper triangle is NaN.
func triangle(r *rand.Rand, n, pad int) matrix {
	m := newMatrix(n, n, pad)
	for i := range n {
		for j := range i {
			m.data[i*m.ld+j] = 0.5 * r.NormFloat64() / math.Sqrt(float64(n))
		}
		m.data[i*m.ld+i] = 1 + r.Float64()
	}
	return m
}

// positive returns the lower triangle of a positive definite matrix.
func positive(r *rand.Rand, n, pad int) matrix {
	m := newMatrix(n, n, pad)
	g := random(r, n, n, 0)
	for i := range n {
		for j := range i + 1 {
			m.data[i*m.ld+j] = ref.Ddot(n, g.data[i*g.ld:], 1, g.data[j*g.ld:], 1) / float64(n)
		}
		m.data[i*m.ld+i] += 0.5
	}
	return m
}

func (m matrix) clone() matrix {
	m.data = append([]float64(nil), m.data...)
	return m
}

// compare fails the test unless got is want within a relative error of tol of
// want's largest element, and every element outside is the NaN it was.
func compare(t testing.TB, what string, got, want matrix, tol float64) {
	t.Helper()
	var big float64
	for _, v := range want.data {
		if !math.IsNaN(v) {
			big = max(big, math.Abs(v))
		}
	}
	for i, w := range want.data {
		g := got.data[i]
		if math.IsNaN(w) != math.IsNaN(g) || math.Abs(g-w) > tol*max(big, 1) {
			t.Fatalf("%s: element (%d, %d) = %v, want %v (error %.1e)", what, i/want.ld, i%want.ld, g, w, g-w)
		}
	}
}

// paths runs f with the assembly, where there is any, and without.
func paths(t *testing.T, f func(t *testing.T)) {
	was := vectorised
	defer func() { vectorised = was }()
	if was {
		t.Run("vector", f)
	}
	vectorised = false
	t.Run("plain", f)
}

// sizes holds the edges of tiles, panels and packs, and what lies between.
var sizes = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 23, 24, 25, 31, 36, 50, 100, 131, 132, 133, 145, 200}

const tol = 1e-13

func TestGemm(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for range 3000 {
			m, n, k := pick(r), pick(r), pick(r)
			checkGemm(t, r, m, n, k, r.IntN(3), r.IntN(2) == 1, r.IntN(2) == 1, coefficient(r), coefficient(r))
		}
	})
}

// pick prefers small sizes: large ones cost time and add no new case.
func pick(r *rand.Rand) int { return sizes[min(r.IntN(len(sizes)), r.IntN(len(sizes)))] }

func coefficient(r *rand.Rand) float64 {
	return []float64{0, 1, -1, 0.7, -2.5}[r.IntN(5)]
}

func checkGemm(t testing.TB, r *rand.Rand, m, n, k, pad int, transA, transB bool, alpha, beta float64) {
	t.Helper()
	a, b := random(r, m, k, pad), random(r, k, n, pad)
	opA, opB := blas.NoTrans, blas.NoTrans
	if transA {
		a, opA = random(r, k, m, pad), blas.Trans
	}
	if transB {
		b, opB = random(r, n, k, pad), blas.Trans
	}
	c := random(r, m, n, pad)
	want := c.clone()
	if beta == 0 {
		// What was in C must not matter.
		for i := range m {
			for j := range n {
				c.data[i*c.ld+j] = math.NaN()
			}
		}
	}
	if m > 0 && n > 0 {
		ref.Dgemm(opA, opB, m, n, k, alpha, a.data, a.ld, b.data, b.ld, beta, want.data, want.ld)
	}
	Gemm(transA, transB, m, n, k, alpha, a.data, a.ld, b.data, b.ld, beta, c.data, c.ld)
	compare(t, fmt.Sprintf("Gemm(%v, %v, %d, %d, %d, %v, lda %d, ldb %d, %v)", transA, transB, m, n, k, alpha, a.ld, b.ld, beta),
		c, want, tol*float64(k+10))
}

func TestWeightedGram(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 1))
		for range 800 {
			checkGram(t, r, pick(r), pick(r), r.IntN(3), 1+r.IntN(3))
		}
	})
}

func checkGram(t testing.TB, r *rand.Rand, n, m, pad, ss int) {
	t.Helper()
	a, s := random(r, n, m, pad), random(r, n, 1, ss-1)
	c := triangle(r, m, pad)
	want := c.clone()
	for i := range n {
		row := a.data[i*a.ld:]
		for j := range m {
			ref.Daxpy(j+1, s.data[i*ss]*row[j], row, 1, want.data[j*want.ld:], 1)
		}
	}
	WeightedGram(n, m, s.data, ss, a.data, a.ld, c.data, c.ld)
	compare(t, fmt.Sprintf("WeightedGram(%d, %d, ss %d, lda %d)", n, m, ss, a.ld), c, want, tol*float64(n+10))
}

// TestSymmetricProduct has AᵀB symmetric by B = S·A for a symmetric S.
func TestSymmetricProduct(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 1))
		for range 300 {
			m, k, pad := pick(r), pick(r), r.IntN(3)
			a, b, s := random(r, k, m, pad), random(r, k, m, pad), positive(r, k, 0)
			for i := range k {
				for j := range i {
					s.data[j*s.ld+i] = s.data[i*s.ld+j]
				}
			}
			got, want := newMatrix(m, m, pad), newMatrix(m, m, pad)
			for i := range m {
				clear(want.data[i*want.ld:][:m])
			}
			if m > 0 && k > 0 {
				ref.Dgemm(blas.NoTrans, blas.NoTrans, k, m, k, 1, s.data, s.ld, a.data, a.ld, 0, b.data, b.ld)
				ref.Dgemm(blas.Trans, blas.NoTrans, m, m, k, 1, a.data, a.ld, b.data, b.ld, 0, want.data, want.ld)
			}
			SymmetricProduct(m, k, a.data, a.ld, b.data, b.ld, got.data, got.ld)
			for i := range m { // what is above is undefined, but nothing outside is written
				copy(got.data[i*got.ld+i+1:i*got.ld+m], want.data[i*want.ld+i+1:i*want.ld+m])
			}
			compare(t, fmt.Sprintf("SymmetricProduct(%d, %d)", m, k), got, want, tol*float64(k+10)*float64(k+10))
		}
	})
}

func TestTriangular(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 1))
		for range 800 {
			checkTriangular(t, r, pick(r), pick(r), r.IntN(3))
		}
	})
}

func checkTriangular(t testing.TB, r *rand.Rand, n, m, pad int) {
	t.Helper()
	u, a := triangle(r, m, pad), random(r, n, m, pad)
	for _, op := range []struct {
		name  string
		trans blas.Transpose
		solve bool
		run   func(c matrix)
	}{
		{"MulTriTrans", blas.Trans, false, func(c matrix) { MulTriTrans(n, m, a.data, a.ld, u.data, u.ld, c.data, c.ld) }},
		{"MulTri", blas.NoTrans, false, func(c matrix) { MulTri(n, m, a.data, a.ld, u.data, u.ld, c.data, c.ld) }},
		{"SolveTriTrans", blas.Trans, true, func(c matrix) { SolveTriTrans(n, m, u.data, u.ld, c.data, c.ld) }},
		{"SolveTri", blas.NoTrans, true, func(c matrix) { SolveTri(n, m, u.data, u.ld, c.data, c.ld) }},
	} {
		want, got := a.clone(), a.clone()
		if op.solve {
			if n > 0 && m > 0 {
				ref.Dtrsm(blas.Right, blas.Lower, op.trans, blas.NonUnit, n, m, 1, u.data, u.ld, want.data, want.ld)
			}
		} else {
			got = newMatrix(n, m, pad)
			if n > 0 && m > 0 {
				ref.Dtrmm(blas.Right, blas.Lower, op.trans, blas.NonUnit, n, m, 1, u.data, u.ld, want.data, want.ld)
			}
		}
		op.run(got)
		compare(t, fmt.Sprintf("%s(%d, %d, ld %d)", op.name, n, m, u.ld), got, want, tol*float64(m+10))
	}
}

func TestFactor(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 1))
		for _, n := range sizes {
			for pad := range 3 {
				checkFactor(t, r, n, pad)
			}
		}
	})
}

func checkFactor(t testing.TB, r *rand.Rand, n, pad int) {
	t.Helper()
	a := positive(r, n, pad)
	want := a.clone()
	if n > 0 && !refLap.Dpotrf(blas.Lower, n, want.data, want.ld) {
		t.Fatalf("the reference finds a matrix of order %d not positive definite", n)
	}
	if !Cholesky(n, a.data, a.ld) {
		t.Fatalf("Cholesky(%d, ld %d) = false", n, a.ld)
	}
	compare(t, fmt.Sprintf("Cholesky(%d, ld %d)", n, a.ld), a, want, tol*float64(n+10))
	if n > 0 {
		refLap.Dtrtri(blas.Lower, blas.NonUnit, n, want.data, want.ld)
	}
	InvertTri(n, a.data, a.ld)
	compare(t, fmt.Sprintf("InvertTri(%d, ld %d)", n, a.ld), a, want, tol*float64(n+10))
}

func TestCholeskyRefuses(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 1))
		for _, n := range []int{1, 2, 12, 13, 50, 133} {
			for _, at := range []int{0, n / 2, n - 1} {
				for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
					a := positive(r, n, 1)
					a.data[at*a.ld+at] = bad
					if Cholesky(n, a.data, a.ld) {
						t.Errorf("Cholesky(%d) with %v at diagonal element %d = true", n, bad, at)
					}
				}
				if at > 0 {
					for _, bad := range []float64{1e3, math.NaN(), math.Inf(1), math.Inf(-1)} {
						a := positive(r, n, 1)
						a.data[at*a.ld+at/2] = bad
						if Cholesky(n, a.data, a.ld) {
							t.Errorf("Cholesky(%d) with %v at (%d, %d) = true", n, bad, at, at/2)
						}
					}
				}
			}
		}
	})
}

func TestVectors(t *testing.T) {
	paths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 1))
		for n := range 70 {
			x, y := random(r, 1, n, 0), random(r, 1, n, 0)
			if got, want := Dot(x.data, y.data), ref.Ddot(n, x.data, 1, y.data, 1); math.Abs(got-want) > tol*float64(n) {
				t.Errorf("Dot of %d elements = %v, want %v", n, got, want)
			}
			want := y.clone()
			ref.Daxpy(n, -0.7, x.data, 1, want.data, 1)
			Axpy(-0.7, x.data, y.data)
			compare(t, fmt.Sprintf("Axpy of %d elements", n), y, want, tol)
		}
		for range 1000 {
			checkGemv(t, r, pick(r), pick(r), r.IntN(3), r.IntN(2) == 1, coefficient(r), coefficient(r))
		}
	})
}

func checkGemv(t testing.TB, r *rand.Rand, m, n, pad int, trans bool, alpha, beta float64) {
	t.Helper()
	a := random(r, m, n, pad)
	op, nx, ny := blas.NoTrans, n, m
	if trans {
		op, nx, ny = blas.Trans, m, n
	}
	x, y := random(r, 1, nx, 0), random(r, 1, ny, 0)
	want := y.clone()
	if beta == 0 {
		for i := range y.data {
			y.data[i] = math.NaN()
		}
	}
	if m == 0 || n == 0 {
		return
	}
	ref.Dgemv(op, m, n, alpha, a.data, a.ld, x.data, 1, beta, want.data, 1)
	Gemv(trans, m, n, alpha, a.data, a.ld, x.data, beta, y.data)
	compare(t, fmt.Sprintf("Gemv(%v, %d, %d, %v, lda %d, %v)", trans, m, n, alpha, a.ld, beta), y, want, tol*float64(m+n))
}

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

// TestAllocates holds every function to the promise that it does not.
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
				"Symmetric":     func() { SymmetricProduct(m, n, a.data, a.ld, c.data, c.ld, w.data, w.ld) },
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
				"Exp":           func() { Exp(y, x) },
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

// TestSame holds every function to the same bits in a second run.
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
			Exp(c.data, c.data)
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
		"Exp":           func() { Exp(x[:4:4], x) },
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

// TestIllConditioned factors a kernel matrix of points that lie close together:
// what is left of A − L·Lᵀ, of L·L⁻¹ − I and of L·x − b stays near what the
// reference leaves.
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
		residuals := func(l, inverse, solved, b matrix) (factor, identity, solution float64) {
			for i := range n {
				for j := range i + 1 {
					factor = max(factor, math.Abs(ref.Ddot(j+1, l.data[i*n:], 1, l.data[j*n:], 1)-k.data[i*n+j]))
					s := ref.Ddot(i-j+1, l.data[i*n+j:], 1, inverse.data[j*n+j:], n)
					if i == j {
						s--
					}
					identity = max(identity, math.Abs(s))
				}
				solution = max(solution, math.Abs(ref.Ddot(i+1, l.data[i*n:], 1, solved.data, 1)-b.data[i]))
			}
			return factor, identity, solution
		}
		b := random(r, 1, n, 0)
		l, want := k.clone(), k.clone()
		if !Cholesky(n, l.data, n) || !refLap.Dpotrf(blas.Lower, n, want.data, n) {
			t.Fatal("not positive definite")
		}
		inverse, wantInverse := l.clone(), want.clone()
		InvertTri(n, inverse.data, n)
		refLap.Dtrtri(blas.Lower, blas.NonUnit, n, wantInverse.data, n)
		solved, wantSolved := b.clone(), b.clone()
		SolveTriTrans(1, n, l.data, n, solved.data, n)
		ref.Dtrsv(blas.Lower, blas.NoTrans, blas.NonUnit, n, want.data, n, wantSolved.data, 1)
		f, i, s := residuals(l, inverse, solved, b)
		wf, wi, ws := residuals(want, wantInverse, wantSolved, b)
		t.Logf("residuals: factor %.1e (reference %.1e), inverse %.1e (%.1e), solution %.1e (%.1e)", f, wf, i, wi, s, ws)
		if f > 10*wf || i > 10*wi || s > 10*ws {
			t.Errorf("residuals exceed ten times the reference's")
		}
	})
}
