package online

import (
	"edge/online/conformal"
	"edge/online/drift"
)

// Uncertainty returns the rules for predictions from now on.
func (l *Learner) Uncertainty() conformal.Uncertainty {
	u := l.sets.Uncertainty()
	u.Abstain, u.Drift = l.cfg.Abstain, l.drift.Level()
	return u
}

// assess judges the published prediction of a sample of class k: probabilities,
// abstention and set. late is the metadata that was published with a prediction
// whose label came late; nil: the learner's present rules apply. The threshold
// learns when the minibatch is closed, as the posterior does, and always from the
// set by the present rules: an integral that counted old errors would oscillate.
func (l *Learner) assess(ev *Event, probs []float64, novelty float64, late *conformal.PredictionMeta, k int, out *Outcome) {
	x := ev.X
	var meta conformal.PredictionMeta
	if late != nil {
		meta = *late
	} else {
		u := l.Uncertainty()
		meta = u.Meta(probs, novelty)
	}
	decision := meta.Decide(probs, x, k)
	decision.Known = ev.Known
	if decision.Late = late != nil; decision.Late && late.Last > 0 {
		decision.Last = l.classes.now(late.Last-1, ev.Epoch) + 1
	}
	o := l.judge.AddPublished(probs, k, decision)
	l.batch.nll += o.NLL
	if c, changed := l.drift.Add(drift.Sample{LogLoss: o.NLL, Wrong: o.Top != o.Label, Novelty: novelty}, l.warmup.done); changed {
		out.Change, out.Detail, out.Since = NoticeWarning, c.Detail, c.Since
		if c.Level == drift.Drifted {
			out.Change = NoticeDrift
		}
	}
	l.sets.Judge(probs, x, k)
}

// reseed starts half of the inducing inputs again at the window, or leaves the
// state as it was.
func (l *Learner) reseed() error {
	if !l.view.Built() || l.bank.Window() == 0 {
		return nil
	}
	l.bank.Save()
	l.mix.Save()
	if err := guarded(l.bank.Reseed); err != nil {
		return l.undo(err)
	}
	return nil
}
