package sep

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"

	"edge/model"
)

// TestRebuildTakesMemoryAgain builds a model in place of another one: it takes the workspace and, where
// nobody reads it, the memory of an earlier snapshot, and learns as a model in new memory.
func TestRebuildTakesMemoryAgain(t *testing.T) {
	for _, read := range []bool{false, true} {
		build := func(b *Bank) {
			rng := rand.New(rand.NewPCG(1, 1))
			begin(t, b, rng)
			feed(t, b, rng, 3)
		}
		fresh, b := newTestBank(t, testConfig(3), rand.New(rand.NewPCG(2, 2))), newTestBank(t, testConfig(3), rand.New(rand.NewPCG(3, 3)))
		b.UsePool(NewPool(1), nil)
		b.Reuse(func(*model.Memory) bool { return !read })
		for range 3 { // both memories of snapshots exist then
			feed(t, b, rand.New(rand.NewPCG(4, 4)), 1)
			b.Share()
		}
		work, spare := &b.work.u[0], b.spare
		if spare == nil {
			t.Fatal("there is no earlier snapshot")
		}
		snapshot := b.view.Memory
		before := slices.Clone(snapshot.Floats)
		build(fresh)
		build(b)
		if !bytes.Equal(encoded(b), encoded(fresh)) {
			t.Errorf("read %t: the states differ", read)
		}
		if &b.work.u[0] != work {
			t.Errorf("read %t: the workspace is new", read)
		}
		if taken := &b.view.Bank[0].U[0] == &spare.Floats[0]; taken == read {
			t.Errorf("read %t: the memory of the earlier snapshot is taken: %t", read, taken)
		}
		if !slices.Equal(snapshot.Floats, before) {
			t.Errorf("read %t: the present snapshot has changed", read)
		}
	}
}

// Rest leaves no part of the memory of a step reachable, which is one piece for several parts.
func TestRestReleasesTheStep(t *testing.T) {
	cfg := testConfig(3)
	cfg.LearningRate = 0.02
	rng := rand.New(rand.NewPCG(4, 4))
	b := newTestBank(t, cfg, rng)
	feed(t, b, rng, 200)
	parts := map[string]weak.Pointer[float64]{
		"rows": weak.Make(&b.work.u[0]), "rows for the gradient": weak.Make(&b.work.grad.fresh[0]), "gradient": weak.Make(&b.work.grad.ev[0].kk[0]),
		"backup": weak.Make(&b.backup.A[0][0]), "basis": weak.Make(&b.spares[0].L[0]),
	}
	b.Rest()
	runtime.GC()
	for name, p := range parts {
		if p.Value() != nil {
			t.Errorf("%s: still reachable", name)
		}
	}
	runtime.KeepAlive(b)
}
