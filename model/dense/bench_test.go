package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
)

// BenchmarkKernels compares every kernel with the reference at the sizes of a
// step: M inducing points and a window of n rows. The columns to compare are
// impl=dense and impl=gonum; GFLOP/s counts multiplications and additions that
// the mathematics needs, not those that a kernel executes.
//
// Long: a table of operations.
func BenchmarkKernels(b *testing.B) {
	for _, size := range []struct{ m, n int }{{50, 116}, {100, 200}, {200, 300}} {
		m, n := size.m, size.n
		r := rand.New(rand.NewPCG(7, 1))
		a, w, s := random(r, n, m, 0), random(r, n, m, 0), random(r, n, 1, 0)
		u, p := triangle(r, m, 0), positive(r, m, 0)
		c, t := newMatrix(n, m, 0), newMatrix(m, m, 0)
		clear(t.data)
		k := random(r, n, n, 0)
		fm, fn := float64(m), float64(n)
		for _, op := range []struct {
			name         string
			flops        float64
			dense, gonum func()
		}{
			{"GemmNN", 2 * fn * fm * fm,
				func() { Gemm(false, false, n, m, m, 1, a.data, m, p.data, m, 0, c.data, m) },
				func() {
					ref.Dgemm(blas.NoTrans, blas.NoTrans, n, m, m, 1, a.data, m, p.data, m, 0, c.data, m)
				}},
			{"GemmNT", 2 * fn * fm * fm,
				func() { Gemm(false, true, n, m, m, 1, a.data, m, p.data, m, 0, c.data, m) },
				func() {
					ref.Dgemm(blas.NoTrans, blas.Trans, n, m, m, 1, a.data, m, p.data, m, 0, c.data, m)
				}},
			{"GemmTN", 2 * fn * fm * fm,
				func() { Gemm(true, false, m, m, n, 1, a.data, m, w.data, m, 0, t.data, m) },
				func() {
					ref.Dgemm(blas.Trans, blas.NoTrans, m, m, n, 1, a.data, m, w.data, m, 0, t.data, m)
				}},
			{"WeightedGram", fn * fm * fm,
				func() { WeightedGram(n, m, s.data, 1, a.data, m, t.data, m) },
				func() {
					// The reference: weight the rows, then one product.
					for i := range n {
						for j, v := range a.data[i*m : i*m+m] {
							w.data[i*m+j] = s.data[i] * v
						}
					}
					ref.Dgemm(blas.Trans, blas.NoTrans, m, m, n, 1, a.data, m, w.data, m, 1, t.data, m)
				}},
			{"MulTriTrans", fn * fm * fm,
				func() { MulTriTrans(n, m, a.data, m, u.data, m, c.data, m) },
				func() {
					copy(c.data, a.data)
					ref.Dtrmm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, n, m, 1, u.data, m, c.data, m)
				}},
			{"MulTri", fn * fm * fm,
				func() { MulTri(n, m, a.data, m, u.data, m, c.data, m) },
				func() {
					copy(c.data, a.data)
					ref.Dtrmm(blas.Right, blas.Lower, blas.NoTrans, blas.NonUnit, n, m, 1, u.data, m, c.data, m)
				}},
			{"SolveTriTrans", fn * fm * fm,
				func() { copy(c.data, a.data); SolveTriTrans(n, m, u.data, m, c.data, m) },
				func() {
					copy(c.data, a.data)
					ref.Dtrsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, n, m, 1, u.data, m, c.data, m)
				}},
			{"SolveTri", fn * fm * fm,
				func() { copy(c.data, a.data); SolveTri(n, m, u.data, m, c.data, m) },
				func() {
					copy(c.data, a.data)
					ref.Dtrsm(blas.Right, blas.Lower, blas.NoTrans, blas.NonUnit, n, m, 1, u.data, m, c.data, m)
				}},
			{"Cholesky", fm * fm * fm / 3,
				func() { copy(t.data, p.data); Cholesky(m, t.data, m) },
				func() { copy(t.data, p.data); refLap.Dpotrf(blas.Lower, m, t.data, m) }},
			{"InvertTri", fm * fm * fm / 3,
				func() { copy(t.data, u.data); InvertTri(m, t.data, m) },
				func() { copy(t.data, u.data); refLap.Dtrtri(blas.Lower, blas.NonUnit, m, t.data, m) }},
			{"MulTriTrans1", fm * fm,
				func() { MulTriTrans(1, m, a.data, m, u.data, m, c.data, m) },
				func() {
					copy(c.data[:m], a.data)
					ref.Dtrmv(blas.Lower, blas.NoTrans, blas.NonUnit, m, u.data, m, c.data, 1)
				}},
			{"MulTri1", fm * fm,
				func() { MulTri(1, m, a.data, m, u.data, m, c.data, m) },
				func() {
					copy(c.data[:m], a.data)
					ref.Dtrmv(blas.Lower, blas.Trans, blas.NonUnit, m, u.data, m, c.data, 1)
				}},
			{"SolveTriTrans1", fm * fm,
				func() { copy(c.data[:m], a.data); SolveTriTrans(1, m, u.data, m, c.data, m) },
				func() {
					copy(c.data[:m], a.data)
					ref.Dtrsv(blas.Lower, blas.NoTrans, blas.NonUnit, m, u.data, m, c.data, 1)
				}},
			{"SolveTri1", fm * fm,
				func() { copy(c.data[:m], a.data); SolveTri(1, m, u.data, m, c.data, m) },
				func() {
					copy(c.data[:m], a.data)
					ref.Dtrsv(blas.Lower, blas.Trans, blas.NonUnit, m, u.data, m, c.data, 1)
				}},
			{"Gemv", 2 * fn * fm,
				func() { Gemv(false, n, m, 1, a.data, m, u.data[:m], 0, c.data) },
				func() { ref.Dgemv(blas.NoTrans, n, m, 1, a.data, m, u.data[:m], 1, 0, c.data, 1) }},
			{"GemvT", 2 * fn * fm,
				func() { Gemv(true, n, m, 1, a.data, m, s.data, 0, c.data) },
				func() { ref.Dgemv(blas.Trans, n, m, 1, a.data, m, s.data, 1, 0, c.data, 1) }},
			{"Dot", 2 * fm,
				func() { Dot(a.data[:m], w.data[:m]) },
				func() { ref.Ddot(m, a.data[:m], 1, w.data[:m], 1) }},
			{"Axpy", 2 * fm,
				func() { Axpy(1e-9, a.data[:m], k.data[:m]) },
				func() { ref.Daxpy(m, 1e-9, a.data[:m], 1, k.data[:m], 1) }},
		} {
			for _, impl := range []struct {
				name string
				run  func()
			}{{"dense", op.dense}, {"gonum", op.gonum}} {
				b.Run(fmt.Sprintf("op=%s/M=%d/n=%d/impl=%s", op.name, m, n, impl.name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						impl.run()
					}
					b.ReportMetric(op.flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}

// BenchmarkFunctions compares the elementary functions with the standard
// library's, at the lengths of a predictive grid and of a row of the kernel.
func BenchmarkFunctions(b *testing.B) {
	for _, n := range []int{16, 32, 100} {
		r := rand.New(rand.NewPCG(8, 1))
		w, x, y, z := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], z[i] = -5*r.Float64(), 10*r.Float64()
		}
		for _, op := range []struct {
			name            string
			dense, standard func()
		}{
			{"ExpSqDist",
				func() { copy(y, x); ExpSqDist(y, 0.7, 3, z) },
				func() {
					for i, v := range x {
						y[i] = 0.7 * math.Exp(-0.5*max(3+z[i]-2*v, 0))
					}
				}},
			{"NormalGrid",
				func() { copy(w, z); NormalGrid(y, w, -5, 10/float64(n), 1) },
				func() {
					copy(w, z)
					for i := range y {
						v := -5 + 10/float64(n)*float64(i)
						cdf := 0.5 * math.Erfc(-v/math.Sqrt2)
						w[i] *= cdf
						y[i] = invSqrt2Pi * math.Exp(-0.5*v*v) / cdf
					}
				}},
			{"Probit",
				func() { Probit(y, w, x) },
				func() {
					for i, v := range x {
						b := invSqrt2Pi * math.Exp(-0.5*v*v) / (0.5 * math.Erfc(-v/math.Sqrt2))
						y[i], w[i] = b, b*(b+v)
					}
				}},
			{"LogPhi",
				func() { LogPhi(y, x) },
				func() {
					for i, v := range x {
						y[i] = math.Log(0.5 * math.Erfc(-v/math.Sqrt2))
					}
				}},
		} {
			for _, impl := range []struct {
				name string
				run  func()
			}{{"dense", op.dense}, {"standard", op.standard}} {
				b.Run(fmt.Sprintf("op=%s/n=%d/impl=%s", op.name, n, impl.name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						impl.run()
					}
					b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(n), "ns/element")
				})
			}
		}
	}
}
