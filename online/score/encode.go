package score

import (
	"edge/model"
	"edge/online/wire"
)

// Encode appends the state of the judge.
func (j *Judge) Encode(e *wire.Encoder) {
	j.encodeTotals(e)
	for _, n := range j.labels {
		e.Uint(n)
	}
	e.Uint(j.baselines)
	for _, s := range []*lossSum{&j.prior, &j.last} {
		e.Uint(s.errors)
		e.Float(s.nll)
	}
	for _, n := range j.counts() {
		e.Uint(*n)
	}
	e.Int(j.lastLabel)
	e.Int(len(j.ring))
	for i := range j.ring {
		o := j.ring[i].outcome()
		e.Int(o.Label)
		e.Int(o.Top + 1)
		e.Int(o.set + 1)
		flags := uint64(o.rule)
		for bit, set := range []bool{o.prior.wrong, o.last.wrong, o.covered} {
			if set {
				flags |= 4 << bit
			}
		}
		e.Uint(flags)
		for _, x := range o.numbers() {
			e.Float32(*x)
		}
	}
	e.Int(j.next)
}

// counts are the numbers that every version since 2 has.
func (j *Judge) counts() []*uint64 {
	return []*uint64{
		&j.rules[noRule], &j.rules[answered], &j.rules[abstained], &j.wrongKept,
		&j.sets.n, &j.sets.covered, &j.sets.size, &j.sets.empty, &j.pairs, &j.repeats,
	}
}

// encodeTotals appends the part that version 1 also had.
func (j *Judge) encodeTotals(e *wire.Encoder) {
	e.Uint(j.n)
	e.Uint(j.errors)
	e.Float(j.nll)
	e.Float(j.brier)
	for b := range eceBins {
		e.Uint(j.binN[b])
		e.Uint(j.binHits[b])
		e.Float(j.binConf[b])
	}
	e.Int(len(j.confusion))
	for _, row := range j.confusion {
		for _, v := range row {
			e.Uint(v)
		}
	}
}

func (j *Judge) decodeTotals(d *wire.Decoder) {
	j.n, j.errors = d.Uint(), d.Uint()
	j.nll, j.brier = d.Number("scores"), d.Number("scores")
	for b := range eceBins {
		j.binN[b], j.binHits[b], j.binConf[b] = d.Uint(), d.Uint(), d.Number("scores")
	}
	c := d.Int(model.MaxClasses, "confusion matrix")
	if d.Len() < c*c {
		d.Fail("truncated confusion matrix")
		return
	}
	j.grow(c)
	for k := range j.confusion {
		for i := range j.confusion[k] {
			j.confusion[k][i] = d.Uint()
		}
	}
}

// DecodeVersion1 reads the scores of a learner's state of version 1, whose window
// held losses alone: the window begins empty.
func (j *Judge) DecodeVersion1(d *wire.Decoder) {
	j.decodeTotals(d)
	for k, row := range j.confusion {
		for _, n := range row {
			j.labels[k] += n
		}
	}
	d.Floats(d.Int(scoreWindow, "score window"), "score window")
	d.Int(scoreWindow-1, "score window")
}

// Decode reads the state that Encode wrote, into the zero value.
func (j *Judge) Decode(d *wire.Decoder) {
	j.decodeTotals(d)
	for k := range j.labels {
		j.labels[k] = d.Uint()
	}
	j.baselines = d.Uint()
	for _, s := range []*lossSum{&j.prior, &j.last} {
		s.errors, s.nll = d.Uint(), d.Number("scores")
	}
	for _, n := range j.counts() {
		*n = d.Uint()
	}
	c := len(j.labels)
	j.lastLabel = d.Int(c, "last label")
	j.ring = make([]kept, d.Int(scoreWindow, "score window"))
	if c == 0 && len(j.ring) > 0 {
		d.Fail("scores of no class")
		return
	}
	for i := range j.ring {
		var o Outcome
		o.Label, o.Top, o.set = d.Int(c-1, "class"), d.Int(c, "class")-1, d.Int(model.MaxClasses+1, "size of a set")-1
		flags := d.Uint()
		o.rule = rule(min(flags&3, uint64(abstained)))
		o.prior.wrong, o.last.wrong, o.covered = flags&4 != 0, flags&8 != 0, flags&16 != 0
		for _, x := range o.numbers() {
			*x = d.Float32("score window")
		}
		if !(o.conf >= 0 && o.conf <= 1) {
			d.Fail("score window holds the confidence %g", o.conf)
		}
		j.ring[i] = keep(&o)
	}
	j.next = d.Int(scoreWindow-1, "score window")
	if len(j.ring) < scoreWindow && j.next > 0 {
		d.Fail("score window continues in its middle")
	}
	if d.Err() != nil {
		*j = Judge{}
	}
}
