//go:build !minimal

package main

import (
	"errors"
	"math/rand/v2"
	"strconv"

	"gonum.org/v1/gonum/mat"
)

// principal are the directions in which the rows of a table vary most.
type principal struct {
	mean       []float64  // D
	directions *mat.Dense // D×K, orthonormal, the largest variance first
}

// principalRows bounds the rows that the directions are found from.
const principalRows = 10000

// inComponents returns rows, and judged if it is not nil, with the first k
// principal components of rows in place of their features.
func inComponents(k int, rows, judged *Part) (_, _ *Part, err error) {
	p, err := rows.principal(min(k, len(rows.table.Features)))
	if err != nil {
		return nil, nil, err
	}
	if judged != nil {
		judged = judged.of(p.apply(judged.table))
	}
	return rows.of(p.apply(rows.table)), judged, nil
}

// principal finds the first k principal components of the features as they
// are, without scaling.
func (p *Part) principal(k int) (*principal, error) {
	d, n := len(p.table.Features), min(p.Len(), principalRows)
	rows := rand.New(rand.NewPCG(1, 1)).Perm(p.Len())[:n]
	x := mat.NewDense(n, d, nil)
	mean := make([]float64, d)
	for i, r := range rows {
		p.Row(r, x.RawRowView(i))
		for j, v := range x.RawRowView(i) {
			mean[j] += v / float64(n)
		}
	}
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			row[j] -= mean[j]
		}
	}
	cov := mat.NewSymDense(d, nil)
	cov.SymOuterK(1/float64(n), x.T())
	var e mat.EigenSym
	if !e.Factorize(cov, true) {
		return nil, errors.New("principal components: the eigenvalues did not converge")
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors) // the smallest first
	directions := mat.NewDense(d, k, nil)
	for j := range k {
		for i := range d {
			directions.Set(i, j, vectors.At(i, d-1-j))
		}
	}
	return &principal{mean, directions}, nil
}

// apply returns t with principal components in place of its features.
func (p *principal) apply(t *Table) *Table {
	d, k := p.directions.Dims()
	out := &Table{Name: t.Name, Classes: t.Classes, labels: t.labels}
	for j := range k {
		out.Features = append(out.Features, "pc"+strconv.Itoa(j))
	}
	const block = 1000
	all := t.Samples(t.All())
	for from := 0; from < all.Len(); from += block {
		n := min(block, all.Len()-from)
		x := mat.NewDense(n, d, nil)
		for i := range n {
			row := x.RawRowView(i)
			all.Row(from+i, row)
			for j := range row {
				row[j] -= p.mean[j]
			}
		}
		var y mat.Dense
		y.Mul(x, p.directions)
		out.values = append(out.values, y.RawMatrix().Data...)
	}
	return out
}

// of returns the same rows of another table.
func (p *Part) of(t *Table) *Part { return &Part{table: t, rows: p.rows, classes: p.classes} }
