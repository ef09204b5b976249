package dataset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShifted(t *testing.T) {
	table := &Table{
		Features: make([]string, 6), Classes: []string{"a", "b"}, Labels: []int{0, 1}, width: 3,
		pixels: []byte{
			9, 9, 9,
			9, 9, 9,

			1, 2, 3,
			4, 5, 6,
		},
	}
	p, err := table.Samples([]int{1}).Shifted()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float64{
		{1, 2, 3, 4, 5, 6},
		{2, 3, 0, 5, 6, 0}, // to the left
		{0, 1, 2, 0, 4, 5},
		{4, 5, 6, 0, 0, 0}, // up
		{0, 0, 0, 1, 2, 3},
	}
	var got [][]float64
	for i := range p.Len() {
		row := make([]float64, 6)
		p.Row(i, row)
		got = append(got, row)
		if p.Class(i) != 1 {
			t.Errorf("image %d is of class %d", i, p.Class(i))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, err := (&Table{Labels: []int{0}}).Samples([]int{0}).Shifted(); err == nil {
		t.Error("rows of numbers are moved")
	}
}
