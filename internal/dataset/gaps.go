package dataset

import (
	"math"
	"slices"
)

// Lacking returns the rows that lack at least one feature, and those that lack
// all.
func (t *Table) Lacking() (some, all []int) {
	if t.pixels != nil {
		return nil, nil
	}
	d := len(t.Features)
	for i := range t.Labels {
		row := Row{X: t.values[i*d : (i+1)*d]}
		if row.Lacking() > 0 {
			some = append(some, i)
		}
		if row.Empty() {
			all = append(all, i)
		}
	}
	return some, all
}

// Drop removes rows, given in ascending order, from the table. Classes stay.
func (t *Table) Drop(rows []int) {
	if len(rows) == 0 {
		return
	}
	d, kept := len(t.Features), 0
	for i := range t.Labels {
		if _, dropped := slices.BinarySearch(rows, i); dropped {
			continue
		}
		copy(t.values[kept*d:(kept+1)*d], t.values[i*d:(i+1)*d])
		t.Labels[kept] = t.Labels[i]
		if t.Origins != nil {
			t.Origins[kept] = t.Origins[i]
		}
		kept++
	}
	t.values, t.Labels = t.values[:kept*d], t.Labels[:kept]
	if t.Origins != nil {
		t.Origins = t.Origins[:kept]
	}
	t.LeftOut += len(rows)
}

// Impute replaces each missing value by the mean of its feature. A row without
// any feature stays unchanged.
func (t *Table) Impute() {
	some, all := t.Lacking()
	d := len(t.Features)
	for j := range d {
		var sum, n float64
		for i := range t.Labels {
			if v := t.values[i*d+j]; !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		for _, i := range some {
			if _, none := slices.BinarySearch(all, i); !none && math.IsNaN(t.values[i*d+j]) {
				t.values[i*d+j] = sum / max(n, 1)
			}
		}
	}
}
