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
	maxWorkers = 8    // of a team: each has scratch memory of its own
	grain      = 4e5  // multiplications that are worth a worker: 20 to 40 µs
	warmGrain  = 1e5  // the same of one that is awake
	patience   = 2000 // times that a worker lets others run while it waits for the next run of a step: 0.2 ms
	spins      = 1e4  // looks at the tasks of other workers before the caller sleeps: 10 µs
)

// team runs the tasks of a step on several cores. To wake a goroutine on another core
// takes longer than many a run, 40 µs and more: its goroutines therefore wait awake for
// the next run of a step, and end with the step; GOMAXPROCS bounds how many run at once,
// over all teams of the program. Results do not depend on their number: a task writes
// memory of its own, and scratch memory belongs to a worker.
type team struct {
	size  int // workers, the caller of run among them
	grain float64
	warm  bool // a run of the step was shared: other workers are awake
	more  bool // another run follows the step

	rows func(worker, i int) error // solves rows of system
	system
	help    []func()     // the work of each worker but the caller
	left    atomic.Int64 // tasks of the run that have not ended
	untaken atomic.Int64 // tasks that no worker has taken
	stepped atomic.Bool  // a step goes on: more runs may follow
	beside  atomic.Int32 // of the job aside: nothing, offered or running

	mu    sync.Mutex // guards the fields below
	ended sync.Cond  // left is 0
	task  func(worker, i int) error
	first int              // of the tasks that no worker has taken
	after int              // the one after the last of these
	alive [maxWorkers]bool // workers that have a goroutine
	errs  []error          // of each task
	aside func()           // a job beside the tasks
}

// States of the job aside.
const (
	nothing = iota
	offered
	running
)

// newTeam returns a team with as many workers as Go uses cores.
func newTeam() *team { return teamOf(min(runtime.GOMAXPROCS(0), maxWorkers), grain) }

func teamOf(size int, grain float64) *team {
	t := &team{size: size, grain: grain}
	t.ended.L = &t.mu
	t.rows = func(_, i int) error {
		t.system.solve(i)
		return nil
	}
	for worker := range size {
		t.help = append(t.help, func() { t.work(worker) })
	}
	return t
}

// begin announces the runs of a step, after which end comes.
func (t *team) begin() {
	if !t.stepped.Swap(true) {
		t.warm = false
	}
}

// end lets the workers go, unless more is to come.
func (t *team) end() {
	if t.more {
		t.more = false
		return
	}
	t.stepped.Store(false)
	t.warm = false
}

// run runs n tasks of that many multiplications each, in any order, and waits for
// all of them. Of several errors and panics it returns, or panics with, that of the
// first task. Few multiplications stay on the caller's goroutine, and so do those of a nil
// team.
func (t *team) run(n int, multiplications float64, task func(worker, i int) error) error {
	workers := 1
	if t != nil {
		grain := t.grain
		if t.warm {
			grain = min(grain, warmGrain)
		}
		workers = min(t.size, n, int(min(float64(n)*multiplications/grain, maxWorkers)))
	}
	if workers < 2 {
		for i := range n {
			if err := task(0, i); err != nil {
				return err
			}
		}
		return nil
	}
	t.mu.Lock()
	t.task, t.first, t.after, t.errs = task, 0, n, slices.Grow(t.errs[:0], n)[:n]
	clear(t.errs)
	t.left.Store(int64(n))
	t.untaken.Store(int64(n))
	t.wake(workers)
	t.mu.Unlock()
	t.warm = t.stepped.Load()
	for {
		i, task := t.take(0)
		if task == nil {
			break
		}
		t.done(i, try(task, 0, i))
	}
	t.wait()
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

// wait waits for the tasks that other workers have taken. A goroutine that sleeps is
// woken after some microseconds, so that it first looks for a while.
func (t *team) wait() {
	for i := 0; i < spins && t.left.Load() > 0; i++ {
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.left.Load() > 0 {
		t.ended.Wait()
	}
	t.task = nil
}

// offer offers a job beside the tasks to the other workers; await follows.
func (t *team) offer(job func()) {
	t.mu.Lock()
	t.aside = job
	t.beside.Store(offered)
	t.wake(2)
	t.mu.Unlock()
}

// wake gives so many workers a goroutine, the caller of run among them. The caller holds
// mu.
func (t *team) wake(workers int) {
	for worker := 1; worker < min(workers, t.size); worker++ {
		if !t.alive[worker] {
			t.alive[worker] = true
			go t.help[worker]()
		}
	}
}

// lend does the job that was offered, unless another worker has it. It reports whether
// there was one.
func (t *team) lend() bool {
	if t.beside.Load() != offered || !t.beside.CompareAndSwap(offered, running) {
		return false
	}
	t.aside()
	t.mu.Lock()
	t.beside.Store(nothing)
	t.ended.Signal()
	t.mu.Unlock()
	return true
}

// await waits for the job that was offered, and does it where no worker has begun it.
func (t *team) await() {
	if t.lend() {
		return
	}
	for i := 0; i < spins && t.beside.Load() == running; i++ {
	}
	t.mu.Lock()
	for t.beside.Load() == running {
		t.ended.Wait()
	}
	t.mu.Unlock()
}

// take returns the next task of a worker; nil if none is left. The caller of run begins
// with the first, all others with the last one: so most of a posterior's tasks in the
// runs of a step are those of one core, whose cache has its matrices.
func (t *team) take(worker int) (i int, task func(worker, i int) error) {
	if t.untaken.Load() == 0 {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == t.after {
		return 0, nil
	}
	t.untaken.Add(-1)
	if worker > 0 {
		t.after--
		return t.after, t.task
	}
	t.first++
	return t.first - 1, t.task
}

// done notes the end of a task.
func (t *team) done(i int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs[i] = err
	if t.left.Add(-1) == 0 {
		t.ended.Signal()
	}
}

// work runs tasks as a worker beside the caller of run, until none is left and the step
// has ended, or until none comes for a while. Before each one it lets other goroutines
// run, so that a prediction waits for no more than a task.
func (t *team) work(worker int) {
	for waited := 0; ; waited++ {
		runtime.Gosched()
		if t.lend() {
			waited = 0
		} else if i, task := t.take(worker); task != nil {
			t.done(i, try(task, worker, i))
			waited = 0
		} else if (!t.stepped.Load() || waited >= patience) && t.leave(worker) {
			return
		}
	}
}

// leave ends a worker's part, unless there is a task again.
func (t *team) leave(worker int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alive[worker] = t.first < t.after || t.beside.Load() == offered
	return !t.alive[worker]
}

func try(task func(worker, i int) error, worker, i int) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, debug.Stack()}
		}
	}()
	return task(worker, i)
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
	t.system = system{}                             // its memory belongs to a workspace
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

// Panic is a panic with the stack at which it happened: the value of one in a task that ran on
// another goroutine than its caller's.
type Panic struct {
	Value any
	Stack []byte
}

// Error returns the panic's value as text.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }
