package online

import "fmt"

// correct learns that a sample has another label than it was learnt with. Where its
// site is still kept by itself, in the window or the warm-up buffer, it is removed
// before the new label is learnt, as if the wrong one had never been there; older
// sites are part of a product, and the new label is learnt in addition. Horizons
// and pool are not weighed again, and the chain of labels keeps the wrong one.
func (l *Learner) correct(ev *Event, out *Outcome) {
	if out.Refused = l.checkSample(ev); out.Refused != nil {
		return
	}
	is, known := l.classes.index[ev.Label]
	if !known {
		if err := l.checkNewLabel(ev.Label); err != nil {
			out.Refused = err
			return
		}
	}
	l.flush(out)
	exact := l.unlearn(ev)
	again := *ev
	again.Kind = Observe
	var samples []Event
	if known {
		samples = append(l.classes.release(ev.Label), again)
	} else if samples = l.confirm(&again); len(samples) > 0 {
		l.displace(out)
		is, out.ClassAdded = l.classes.add(ev.Label), ev.Label
	}
	if len(samples) > 0 {
		l.noteOwnLabel(is, out)
	}
	for i := range samples {
		l.batch.add(samples[i].X, is, l.weightOf(&samples[i], is), 1)
		l.judgeHorizons(is, 0, false, nil)
		if l.batch.len() >= l.cfg.Batch.MaxSize {
			l.closeMinibatch(out)
		}
	}
	if len(samples) > 0 {
		l.flush(out)
	} else {
		l.followClasses()
	}
	if was, ok := l.classes.index[ev.Name]; ok && len(samples) > 0 && ev.Probs != nil {
		if probs := l.classes.translate(ev.Probs, ev.Epoch); probs != nil {
			l.judge.Correct(probs, was, is)
		}
	}
	if out.Change, out.Detail = NoticeCorrected, fmt.Sprintf("%s, not %s", ev.Label, ev.Name); exact {
		l.counters.CorrectionsExact++
	} else {
		l.counters.CorrectionsAdded++
		out.Detail += "; the wrong one is part of the absorbed sites and fades with them"
	}
}

// unlearn removes a sample from the buffers that keep it by itself; it reports
// whether it found it.
func (l *Learner) unlearn(ev *Event) (exact bool) {
	r := &l.classes
	was, known := r.index[ev.Name]
	if !known {
		return r.drop(ev.Name, ev.X)
	}
	if was < len(l.view.Counts) && l.view.Counts[was] > 0 {
		l.view.Counts[was]--
	}
	x := make([]float64, len(ev.X))
	for j, v := range ev.X {
		x[j] = bounded(v)
	}
	l.calibrator.held.remove(x, was)
	if l.view.Calibration != nil {
		l.view.Calibration.To(x, x)
	}
	l.forest.Forget(x, was)
	exact = l.warmup.remove(x, was) && !l.warmup.done
	if !l.view.Built() || r.latent[was] < 0 {
		return exact
	}
	l.view.Scale.To(x, x)
	i := l.bank.Find(x, r.latent[was])
	if i < 0 {
		return exact
	}
	before, _ := l.AppendBinary(nil)
	l.bank.DropPoint(i)
	if l.bank.Refresh() != nil { // a product with fewer sites that does not factor: restore the whole
		return l.become(before) != nil
	}
	return true
}
