package online

import (
	"runtime/debug"

	"edge/online/forest"
	"edge/online/sep"
)

// fewBeside is the number of samples below which a second core is not worth waking.
const fewBeside = 8

// beside learns the forest on another core while the bank takes its step: neither reads
// what the other writes, so that the order does not matter.
type beside struct {
	bank   *sep.Bank
	forest *forest.Learner
	batch  *minibatch
	failed *sep.Panic
	run    func()
}

func newBeside() *beside {
	s := &beside{}
	s.run = func() {
		defer func() {
			if v := recover(); v != nil {
				s.failed = &sep.Panic{Value: v, Stack: debug.Stack()}
			}
		}()
		s.forest.Learn(s.batch.x, s.batch.y, s.batch.w)
	}
	return s
}

// start begins to learn a minibatch on another core of the bank; end follows.
func (s *beside) start(bank *sep.Bank, f *forest.Learner, b *minibatch) {
	s.bank, s.forest, s.batch = bank, f, b
	bank.Aside(s.run)
}

// end waits, and panics with the panic of the other goroutine.
func (s *beside) end() {
	s.bank.Await()
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
