package sep

import (
	"bytes"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// spoil fills the idle workspaces with NaN, except what their owners may use again if
// keep is set.
func (p *Pool) spoil(keep bool) {
	for _, w := range p.idle {
		if !keep {
			w.owner = nil
		}
		f, g := &w.work.features, &w.work.grad
		lists := [][]float64{
			f.xs, f.xx, w.work.batch.x, w.work.batch.weights, g.fresh, g.g, g.coef, g.resp, g.theta,
			w.work.u, w.work.mean, w.work.variance, w.work.bt, w.work.y, w.work.theta0,
		}
		for i := range f.kx {
			if !keep {
				lists = append(lists, f.kx[i], f.w[i], f.q[i])
			}
			basis := w.spares[i]
			lists = append(lists, basis.L)
		}
		for _, l := range lists {
			for i := range l {
				l[i] = math.NaN()
			}
		}
	}
}

// TestPoolChangesNothing gives and takes a workspace for every minibatch, which holds
// NaN, or numbers of banks of this and other shapes: the states are those of banks with
// memory of their own.
func TestPoolChangesNothing(t *testing.T) {
	own := testConfig(3)
	own.PerClass = true
	pool := NewPool(1)
	for name, tc := range map[string]struct {
		cfg  Config
		keep bool
	}{"one kernel": {testConfig(3), false}, "a kernel each": {own, false}, "kept features": {testConfig(3), true}} {
		alone, lent := newTestBank(t, tc.cfg, rand.New(rand.NewPCG(8, 8))), newTestBank(t, tc.cfg, rand.New(rand.NewPCG(8, 8)))
		other := newTestBank(t, tc.cfg, rand.New(rand.NewPCG(9, 9)))
		lent.UsePool(pool, nil)
		other.UsePool(pool, nil)
		a, b, c := rand.New(rand.NewPCG(5, 5)), rand.New(rand.NewPCG(5, 5)), rand.New(rand.NewPCG(6, 6))
		for i := range 20 {
			feed(t, alone, a, 1)
			feed(t, lent, b, 1)
			lent.GiveBack()
			pool.spoil(tc.keep)
			if i%3 == 0 {
				feed(t, other, c, 1)
				other.GiveBack()
			}
		}
		if !bytes.Equal(encoded(alone), encoded(lent)) {
			t.Errorf("%s: the state differs", name)
		}
		if lent.spares != nil || len(pool.idle) != 1 {
			t.Errorf("%s: the bank keeps memory, %d workspaces are idle", name, len(pool.idle))
		}
	}
	if pool.Rest(); pool.idle != nil || pool.lent != 0 {
		t.Errorf("at rest the pool has %d workspaces, %d are lent", len(pool.idle), pool.lent)
	}
}

// TestPoolIsBounded has more banks than workspaces: they wait, with signs of life.
func TestPoolIsBounded(t *testing.T) {
	pool := NewPool(2)
	var alive atomic.Int64
	var learning sync.WaitGroup
	for i := range 8 {
		b := newTestBank(t, testConfig(3), rand.New(rand.NewPCG(1, uint64(i))))
		b.UsePool(pool, func() { alive.Add(1) })
		learning.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(i)))
			for range 20 {
				feed(t, b, rng, 1)
				pool.mu.Lock()
				if pool.lent > 2 || pool.lent+len(pool.idle) > 2 {
					t.Errorf("%d workspaces are lent, %d idle", pool.lent, len(pool.idle))
				}
				pool.mu.Unlock()
				b.GiveBack()
			}
		})
	}
	learning.Wait()

	first, second := newTestBank(t, testConfig(3), rand.New(rand.NewPCG(1, 1))), newTestBank(t, testConfig(3), rand.New(rand.NewPCG(1, 2)))
	one := NewPool(1)
	first.UsePool(one, nil)
	first.ready()
	waited := make(chan struct{})
	second.UsePool(one, sync.OnceFunc(func() { close(waited) }))
	done := make(chan struct{})
	go func() {
		defer close(done)
		second.ready()
	}()
	<-waited
	first.GiveBack()
	<-done
}

// A bank gets the workspace that it had last, and else one of its shape.
func TestPoolKeepsOwners(t *testing.T) {
	pool := NewPool(2)
	var banks [3]*Bank
	for i := range banks {
		banks[i] = newTestBank(t, testConfig(3), rand.New(rand.NewPCG(1, uint64(i))))
		banks[i].UsePool(pool, nil)
	}
	take := func(b *Bank) *float64 {
		b.ready()
		return &b.work.u[0]
	}
	first, second := take(banks[0]), take(banks[1])
	for range 2 {
		banks[0].GiveBack()
		banks[1].GiveBack()
		if take(banks[1]) != second || take(banks[0]) != first {
			t.Fatal("a bank has the workspace of another one")
		}
	}
	banks[0].GiveBack()
	if take(banks[2]) != first {
		t.Error("a bank without a workspace has made one, although one of its shape is idle")
	}
}
