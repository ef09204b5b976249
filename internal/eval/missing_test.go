package eval

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"edge/internal/dataset"
	"edge/stream/codec"
)

// listedRows are given rows.
type listedRows []dataset.Row

func (l *listedRows) Next(row *dataset.Row) error {
	if len(*l) == 0 {
		return io.EOF
	}
	row.X, row.Label = slices.Clone((*l)[0].X), (*l)[0].Label
	*l = (*l)[1:]
	return nil
}

// Rows without a label, or without any feature, are left out; on_missing decides on those that lack some.
func TestUsableRows(t *testing.T) {
	nan := math.NaN()
	means := func() []float64 { return []float64{7, 8} }
	for _, c := range []struct {
		how     string
		means   func() []float64
		want    string
		leftOut int
	}{
		{codec.OnMissingMarginalise, means, "[1 2] [NaN 2]", 2},
		{codec.OnMissingReject, means, "[1 2]", 3},
		{codec.OnMissingImpute, means, "[1 2] [7 2]", 2},
		{codec.OnMissingImpute, func() []float64 { return nil }, "[1 2] [NaN 2]", 2}, // not known yet
		{codec.OnMissingImpute, nil, "[1 2] [NaN 2]", 2},
	} {
		u := &usableRows{rows: &listedRows{{X: []float64{1, 2}, Label: "a"}, {X: []float64{3, 4}}, {X: []float64{nan, 2}, Label: "a"}, {X: []float64{nan, nan}, Label: "a"}}, how: c.how, means: c.means}
		var got []byte
		var row dataset.Row
		err := u.Next(&row)
		for ; err == nil; err = u.Next(&row) {
			got = fmt.Append(got, " ", row.X)
		}
		if !errors.Is(err, io.EOF) || string(got) != " "+c.want || u.leftOut != c.leftOut {
			t.Errorf("%s: rows%s, %d left out, %v; want %s and %d", c.how, got, u.leftOut, err, c.want, c.leftOut)
		}
	}
}
