package online

import (
	"errors"
	"fmt"
	"math"

	"edge/online/fleet"
)

// common is the learner's part in a common basis of a fleet.
type common struct {
	fleet.Birth               // Number 0: it has none
	start       *fleet.Common // where builds begin, during the warm-up; nil afterwards
	begun       bool          // the latest build did
	members     int           // whose parameters the latest merge averaged, the own ones included
	at          uint64        // labels learnt at that merge
}

const (
	maxRate  = 2      // of the factor of the learning rate while parameters are averaged
	rateEnds = 10_000 // labels after the latest average at which it ends
)

// rate is the factor of the learning rate after n labels. The mean of several directions is
// as long as one of them, where one device would have made that many steps.
func (c *common) rate(n uint64) float64 {
	if n-c.at > rateEnds {
		return 1
	}
	return min(math.Sqrt(float64(max(c.members, 1))), maxRate)
}

// commonStart returns where a build begins; nil for the own basis. A learner whose classes
// have other frequencies than those of the author has its own.
func (l *Learner) commonStart() *fleet.Common {
	start, n := l.common.start, len(l.classes.names)
	if start == nil || !start.Alike(l.classes.names, l.warmup.counts(n)) {
		return nil
	}
	return start
}

// beginAt makes an empty model at the start of a common basis.
func (l *Learner) beginAt(start *fleet.Common) error {
	l.bank.EstimateScale(l.warmup.x, l.warmup.len())
	b := start.On(l.cfg.Fleet.Units, l.view.Scale.Mu, l.view.Scale.Sd)
	return l.bank.BeginAt(&b.Params, &b.Scale, len(l.classes.names))
}

// endWarmup ends the warm-up. The buffer of a learner that waits for a common basis is
// kept, so that it can be learnt again under that.
func (l *Learner) endWarmup() {
	kept := l.cfg.Fleet.Shared && l.common.start == nil
	if l.common.start = nil; !l.common.begun {
		l.common = common{}
	}
	if l.warmup.done = true; kept {
		l.warmup.kept = true
	} else {
		l.warmup.end()
	}
	l.bank.EndWarmup()
	l.mix.EndWarmup()
	l.mix.StartNoise(false)
	l.endGuest()
}

// boundKept drops the kept buffer once it is twice as large as that of the warm-up.
func (l *Learner) boundKept() {
	if l.warmup.kept && l.warmup.len() > min(2*l.cfg.warmup(), maxWarmup) {
		l.warmup.end()
	}
}

// canShare returns an error if a merge's basis is not for this configuration.
func (l *Learner) canShare(s *fleet.Sharing) error {
	if s == nil {
		return nil
	}
	m, d := l.cfg.Inducing, len(l.cfg.Features)
	if s.Start != nil && (s.Start.Params.M != m || s.Start.Params.D != d) {
		return fmt.Errorf("online: common basis of %d inducing points in %d dimensions, model has %d in %d: %w", s.Start.Params.M, s.Start.Params.D, m, d, ErrShape)
	}
	if n := len(s.Move); n > 0 && n != m*d+d+3 {
		return fmt.Errorf("online: average of %d parameters, model has %d: %w", n, m*d+d+3, ErrShape)
	}
	return nil
}

// share changes the basis as a merge has decided; nil ends the part in a common one. An error
// leaves the learner as it was.
func (l *Learner) share(s *fleet.Sharing) (err error) {
	switch {
	case s == nil:
		if l.warmup.kept && !l.cfg.Fleet.Shared {
			l.warmup.end()
		}
		l.common = common{}
	case !l.warmup.done:
		begun := l.common.begun && l.common.Birth == s.Birth
		if l.common = (common{}); s.Start != nil {
			l.common = common{Birth: s.Birth, start: s.Start, begun: begun}
		}
	case s.Start != nil && !s.Start.Alike(l.view.Names, l.view.Counts): // the warm-up has ended since the merge was computed
		l.warmup.end()
		l.common = common{}
	default:
		if s.Start != nil {
			err = l.adoptBasis(s.Start)
		} else if len(s.Move) > 0 {
			err = l.moveBasis(s.Move)
		}
		if err != nil {
			return err
		}
		if l.common = (common{}); s.Number > 0 {
			l.common = common{Birth: s.Birth, members: s.Members, at: l.view.N}
		}
		if l.warmup.kept && (s.Settled || s.Start != nil) {
			l.warmup.end()
		}
	}
	return nil
}

// moveBasis adds the numbers to the parameters and projects the sites.
func (l *Learner) moveBasis(by []float32) error {
	l.bank.Save()
	if err := guarded(func() error { return l.bank.Move(by) }); err != nil {
		return l.bank.Undo(err)
	}
	return nil
}

// adoptBasis begins with a common basis: it learns the kept buffer again, or projects the
// sites.
func (l *Learner) adoptBasis(start *fleet.Common) error {
	before, _ := l.AppendBinary(nil)
	work := l.projectOnto
	if l.warmup.kept {
		work = l.relearn
	}
	if err := guarded(func() error { return work(start) }); err != nil {
		return errors.Join(fmt.Errorf("online: adopt basis %d: %w", start.Number, err), l.become(before))
	}
	return nil
}

// relearn builds the model again from the kept buffer, which has all samples.
func (l *Learner) relearn(start *fleet.Common) error {
	l.leave()
	last := l.warmup.last
	if err := l.build(start); err != nil {
		return err
	}
	l.warmup.last = last
	l.bank.EndWarmup()
	l.mix.StartRegression()
	l.mix.LearnRegression(l.warmup.x, l.warmup.y, l.warmup.w)
	return nil
}

// projectOnto projects the sites on a common basis.
func (l *Learner) projectOnto(start *fleet.Common) error {
	b := start.On(l.cfg.Fleet.Units, l.view.Scale.Mu, l.view.Scale.Sd)
	from := l.view.Scale
	from.Mu, from.Sd = append([]float64(nil), from.Mu...), append([]float64(nil), from.Sd...)
	if err := l.bank.AdoptBasis(&b.Params, &b.Scale); err != nil {
		return err
	}
	l.mix.RescaleRegression(&from)
	return nil
}
