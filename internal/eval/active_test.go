package eval

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"edge/internal/dataset"
	"edge/online"
	"edge/online/active"
)

// Rows of a class that no requested label has named yet count for it once it has a name, and not
// for the class whose label was requested first.
func TestAskedClassesAreTold(t *testing.T) {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing = []string{"x", "y"}, 5
	l, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 300
	a := newActive(active.Config{Strategy: active.Random, Budget: 0.05}, l, 1, rows)
	rng := rand.New(rand.NewPCG(4, 1))
	want, got := map[string]uint64{}, map[string]uint64{}
	for range rows {
		label := fmt.Sprint("c", rng.IntN(12))
		want[label]++
		if err := a.Row(&dataset.Row{X: []float64{rng.NormFloat64(), rng.NormFloat64()}, Label: label}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range a.Scores().PerClass {
		got[c.Class] = c.N
	}
	if !maps.Equal(got, want) {
		t.Errorf("the classes have %v rows, want %v", got, want)
	}
}
