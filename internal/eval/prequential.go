package eval

import (
	"errors"
	"slices"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/model"
	"edge/online"
	"edge/online/drift"
	"edge/online/score"
)

// prequential judges and learns each row. Its label is known before the next row, and
// the learner judges its own prediction; or the labels come after every minibatch,
// and the learner judges the predictions that were made without them. A minibatch that
// is not full at the end stays open, as in the daemon.
type prequential struct {
	learner *online.Learner
	total   int        // rows, for the tenths
	rows    int        // learnt so far
	leftOut func() int // rows that were not passed to Row
	judged  uint64
	tenths  report.Tenths
	worst   report.Worst
	drifts  []report.Drift
	states  rollback
	event   online.Event // reused

	slow bool // every label is a minibatch of its own
	hold int  // rows of a minibatch whose labels come after it; 0: every label comes at once
	held []online.Event
	post *model.Posterior // predicts held rows
	ws   model.Workspace
}

func newPrequential(learner *online.Learner, total int, slow bool, hold int, leftOut func() int) *prequential {
	return &prequential{learner: learner, total: total, leftOut: leftOut, drifts: []report.Drift{}, event: online.Event{Kind: online.Observe}, slow: slow, hold: hold, post: learner.Posterior()}
}

func (p *prequential) Row(row *dataset.Row) error {
	if p.hold == 0 {
		p.event.X, p.event.Label = row.X, row.Label
		p.learn(&p.event)
		return nil
	}
	probs, novelty, err := p.post.PredictNextTo(nil, row.X, len(p.held)+1, &p.ws)
	if err != nil {
		return err
	}
	u := p.learner.Uncertainty()
	meta := u.Meta(probs, novelty)
	meta.Last, meta.Version = p.post.Pool.Order.Last+1, p.post.Version()
	p.held = append(p.held, online.Event{
		Kind: online.Observe, X: slices.Clone(row.X), Label: row.Label,
		Probs: probs, Parts: p.ws.AppendParts(nil), Meta: meta, Epoch: p.post.Epoch,
	})
	if len(p.held) == p.hold {
		p.finish()
	}
	return nil
}

// finish passes the labels that have not come yet to the learner.
func (p *prequential) finish() {
	if len(p.held) == 0 {
		return
	}
	for i := range p.held {
		p.learn(&p.held[i])
	}
	p.held, p.post = p.held[:0], p.learner.Posterior()
}

func (p *prequential) learn(ev *online.Event) {
	p.rows++
	out := p.learner.Add(ev)
	if p.slow {
		p.learner.Add(&closing)
	}
	p.worst.Follow(p.learner.Coverage())
	p.addTenth()
	if out.Change == online.NoticeDrift {
		p.drifts = append(p.drifts, report.Drift{N: p.rows, Since: out.Since, Detail: out.Detail})
	}
	if p.learner.Config().Drift.Action == drift.ActionRollback {
		p.states.follow(p.learner, &out)
	}
	if !errors.Is(out.Refused, online.ErrClass) { // the daemon counts a refused class and continues
		p.judged++
	}
}

// addTenth adds the scores if another tenth of the rows is over.
func (p *prequential) addTenth() {
	if (p.rows+p.leftOut())*10/p.total > len(p.tenths.List) {
		p.tenths.Add(p.learner.Scores())
	}
}

func (p *prequential) Position() uint64 { return p.judged }

func (p *prequential) Scores() score.Scores { return p.learner.Scores() }

func (p *prequential) complete(r *report.Report, _ report.Curve) {
	p.addTenth() // the last rows may be left out
	r.Tenths, r.Drifts, r.SetsWorst = p.tenths.List, p.drifts, p.worst.Coverage()
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
		r.states = append(slices.Delete(r.states, 0, max(len(r.states)-keptStates+1, 0)), state)
	}
	r.since %= stateEvery
}
