package eval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"edge/internal/dataset"
)

// Each row judges once, with all of its group, and is learnt in every other split. Folds have as many
// groups as others, or one more.
func TestGroupsAreHeldOut(t *testing.T) {
	for _, c := range []struct {
		by                    string
		groups, folds, splits int
		held                  string // of the first split; "": not checked
	}{
		{SplitDevice, 4, 0, 4, "d0"}, {SplitDevice, 20, 0, 20, "d0"}, {SplitDevice, 21, 0, 10, ""}, {SplitDevice, 7, 3, 3, ""},
		{SplitDevice, 4, 9, 4, "d0"}, {SplitBlock, 8, 0, 8, "recordings, fold 1"}, {SplitBlock, 25, 0, 10, "recordings, fold 1"}, {SplitBlock, 25, 4, 4, ""},
	} {
		table := &dataset.Table{Name: "t", Raw: true}
		group := func(row int) int { return row % c.groups }
		for i := range 3 * c.groups {
			table.Labels = append(table.Labels, 0)
			table.Origins = append(table.Origins, dataset.Origin{Device: fmt.Sprint("d", group(i)), Piece: group(i)})
		}
		s := Splits{By: c.by, Folds: c.folds, Seed: 5}
		all, err := s.cut("cv", table)
		if err != nil || all.n != c.splits {
			t.Errorf("%+v: %d splits, %v", c, all.n, err)
			continue
		}
		judges := make([]int, len(table.Labels))
		for i := range all.n {
			split := all.at(i)
			held := map[int]int{}
			for _, row := range split.judge {
				judges[row]++
				held[group(row)]++
			}
			for g, rows := range held {
				if rows != 3 {
					t.Errorf("%+v: %d of 3 rows of group %d are held out", c, rows, g)
				}
			}
			if n := len(held); n < c.groups/c.splits || n > (c.groups+c.splits-1)/c.splits {
				t.Errorf("%+v: a split holds out %d groups", c, n)
			}
			rows := slices.Sorted(slices.Values(slices.Concat(split.learn, split.judge)))
			if len(rows) != len(table.Labels) || len(slices.Compact(rows)) != len(table.Labels) {
				t.Errorf("%+v: the rows of a split are %v", c, rows)
			}
		}
		if slices.Min(judges) != 1 || slices.Max(judges) != 1 {
			t.Errorf("%+v: rows judge %v times", c, judges)
		}
		if c.held != "" && all.at(0).held != c.held {
			t.Errorf("%+v: the first split is called %q", c, all.at(0).held)
		}
	}
}

// The error of samples that do not tell their groups says how they are held out all the same.
func TestSamplesWithoutGroups(t *testing.T) {
	of := []dataset.Origin{{Device: "a"}, {Device: "b"}}
	for _, tc := range []struct {
		by   string
		of   []dataset.Origin
		want string
	}{
		{SplitBlock, nil, "give the file of signals, and -c with a stream that has them; or hold out samples by a column that names their recordings: --split device --device NAME"},
		{SplitBlock, of, "give the file of signals, and -c"},
		{SplitDevice, nil, "needs a file of signals, and -c with a stream that has them, or the column of the device: --device NAME"},
	} {
		s := Splits{By: tc.by}
		_, err := s.cut("cv", &dataset.Table{Name: "t", Labels: make([]int, 2), Origins: tc.of})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s, %v: %v", tc.by, tc.of, err)
		}
	}
}
