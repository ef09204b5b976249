package eval

import (
	"errors"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/online"
	"edge/online/drift"
	"edge/online/score"
)

// prequential learns each row after the learner has judged its own prediction of
// it. A minibatch that is not full at the end stays open, as in the daemon.
type prequential struct {
	learner *online.Learner
	total   int // rows, for the tenths
	rows    int // so far
	judged  uint64
	tenths  report.Tenths
	drifts  []report.Drift
	states  rollback
	event   online.Event // reused
}

func newPrequential(learner *online.Learner, total int) *prequential {
	return &prequential{learner: learner, total: total, drifts: []report.Drift{}, event: online.Event{Kind: online.Observe}}
}

func (p *prequential) Row(row *dataset.Row) error {
	p.rows++
	p.event.X, p.event.Label = row.X, row.Label
	out := p.learner.Add(&p.event)
	if p.rows*10/p.total > len(p.tenths.List) {
		p.tenths.Add(p.learner.Scores())
	}
	if out.Change == online.NoticeDrift {
		p.drifts = append(p.drifts, report.Drift{N: p.rows, Since: out.Since, Detail: out.Detail})
	}
	if p.learner.Config().Drift.Action == drift.ActionRollback {
		p.states.follow(p.learner, &out)
	}
	if !errors.Is(out.Refused, online.ErrClass) { // the daemon counts a refused class and continues
		p.judged++
	}
	return nil
}

func (p *prequential) Position() uint64 { return p.judged }

func (p *prequential) Scores() score.Scores { return p.learner.Scores() }

func (p *prequential) complete(r *report.Report, _ report.Curve) {
	r.Tenths, r.Drifts = p.tenths.List, p.drifts
}

// rollback keeps states of a learner and restores one after a drift.
type rollback struct {
	states [][]byte // latest last
	since  uint64   // labels since the latest
}

const (
	stateEvery = 500 // labels
	keptStates = 20
)

// follow keeps a state every 500 labels. After a drift it restores the latest
// state that is older than the change.
func (r *rollback) follow(l *online.Learner, out *online.Outcome) {
	r.since++
	if out.Change == online.NoticeDrift && len(r.states) > 0 {
		at := len(r.states) - 1
		for before := r.since; at > 0 && before <= out.Since; at-- {
			before += stateEvery
		}
		l.Add(&online.Event{Kind: online.Replace, Name: online.OnlyModel, State: r.states[at]})
		r.states, r.since = r.states[:at+1], 0
		return
	}
	if r.since == stateEvery && l.WarmedUp() {
		state, _ := l.AppendBinary(nil)
		r.states = append(keepLast(r.states, keptStates-1), state)
	}
	r.since %= stateEvery
}

// keepLast drops all but the last n, in place.
func keepLast[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return append(list[:0], list[len(list)-n:]...)
}
