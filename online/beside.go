package online

// fewBeside is the number of samples below which a second core is not worth waking.
const fewBeside = 8

// beside lets the parts beside the bank learn on another core while the bank takes its
// step: neither side reads numbers that the other writes, so that the order does not matter.
type beside struct {
	learner *Learner
	failed  error // a *Panic
	run     func()
}

func newBeside() *beside {
	s := &beside{}
	s.run = func() {
		defer Recover(&s.failed)
		s.learner.learnBeside()
	}
	return s
}

// start begins to learn the minibatch of l on another core of its bank; end follows.
func (s *beside) start(l *Learner) {
	s.learner = l
	l.bank.Aside(s.run)
}

// end waits, and panics with the panic of the other goroutine.
func (s *beside) end() {
	s.learner.bank.Await()
	if err := s.failed; err != nil {
		s.failed = nil
		panic(err)
	}
}

// expertsBeside reports whether the experts learn the present minibatch beside the bank. A
// class that is new to them first needs room there.
func (l *Learner) expertsBeside() bool {
	return l.warmup.done && l.view.Built() && l.batch.len() >= fewBeside && l.bank.Cores() > 1 && len(l.classes.names) == len(l.view.Names)
}

// learnBeside learns the minibatch if expertsBeside is true.
func (l *Learner) learnBeside() {
	b := &l.batch
	l.forest.Learn(b.x, b.y, b.w)
	l.settle()
	l.mix.CountMoves()
	if l.cfg.Track == 0 { // otherwise the step changes the scaling
		l.mix.LearnRegression(b.x, b.y, b.w)
	}
}

// learnExperts learns the minibatch as regression and forest, unless that was done beside.
// They learn samples of a refused step as well, but not those of a refused build.
func (l *Learner) learnExperts(beside, built bool, err error) {
	b := &l.batch
	switch {
	case !l.view.Built():
	case !built && !(beside && l.cfg.Track == 0):
		l.mix.LearnRegression(b.x, b.y, b.w)
	case built && err == nil:
		l.mix.StartRegression()
		l.mix.LearnRegression(l.warmup.x, l.warmup.y, l.warmup.w)
	}
	if !beside {
		l.forest.Learn(b.x, b.y, b.w)
	}
}
