package online

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A sample's distance is exact where every sample has its label, and right on average
// where some have none, whatever the delay; labels in flight count.
func TestLag(t *testing.T) {
	for _, every := range []int{1, 3} {
		for _, delay := range []int{1, 50, 900} {
			var l Lag
			var known, last uint64
			rng := rand.New(rand.NewPCG(1, 1))
			due := map[int]uint64{}
			var sum, wants float64
			for s := 1; s <= 20000; s++ {
				if s > 5000+delay {
					got, want := l.Ahead(uint64(s), known-2), math.Round(float64(uint64(s)-last)/float64(every))+2
					if every == 1 && float64(got) != want {
						t.Fatalf("delay %d, sample %d: %d ahead, want %g", delay, s, got, want)
					}
					sum, wants = sum+float64(got), wants+want
				}
				if every == 1 || rng.IntN(every) == 0 {
					due[s+delay-1] = uint64(s)
				}
				if of := due[s]; of > 0 {
					known, last = known+1, of
					l.Observe(known, of)
				}
				delete(due, s)
			}
			if math.Abs(sum/wants-1) > 0.05 {
				t.Errorf("every %d, delay %d: %.2f of the distance on average", every, delay, sum/wants)
			}
		}
	}
}

func TestLagUnknown(t *testing.T) {
	var l Lag
	if got := l.Ahead(5, 0); got != 0 {
		t.Errorf("without a label: %d ahead, want 0", got)
	}
	l.Observe(10, 100)
	for _, c := range []struct {
		sample, known uint64
		want          int
	}{{101, 10, 1}, {100, 10, 0}, {99, 10, 0}, {1100, 10, 1000}, {1101, 10, 0}, {103, 12, 1}, {103, 13, 0}, {103, 9, 4}} {
		if got := l.Ahead(c.sample, c.known); got != c.want {
			t.Errorf("sample %d, %d labels known: %d ahead, want %d", c.sample, c.known, got, c.want)
		}
	}
	l.Observe(11, 100_000) // a pause is no rate
	if got := l.Ahead(100_010, 11); got < 6 {
		t.Errorf("after a pause: %d ahead, want nearly 10", got)
	}
}
