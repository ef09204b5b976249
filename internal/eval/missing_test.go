package eval

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"edge/internal/dataset"
	"edge/model"
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
	learnt := &model.Posterior{N: 1, Scale: model.Scale{Mu: []float64{7, 8}}}
	for _, c := range []struct {
		how     string
		post    *model.Posterior
		want    string
		leftOut int
	}{
		{codec.OnMissingMarginalise, learnt, "[1 2] [NaN 2]", 2},
		{codec.OnMissingReject, learnt, "[1 2]", 3},
		{codec.OnMissingImpute, learnt, "[1 2] [7 2]", 2},
		{codec.OnMissingImpute, new(model.Posterior), "[1 2] [NaN 2]", 2}, // no mean is known yet
		{codec.OnMissingImpute, nil, "[1 2] [NaN 2]", 2},
	} {
		u := &usableRows{rows: &listedRows{{X: []float64{1, 2}, Label: "a"}, {X: []float64{3, 4}}, {X: []float64{nan, 2}, Label: "a"}, {X: []float64{nan, nan}, Label: "a"}}, how: c.how}
		if c.post != nil {
			u.post = func() *model.Posterior { return c.post }
		}
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
