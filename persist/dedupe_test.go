package persist

import (
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online"
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

// TestRingRebuilt rebuilds a ring from its keys up to any seq and the later keys: the
// result must equal the original ring.
func TestRingRebuilt(t *testing.T) {
	const size, n = 10, 60
	keyOf := func(seq uint64) uint64 { return hash(seq*seq%13) * (seq % 4) } // repeats near and far, and 0
	for cut := uint64(0); cut <= n; cut++ {
		for at := cut; at <= n; at++ { // upTo(cut) is taken when the ring is at at
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

// TestDedupeShrinks opens a store with a smaller ring, which must hold the latest keys.
func TestDedupeShrinks(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{Dedupe: 100})
	tr := newTruths(t, s, "m")[0]
	for n := range uint64(120) {
		c := &online.Commit{Records: []online.Record{sample("m", n+1)}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
	}
	tr.seq, tr.state = 110, []byte("x")
	if err := s.Checkpoint("m", tr.seq, tr.state); err != nil {
		t.Fatal(err)
	}
	tr.check(t, s)
	closeStore(t, s)
	s = newStore(t, path, Options{Dedupe: 15})
	tr.check(t, s)
}
