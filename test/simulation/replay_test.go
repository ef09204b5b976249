package simulation

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// TestReplay simulates seeds twice: the same events must happen at the same times. It
// needs a deterministic runtime (make simulate).
func TestReplay(t *testing.T) {
	if !deterministic(t) {
		t.Skip("this runtime is not deterministic; make simulate builds one that is")
	}
	oneProcessor(t)
	for seed := range uint64(20) {
		first, second := simulate(t, seed, nil), simulate(t, seed, nil)
		if first.trace != second.trace {
			t.Errorf("seed %d: %d events with hash %016x, then %d with %016x", seed, first.events, first.trace, second.events, second.trace)
		}
	}
}

// deterministic reports whether the runtime's random numbers are equal in every
// bubble.
func deterministic(t *testing.T) bool {
	var numbers [2]uint64
	for i := range numbers {
		synctest.Test(t, func(*testing.T) { numbers[i] = rand.Uint64() })
	}
	return numbers[0] == numbers[1]
}
