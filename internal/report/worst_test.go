package report

import (
	"math/rand/v2"
	"testing"

	"edge/online/score"
)

// The lowest coverage is that of a slow search, also where several sets are judged
// after one row.
func TestWorst(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{0, 249, 250, 251, 3000} {
		var w Worst
		var counter score.CoverageCounter
		w.Follow(counter.Coverage())
		var holds []int
		for len(holds) < n {
			hits, both := 0, 1+rng.IntN(20)/19
			for range both {
				if rng.Float64() < 0.9-0.3*float64(len(holds)/500%2) {
					hits++
				}
			}
			for i := range both {
				hit := 0
				if i < hits {
					hit = 1
				}
				counter.Add(1, hit > 0)
				holds = append(holds, hit)
			}
			w.Follow(counter.Coverage())
		}
		least := worstRows + 1
		for i := worstRows; i <= len(holds); i++ {
			sum := 0
			for _, h := range holds[i-worstRows : i] {
				sum += h
			}
			least = min(least, sum)
		}
		got := w.Coverage()
		switch {
		case len(holds) < worstRows && got != nil:
			t.Errorf("%d sets: %v, want none", len(holds), *got)
		case len(holds) >= worstRows && (got == nil || float64(*got) != float64(least)/worstRows):
			t.Errorf("%d sets: %v, want %v", len(holds), got, float64(least)/worstRows)
		}
	}
}
