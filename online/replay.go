package online

// Refused is a record that could not be learnt.
type Refused struct {
	Seq     uint64
	Kind    Kind
	Err     error
	LeftOut *Panic // not nil if the record was left out
}

// Replay returns a learner that has learnt records, in order, after the state that
// revive returns. A record that makes the learner panic outside of a step, where
// nothing is rolled back, is left out and counted as a refused step: a record that
// stopped the program once does not stop it at each start. The error is revive's.
func Replay(revive func() (*Learner, error), records []Record) (*Learner, []Refused, error) {
	leftOut := map[uint64]*Panic{}
	for {
		l, err := revive()
		if err != nil {
			return nil, nil, err
		}
		refused, at, p := l.replay(records, leftOut)
		if p == nil {
			return l, refused, nil
		}
		leftOut[at] = p // its effect on the learner is not known: begin again
	}
}

// replay learns records but those left out, up to a panic.
func (l *Learner) replay(records []Record, leftOut map[uint64]*Panic) (refused []Refused, at uint64, p *Panic) {
	for i := range records {
		r := &records[i]
		if p := leftOut[r.Seq]; p != nil {
			l.counters.StepsRefused++
			refused = append(refused, Refused{r.Seq, r.Kind, p, p})
			continue
		}
		l.expect(records[i:])
		out, p := l.try(&r.Event)
		if p != nil {
			return nil, r.Seq, p
		}
		if out.Refused != nil {
			refused = append(refused, Refused{r.Seq, r.Kind, out.Refused, nil})
		}
	}
	return refused, 0, nil
}

func (l *Learner) try(ev *Event) (out Outcome, p *Panic) {
	defer func() {
		if v := recover(); v != nil {
			p = newPanic(v)
		}
	}()
	return l.Add(ev), nil
}
