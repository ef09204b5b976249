package online

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// A state with a fleet of which a few bits have turned is refused as such, or can be
// used: with a guest, with sums, with sums for unseen classes, and with a common basis.
func TestDamagedFleetStates(t *testing.T) {
	cfg := fleetConfig()
	set := fleetOf(t, cfg, 2, "c0", "c1", "c2", "c3")
	start := offer(t, sharedConfig(), "a", 7, 112, "c0", "c1", "c2")
	for name, n := range map[string]int{"guest": 20, "sums": 144, "unseen": 146, "start of a basis": 21, "basis": 145} {
		t.Run(name, func(t *testing.T) {
			cfg, set := cfg, set.Clone()
			if name == "unseen" {
				cfg.Fleet.Unseen = MixUnseen
			}
			if n%2 == 1 {
				cfg.Fleet.Shared = true
				set.Offer(start)
			}
			l := taught(t, cfg, 1, n, "c0", "c1", "c2")
			merged(t, l, set)
			state, rng := stateOf(l), rand.New(rand.NewPCG(1, 1))
			refused := 0
			for range 150 {
				damaged := append([]byte(nil), state...)
				for range 1 + rng.IntN(3) {
					damaged[rng.IntN(len(damaged))] ^= byte(1 << rng.IntN(8))
				}
				again, err := Restore(cfg, damaged)
				if err != nil {
					if refused++; !errors.Is(err, ErrState) && !errors.Is(err, ErrShape) {
						t.Fatalf("refused with %v, which is neither ErrState nor ErrShape", err)
					}
					continue
				}
				if _, err := again.Predict([]float64{0.1, 0.2}); err != nil {
					t.Fatal(err)
				}
				teach(again, 4, 17, "c0", "c1", "c3")
			}
			if refused == 0 {
				t.Error("no damaged state was refused")
			}
		})
	}
}
