package online

import (
	"runtime/debug"
	"sync"

	"edge/online/forest"
	"edge/online/sep"
)

// fewBeside is the number of samples below which a second core is not worth waking.
const fewBeside = 8

// beside learns the forest on another core while the bank takes its step: neither reads
// what the other writes, so that the order does not matter.
type beside struct {
	group  sync.WaitGroup
	forest *forest.Learner
	batch  *minibatch
	failed *sep.Panic
	run    func()
}

func newBeside() *beside {
	s := &beside{}
	s.run = func() {
		defer s.group.Done()
		defer func() {
			if v := recover(); v != nil {
				s.failed = &sep.Panic{Value: v, Stack: debug.Stack()}
			}
		}()
		s.forest.Learn(s.batch.x, s.batch.y, s.batch.w)
	}
	return s
}

// start begins to learn a minibatch; end follows.
func (s *beside) start(f *forest.Learner, b *minibatch) {
	s.forest, s.batch = f, b
	s.group.Add(1)
	go s.run()
}

// end waits, and panics with the panic of the other goroutine.
func (s *beside) end() {
	s.group.Wait()
	if p := s.failed; p != nil {
		s.failed = nil
		panic(p)
	}
}

// forestBeside reports whether the forest learns the present minibatch beside the bank. A
// class that is new to the forest first needs room there.
func (l *Learner) forestBeside() bool {
	return l.warmup.done && l.forest != nil && l.batch.len() >= fewBeside && l.bank.Cores() > 1 && len(l.classes.names) == len(l.view.Names)
}
