package labtest

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// Pair is the difference f~_iy − f~_ik of an observation's label and another class.
type Pair struct{ I, K int }

// Pairs are all pairs, by observation, then by class.
func Pairs(d *lab.Data) []Pair {
	var out []Pair
	for i, y := range d.Y {
		for k := range d.C {
			if k != y {
				out = append(out, Pair{i, k})
			}
		}
	}
	return out
}

// PairCovariance is the prior covariance of all pairs, N(C−1)×N(C−1): B blockdiag(K_k + v0 I) Bᵀ
// with +1 at (y_i, i) and −1 at (k, i) in the row of pair (i, k) of B. All labels are right
// where all differences are positive.
func PairCovariance(d *lab.Data, p model.Params) *mat.SymDense {
	var noisy []*mat.Dense // C of N×N
	for k := range d.C {
		g := lab.Kernel(p, k)
		c := lab.Covariance(&g, d.X, d.X)
		for i := range d.Y {
			c.Set(i, i, c.At(i, i)+math.Exp(*g.LogNoise()))
		}
		noisy = append(noisy, c)
	}
	pairs := Pairs(d)
	out := mat.NewSymDense(len(pairs), nil)
	for a, r := range pairs {
		for b, s := range pairs[:a+1] {
			out.SetSym(a, b, cross(d, noisy, r, s))
		}
	}
	return out
}

// cross is the covariance of two pairs, from the covariances of the classes, C of N×N.
func cross(d *lab.Data, classes []*mat.Dense, r, s Pair) float64 {
	var sum float64
	y, z := d.Y[r.I], d.Y[s.I]
	if y == z {
		sum += classes[y].At(r.I, s.I)
	}
	if y == s.K {
		sum -= classes[y].At(r.I, s.I)
	}
	if r.K == z {
		sum -= classes[z].At(r.I, s.I)
	}
	if r.K == s.K {
		sum += classes[r.K].At(r.I, s.I)
	}
	return sum
}
