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
// Its outside is NaN, so that a kernel that touches it is detected.
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

// paths runs f with the assembly, where the processor has it, and without.
func paths(t *testing.T, f func(t *testing.T)) {
	was := vectorised
	defer func() { vectorised = was }()
	if was {
		t.Run("vector", f)
	}
	vectorised = false
	t.Run("plain", f)
}

// sizes holds the edges of tiles, panels and packs, and sizes between them.
var sizes = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 23, 24, 25, 31, 36, 50, 100, 143, 144, 145, 157, 200, 292}

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
		// The content of C must not matter.
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

// TestSymmetricProduct has op(A) = Aᵀ and op(B) = S·A for a symmetric S.
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
			at, bt := transposed(a, pad), transposed(b, pad)
			for _, op := range []struct {
				transA, transB bool
				a, b           matrix
			}{{true, false, a, b}, {false, false, at, b}, {true, true, a, bt}, {false, true, at, bt}} {
				SymmetricProduct(op.transA, op.transB, m, k, op.a.data, op.a.ld, op.b.data, op.b.ld, got.data, got.ld)
				for i := range m { // the strict upper triangle is undefined, but the outside is not written
					copy(got.data[i*got.ld+i+1:i*got.ld+m], want.data[i*want.ld+i+1:i*want.ld+m])
				}
				compare(t, fmt.Sprintf("SymmetricProduct(%v, %v, %d, %d)", op.transA, op.transB, m, k), got, want, tol*float64(k+10)*float64(k+10))
			}
		}
	})
}

func transposed(a matrix, pad int) matrix {
	t := newMatrix(a.cols, a.rows, pad)
	for i := range a.cols {
		for j := range a.rows {
			t.data[i*t.ld+j] = a.data[j*a.ld+i]
		}
	}
	return t
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
