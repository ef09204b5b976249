package main

import (
	"errors"
	"math/rand/v2"
	"strconv"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"

	"edge/internal/dataset"
	"edge/model/dense"
)

// principal holds the principal components of a table's features.
type principal struct {
	mean       []float64 // D
	directions []float64 // D×K, orthonormal, the largest variance first
}

// principalRows bounds the rows that the components are computed from.
const principalRows = 10000

// inComponents returns rows, and judged unless it is nil, with the first k
// principal components of rows in place of their features.
func inComponents(k int, rows, judged *dataset.Part) (_, _ *dataset.Part, err error) {
	p, err := findPrincipal(rows, min(k, len(rows.Table.Features)))
	if err != nil {
		return nil, nil, err
	}
	if judged != nil {
		judged = judged.Of(p.apply(judged.Table))
	}
	return rows.Of(p.apply(rows.Table)), judged, nil
}

// findPrincipal computes the first k principal components of the unscaled features:
// the leading eigenvectors of their covariance over at most principalRows rows.
func findPrincipal(p *dataset.Part, k int) (*principal, error) {
	d, n := len(p.Table.Features), min(p.Len(), principalRows)
	rows := rand.New(rand.NewPCG(1, 1)).Perm(p.Len())[:n]
	x := make([]float64, n*d)
	mean := make([]float64, d)
	for i, r := range rows {
		row := x[i*d : (i+1)*d]
		p.Row(r, row)
		for j, v := range row {
			mean[j] += v / float64(n)
		}
	}
	for i := range x {
		x[i] -= mean[i%d]
	}
	vectors := make([]float64, d*d) // of the covariance, the smallest variance first
	dense.Gemm(true, false, d, d, n, 1/float64(n), x, d, x, d, 0, vectors, d)
	var l gonum.Implementation
	values, work := make([]float64, d), make([]float64, 1)
	l.Dsyev(lapack.EVCompute, blas.Upper, d, vectors, d, values, work, -1) // stores the best size of the work space
	work = make([]float64, int(work[0]))
	if !l.Dsyev(lapack.EVCompute, blas.Upper, d, vectors, d, values, work, len(work)) {
		return nil, errors.New("principal components: the eigenvalues did not converge")
	}
	directions := make([]float64, d*k)
	for i := range d {
		for j := range k {
			directions[i*k+j] = vectors[i*d+d-1-j]
		}
	}
	return &principal{mean, directions}, nil
}

// apply returns t with principal components in place of its features.
func (p *principal) apply(t *dataset.Table) *dataset.Table {
	d := len(p.mean)
	k := len(p.directions) / d
	var features []string
	for j := range k {
		features = append(features, "pc"+strconv.Itoa(j))
	}
	var values []float64
	const block = 1000
	all := t.Samples(t.All())
	for from := 0; from < all.Len(); from += block {
		n := min(block, all.Len()-from)
		x := make([]float64, n*d)
		for i := range n {
			row := x[i*d : (i+1)*d]
			all.Row(from+i, row)
			for j := range row {
				row[j] -= p.mean[j]
			}
		}
		y := make([]float64, n*k)
		dense.Gemm(false, false, n, k, d, 1, x, d, p.directions, k, 0, y, k)
		values = append(values, y...)
	}
	return dataset.NewTable(t, features, values)
}
