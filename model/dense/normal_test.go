package dense

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// wide is the precision of the reference for the normal distribution, whose
// series cancels by e^x² for x up to 12.
const wide = 700

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(wide).SetFloat64(x) }

func add(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(wide).Add(x, y) }
func sub(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(wide).Sub(x, y) }
func mul(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(wide).Mul(x, y) }
func quo(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(wide).Quo(x, y) }

// bigExpWide is bigExp at the precision of this file.
func bigExpWide(x *big.Float) *big.Float {
	halvings := max(0, x.MantExp(nil)+20)
	r := new(big.Float).SetPrec(wide+64).SetMantExp(x, -halvings)
	sum, term := new(big.Float).SetPrec(wide+64).SetInt64(1), new(big.Float).SetPrec(wide+64).SetInt64(1)
	for i := int64(1); i < 40; i++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetInt64(i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// halfPi is π/2 to 210 digits, by Machin's formula π/4 = 4·atan(1/5) − atan(1/239).
func halfPi() *big.Float {
	atan := func(n float64) *big.Float {
		power, square := quo(bigFloat(1), bigFloat(n)), bigFloat(n*n)
		sum := new(big.Float).SetPrec(wide)
		for k := 0; k < 320; k++ {
			term := quo(power, bigFloat(float64(2*k+1)))
			if k%2 == 1 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power = quo(power, square)
		}
		return sum
	}
	return mul(bigFloat(2), sub(mul(bigFloat(4), atan(5)), atan(239)))
}

// normalReference holds φ(z), Φ(z), β = φ/Φ, β·(β+z) and log Φ, with more
// digits than a float64 has.
type normalReference struct{ pdf, cdf, beta, t *big.Float }

// newNormalReference takes the tail from the continued fraction of the Mills
// ratio beyond 12 (Abramowitz & Stegun 26.2.14), and Φ − ½ from its series
// before (26.2.11).
func newNormalReference(z float64, root *big.Float) normalReference {
	x := bigFloat(math.Abs(z))
	square := mul(x, x)
	half := quo(square, bigFloat(2))
	growth := bigExpWide(half)
	pdf := quo(quo(bigFloat(1), mul(root, bigFloat(2))), growth) // root = √(π/2)
	var tail *big.Float                                          // Φ(−x)/φ(x)
	if math.Abs(z) > 12 {
		f := new(big.Float).SetPrec(wide)
		for n := 600; n > 0; n-- {
			f = quo(bigFloat(float64(n)), add(x, f))
		}
		tail = quo(bigFloat(1), add(x, f))
	} else {
		sum, term := new(big.Float).SetPrec(wide), x
		for k := 1; k < 900; k++ {
			sum = add(sum, term)
			term = quo(mul(term, square), bigFloat(float64(2*k+1)))
		}
		tail = sub(mul(root, growth), sum)
	}
	cdf, beta := mul(tail, pdf), quo(bigFloat(1), tail)
	if z > 0 {
		cdf = sub(bigFloat(1), cdf)
		beta = quo(pdf, cdf)
	}
	return normalReference{pdf, cdf, beta, mul(beta, add(beta, bigFloat(z)))}
}

func abscissae() []float64 {
	r := rand.New(rand.NewPCG(10, 1))
	z := []float64{0, math.Copysign(0, -1), 1e-300, -1e-300, 1e-9, -1e-9, 0.5, -0.5, 8, -8, 36, -37, 12, -12}
	for range 60 {
		z = append(z, -12*r.Float64(), 10*r.Float64(), r.NormFloat64())
	}
	for range 40 {
		z = append(z, -12-26*r.Float64())
	}
	return z
}

func TestNormal(t *testing.T) {
	root := new(big.Float).SetPrec(wide).Sqrt(halfPi())
	z := abscissae()
	want := make([]normalReference, len(z))
	for i, v := range z {
		want[i] = newNormalReference(v, root)
	}
	paths(t, func(t *testing.T) {
		n := len(z)
		beta, second, logPhi := make([]float64, n), make([]float64, n), make([]float64, n)
		Probit(beta, second, z)
		LogPhi(logPhi, z)
		worst := map[string]float64{}
		check := func(what string, z, got float64, want *big.Float, tol float64) {
			if want.MinPrec() == 0 && got == 0 {
				return
			}
			if w, _ := want.Float64(); math.Abs(w) < 1e-307 && math.Abs(got) < 2e-307 {
				return // not a normal number
			}
			e := relative(got, want)
			if !(e <= tol) {
				t.Errorf("%s(%v) = %v, want %.20g (relative error %.1e)", what, z, got, want, e)
			}
			worst[what] = max(worst[what], e)
		}
		for i, v := range z {
			tol := 1e-13
			if v > 0 {
				tol += 3e-16 * v * v
			}
			check("beta", v, beta[i], want[i].beta, tol)
			check("t", v, second[i], want[i].t, tol)
			// One node at a time; the grid itself is tested below.
			ratio, prod := []float64{0}, []float64{0.25}
			NormalGrid(ratio, prod, v, 1, 2)
			tol = 1e-13 + 3e-16*v*v
			check("2φ/Φ", v, ratio[0], mul(bigFloat(2), want[i].beta), tol)
			check("Φ/4", v, prod[0], mul(bigFloat(0.25), want[i].cdf), tol)
			// log Φ through its exponential: e^(log Φ) has the relative error
			// |log Φ|·(that of log Φ).
			size := math.Abs(logPhi[i])
			if size == 0 || want[i].cdf.MantExp(nil) == 1 {
				continue
			}
			if e := relative2(bigExpWide(bigFloat(logPhi[i])), want[i].cdf) / size; !(e <= 1e-13) {
				t.Errorf("log Φ(%v) = %v, relative error %.1e", v, logPhi[i], e)
			} else {
				worst["logΦ"] = max(worst["logΦ"], e)
			}
		}
		t.Logf("largest relative errors: %.2v", worst)
	})
}

func relative2(got, want *big.Float) float64 {
	q, _ := quo(sub(got, want), want).Float64()
	return math.Abs(q)
}

func TestNormalFar(t *testing.T) {
	paths(t, func(t *testing.T) {
		inf := math.Inf(1)
		alpha := []float64{-1e3, -1e4, -1e8, -1e15, 40, 1e4, 1e27, inf, math.NaN(), -3}
		beta, second := make([]float64, len(alpha)), make([]float64, len(alpha))
		Probit(beta, second, alpha)
		for i, a := range alpha {
			switch {
			case math.IsNaN(a):
				if !math.IsNaN(beta[i]) || !math.IsNaN(second[i]) {
					t.Errorf("NaN gives %v, %v", beta[i], second[i])
				}
			case a < -100:
				// β = x + 1/x − …, β(β+α) = 1 − 1/x² + …
				if math.Abs(beta[i]/(1/-a-a)-1) > 1e-11 || math.Abs(second[i]-(1-1/(a*a)+6/(a*a*a*a))) > 1e-12 {
					t.Errorf("α = %v gives %v, %v", a, beta[i], second[i])
				}
			case a > 39:
				if beta[i] != 0 || second[i] != 0 {
					t.Errorf("α = %v gives %v, %v", a, beta[i], second[i])
				}
			}
		}
		z := []float64{40, 1e10, inf, -1e200, -inf, math.NaN()}
		LogPhi(z, z)
		for i, want := range []float64{0, 0, 0, -inf, -inf} {
			if z[i] != want {
				t.Errorf("LogPhi element %d = %v, want %v", i, z[i], want)
			}
		}
		if !math.IsNaN(z[5]) {
			t.Errorf("LogPhi(NaN) = %v", z[5])
		}
	})
}

func TestNormalGrid(t *testing.T) {
	paths(t, func(t *testing.T) {
		for n := range 40 {
			ratio, prod := make([]float64, n), make([]float64, n)
			for i := range prod {
				prod[i] = 0.5 + float64(i)
			}
			const z0, dz, scale = -4.9, 0.37, 1.7
			NormalGrid(ratio, prod, z0, dz, scale)
			for i := range prod {
				z := z0 + float64(i)*dz
				cdf := 0.5 * math.Erfc(-z/math.Sqrt2)
				wantProd, wantRatio := (0.5+float64(i))*cdf, scale*invSqrt2Pi*math.Exp(-0.5*z*z)/cdf
				if math.Abs(prod[i]-wantProd) > 1e-12*wantProd || math.Abs(ratio[i]-wantRatio) > 1e-12*wantRatio {
					t.Fatalf("node %d of %d: product %v, want %v; ratio %v, want %v", i, n, prod[i], wantProd, ratio[i], wantRatio)
				}
			}
		}
	})
}

// Grids of all steps from all places, against their nodes one by one; values beyond
// the normal range on the right count as zero.
func TestNormalGridAnywhere(t *testing.T) {
	paths(t, func(t *testing.T) {
		for _, z0 := range []float64{-60, -37, -20.3, -5, -1, 0, 3, 30, 50} {
			for _, dz := range []float64{-3, -0.4, 0, 1e-9, 0.01, 0.2, 0.7, 1.3, 2.5, 4, 4.1, 40} {
				for _, n := range []int{1, 3, 4, 7, 15, 16, 17, 20, 35, 64} {
					const scale = 1.7
					ratio, prod := make([]float64, n), make([]float64, n)
					for i := range prod {
						prod[i] = 0.25
					}
					NormalGrid(ratio, prod, z0, dz, scale)
					for i := range prod {
						z := z0 + float64(i)*dz
						oneRatio, oneProd := []float64{0}, []float64{0.25}
						NormalGrid(oneRatio, oneProd, z, 1, scale)
						near := func(got, want float64) bool {
							return math.Abs(got-want) <= 2*(1e-13+3e-16*z*z)*want || math.Abs(want) < 1e-290 && math.Abs(got) < 1e-289
						}
						if !near(ratio[i], oneRatio[0]) || z > -37 && !near(prod[i], oneProd[0]) {
							t.Fatalf("from %v by %v, node %d of %d: ratio %v, want %v; product %v, want %v", z0, dz, i, n, ratio[i], oneRatio[0], prod[i], oneProd[0])
						}
					}
				}
			}
		}
	})
}
