package persist

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRing compares the ring with a plain list of all keys, repeated ones included.
func TestRing(t *testing.T) {
	for _, size := range []int{1, 2, 7, 64} {
		rng := rand.New(rand.NewPCG(uint64(size), 0))
		r := newRing(size)
		var all []uint64
		for seq := uint64(1); seq <= 500; seq++ {
			key := rng.Uint64N(uint64(3 * size)) // 0 among them
			r.add(key, seq)
			if key != 0 {
				all = append(all, key)
			}
			latest := all[max(0, len(all)-size):]
			for key := range uint64(3 * size) {
				if got, want := r.has(key), slices.Contains(latest, key); got != want {
					t.Fatalf("size %d after %d keys: has(%d) = %v, want %v", size, len(all), key, got, want)
				}
			}
			if got := r.upTo(seq); !slices.Equal(got, latest) {
				t.Fatalf("size %d after %d keys: upTo(%d) = %v, want %v", size, len(all), seq, got, latest)
			}
		}
	}
}

// TestRingRebuilt: a ring cut at any seq and fed the later keys again is the
// ring that was never cut.
func TestRingRebuilt(t *testing.T) {
	const size, n = 10, 60
	keyOf := func(seq uint64) uint64 { return hash(seq*seq%13) * (seq % 4) } // repeats near and far, and 0
	for cut := uint64(0); cut <= n; cut++ {
		for at := cut; at <= n; at++ { // the cut is made while the ring stands at at
			whole := newRing(size)
			for seq := uint64(1); seq <= at; seq++ {
				whole.add(keyOf(seq), seq)
			}
			rebuilt := newRing(size)
			for _, key := range whole.upTo(cut) {
				rebuilt.add(key, cut)
			}
			for seq := cut + 1; seq <= n; seq++ {
				rebuilt.add(keyOf(seq), seq)
				if seq > at {
					whole.add(keyOf(seq), seq)
				}
			}
			if got, want := rebuilt.upTo(n), whole.upTo(n); !slices.Equal(got, want) {
				t.Fatalf("cut at %d while at %d: %v, want %v", cut, at, got, want)
			}
			for seq := uint64(1); seq <= n; seq++ {
				if got, want := rebuilt.has(keyOf(seq)), whole.has(keyOf(seq)); got != want {
					t.Fatalf("cut at %d while at %d: has(key of %d) = %v, want %v", cut, at, seq, got, want)
				}
			}
		}
	}
}
