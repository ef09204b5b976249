package sep

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	maxWorkers = 8   // of a team: each has scratch memory of its own
	grain      = 5e5 // multiplications that are worth a worker: its start costs some of 10 µs
)

// team runs the tasks of a step on several cores. Its goroutines end with every run;
// GOMAXPROCS bounds how many run at once, over all teams of the program. Results do
// not depend on their number: a task writes memory of its own, and scratch memory
// belongs to a worker.
type team struct {
	size  int // workers, the caller of run among them
	grain float64

	task  func(worker, i int) error
	next  atomic.Int64 // the first task that no worker has taken
	errs  []error      // of each task
	help  []func()     // the work of each worker but the caller
	group sync.WaitGroup
}

// newTeam returns a team with as many workers as Go uses cores.
func newTeam() *team { return teamOf(min(runtime.GOMAXPROCS(0), maxWorkers), grain) }

func teamOf(size int, grain float64) *team {
	t := &team{size: size, grain: grain}
	for worker := 1; worker < size; worker++ {
		t.help = append(t.help, func() {
			defer t.group.Done()
			t.work(worker)
		})
	}
	return t
}

// run runs n tasks of that many multiplications each, in any order, and waits for
// all of them. Of several errors and panics it returns, or panics with, that of the
// first task. Few multiplications stay on the caller's goroutine.
func (t *team) run(n int, multiplications float64, task func(worker, i int) error) error {
	workers := min(t.size, n, int(min(float64(n)*multiplications/t.grain, maxWorkers)))
	if workers < 2 {
		for i := range n {
			if err := task(0, i); err != nil {
				return err
			}
		}
		return nil
	}
	t.task, t.errs = task, slices.Grow(t.errs[:0], n)[:n]
	clear(t.errs)
	t.next.Store(0)
	t.group.Add(workers - 1)
	for _, help := range t.help[:workers-1] {
		go help()
	}
	t.work(0)
	t.group.Wait()
	t.task = nil
	for _, err := range t.errs {
		if p, ok := err.(*Panic); ok {
			panic(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// work runs tasks until none is left. Before each one but the caller's it lets other
// goroutines run, so that a prediction waits for no more than a task.
func (t *team) work(worker int) {
	for {
		if worker > 0 {
			runtime.Gosched()
		}
		i := int(t.next.Add(1)) - 1
		if i >= len(t.errs) {
			return
		}
		t.errs[i] = t.try(worker, i)
	}
}

func (t *team) try(worker, i int) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, debug.Stack()}
		}
	}()
	return t.task(worker, i)
}

// Panic is the value of a panic in a task that ran on another goroutine than its
// caller's, with the stack of the task.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the panic's value as text.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }
