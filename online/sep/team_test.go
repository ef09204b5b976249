package sep

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// onCores gives b a team of that size, which shares the least work.
func onCores(b *Bank, size int) *Bank {
	b.Rest()
	b.team = teamOf(size, 1)
	return b
}

// everything is the state of b, and its posteriors.
func everything(b *Bank) []byte {
	all := encoded(b)
	for _, g := range b.view.Bank {
		all = fmt.Appendf(all, "%x", g.Mean)
		for i := range g.Classes() * g.M {
			all = fmt.Appendf(all, "%x", g.U[i*g.M:][:i%g.M+1])
		}
	}
	return all
}

// States and posteriors do not depend on the number of workers.
func TestCores(t *testing.T) {
	for _, perClass := range []bool{false, true} {
		var want []byte
		for _, size := range []int{1, 2, 3, 4, 8} {
			rng := rand.New(rand.NewPCG(3, 3))
			cfg := testConfig(3)
			cfg.PerClass, cfg.LearningRate = perClass, 0.02
			b := onCores(newTestBank(t, cfg, rng), size)
			before := everything(b)
			feed(t, b, rng, 300)
			got := everything(b)
			if want == nil {
				if want = got; bytes.Equal(before, got) {
					t.Fatal("300 steps changed nothing")
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("kernels per class %v: after 300 steps the state of %d workers is not that of one", perClass, size)
			}
		}
	}
}

// Every task runs once, on several workers if it has enough work, and none outlives
// the run: synctest waits for all goroutines.
func TestTeam(t *testing.T) {
	for _, c := range []struct {
		name           string
		size, n        int
		work           float64
		workers        int // at most
		several, empty bool
	}{
		{"one core", 1, 50, 1e9, 1, false, false},
		{"two cores", 2, 50, 1e9, 2, true, false},
		{"more workers than tasks", 8, 3, 1e9, 3, true, false},
		{"little work", 8, 50, 1, 1, false, false},
		{"no task", 4, 0, 1e9, 1, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			team := teamOf(c.size, grain)
			for range 3 {
				ran := make([]atomic.Int32, c.n)
				var both atomic.Int32
				err := team.run(c.n, c.work, func(worker, i int) error {
					ran[i].Add(1)
					if worker >= c.workers {
						t.Errorf("%s: task %d ran on worker %d, want below %d", c.name, i, worker, c.workers)
					}
					if worker > 0 {
						both.Add(1)
					}
					for c.several && both.Load() == 0 {
						runtime.Gosched() // the caller's worker waits for another
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for i := range ran {
					if n := ran[i].Load(); n != 1 {
						t.Errorf("%s: task %d ran %d times", c.name, i, n)
					}
				}
			}
		})
	}
}

// A run returns the error of the first task that fails, whichever is the first in time.
func TestTeamFails(t *testing.T) {
	first := errors.New("first")
	for _, size := range []int{1, 2, 8} {
		team := teamOf(size, 1)
		for range 50 {
			if err := team.run(20, 100, func(_, i int) error {
				switch {
				case i == 7:
					return first
				case i > 7:
					return errors.New("later")
				}
				return nil
			}); err != first {
				t.Fatalf("%d workers: error %v, want %v", size, err, first)
			}
		}
	}
}

// A panic in a task, on any goroutine, reaches the caller of Learn; Undo restores the
// state before it.
func TestPanicInATask(t *testing.T) {
	for _, size := range []int{1, 2, 8} {
		rng := rand.New(rand.NewPCG(3, 3))
		cfg := testConfig(3)
		cfg.LearningRate = 0.02
		b := onCores(newTestBank(t, cfg, rng), size)
		feed(t, b, rng, 21) // the next step follows the gradient
		want, sound := everything(b), b.work.tasks.project
		b.work.tasks.project = func(worker, i int) error {
			if i >= 4 {
				panic(fmt.Sprint("task ", i))
			}
			return sound(worker, i)
		}
		err := func() (err error) {
			defer func() {
				v := recover()
				if p, ok := v.(*Panic); ok && size > 1 && bytes.Contains(p.Stack, []byte("TestPanicInATask")) {
					v = p.Value
				}
				err = fmt.Errorf("%v", v)
			}()
			b.Save()
			mb := Minibatch{Latents: []int{0, 1, 2}, Live: true, Reach: math.Inf(1)}
			for range b.cfg.Batch {
				x, k := blob(rng, 3)
				mb.X, mb.Classes, mb.Weights = append(mb.X, x...), append(mb.Classes, k), append(mb.Weights, 1)
			}
			return b.Learn(mb)
		}()
		if err.Error() != "task 4" {
			t.Errorf("%d workers: a step whose task 4 panics ends with %v", size, err)
		}
		b.work.tasks.project = sound
		if bytes.Equal(everything(b), want) {
			t.Errorf("%d workers: the step had changed nothing before its panic", size)
		}
		if undone := b.Undo(err); undone.Error() != err.Error() || !bytes.Equal(everything(b), want) {
			t.Errorf("%d workers: Undo: %v, or the state is not that before the step", size, undone)
		}
		feed(t, b, rng, 20)
	}
}

func TestTeamDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	b := onCores(newTestBank(t, testConfig(3), rng), 3)
	feed(t, b, rng, 30)
	if n := testing.AllocsPerRun(50, func() {
		if err := b.Refresh(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a refresh by three workers allocates %g times", n)
	}
}
