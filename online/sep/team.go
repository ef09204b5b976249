package sep

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"edge/model/dense"
)

const (
	maxWorkers = 8   // of a team: each has scratch memory of its own
	grain      = 2e6 // multiplications that are worth a worker: 100 µs, twice what a run costs on a busy machine
)

// team runs the tasks of a step on several cores. Its goroutines end with every run;
// GOMAXPROCS bounds how many run at once, over all teams of the program. Results do
// not depend on their number: a task writes memory of its own, and scratch memory
// belongs to a worker.
type team struct {
	size  int // workers, the caller of run among them
	grain float64

	rows func(worker, i int) error // solves rows of system
	system
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
	t.rows = func(_, i int) error {
		t.system.solve(i)
		return nil
	}
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

// solvedRows is the least number of rows that a task of a system solves, unless all
// are fewer.
const solvedRows = 48

// system replaces A by A·L⁻ᵀ, or by A·L⁻¹ if back is true: both M×M.
type system struct {
	back bool
	m    int
	l, a []float64
}

// solve solves s in tasks of rows. A nil team is the caller's goroutine.
func (t *team) solve(s system) {
	n := s.tasks()
	if t == nil {
		for i := range n {
			s.solve(i)
		}
		return
	}
	t.system = s
	t.run(n, solvedRows*float64(s.m*s.m)/2, t.rows) // without errors
}

// tasks is the number of tasks; the last one also has the rows that are left over.
func (s *system) tasks() int { return max(s.m/solvedRows, 1) }

func (s *system) solve(i int) {
	at, rows := i*solvedRows, solvedRows
	if i == s.tasks()-1 {
		rows = s.m - at
	}
	if s.back {
		dense.SolveTri(rows, s.m, s.l, s.m, s.a[at*s.m:], s.m)
	} else {
		dense.SolveTriTrans(rows, s.m, s.l, s.m, s.a[at*s.m:], s.m)
	}
}

// Panic is the value of a panic in a task that ran on another goroutine than its
// caller's, with the stack of the task.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the panic's value as text.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }
