package demo

import (
	"math"
	"testing"

	"edge/internal/dataset"
)

// The rows of machines are whole windows with the features of the stage, of all states, each in another
// state than the one before, and depend on the seed alone.
func TestMachines(t *testing.T) {
	m, err := newMachines(1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := newMachines(1)
	if err != nil {
		t.Fatal(err)
	}
	counts, last := map[string]int{}, ""
	var row, same dataset.Row
	for i := range 400 {
		m.Next(&row)
		again.Next(&same)
		if len(row.X) != len(m.stage.Features()) || row.Number != i+1 || row.Label == last || row.Label != same.Label {
			t.Fatalf("row %d is %+v", i, row)
		}
		for j, v := range row.X {
			if math.IsNaN(v) || v != same.X[j] {
				t.Fatalf("row %d: feature %d is %g, and again %g", i, j, v, same.X[j])
			}
		}
		last = row.Label
		counts[last]++
	}
	for _, state := range states {
		if counts[state] < 50 {
			t.Errorf("states %v", counts)
		}
	}
}
