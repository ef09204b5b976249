package online

import (
	"fmt"
	"math"
	"slices"

	"edge/online/wire"
)

// stateMagic and stateVersion open every encoded state. A version that this
// program does not know is refused. Version 1 had the scores in the middle of
// the model and no sections; it is read, and not written any more.
const (
	stateMagic   = "edgelrn\x00"
	stateVersion = 2
)

// AppendBinary appends the whole state, from which Restore carries on exactly:
// the primary numbers only, triangles packed, then the sections. The error is
// always nil.
//
// Config.EncodedSize has the formula of its size, StateSize returns it part by part.
func (l *Learner) AppendBinary(dst []byte) ([]byte, error) {
	l.settle()
	e := &wire.Encoder{Buf: append(slices.Grow(dst, l.encodedSize()), stateMagic...)}
	e.Uint(stateVersion)
	l.encodeCore(e)
	l.encodeSections(e)
	return e.Buf, nil
}

// encodedSize is about the number of bytes that AppendBinary appends.
func (l *Learner) encodedSize() int {
	return int(l.cfg.EncodedSize(len(l.view.Latent))) + 8*len(l.view.Scale.Ranks)
}

// encodeCore appends the part that is in every state.
func (l *Learner) encodeCore(e *wire.Encoder) {
	e.String(l.cfg.Shape())
	e.Int(len(l.classes.names))
	for _, name := range l.classes.names {
		e.String(name)
	}
	e.Int(len(l.view.Names))
	for _, n := range l.view.Counts {
		e.Uint(n)
	}
	e.Uint(l.view.N)
	l.mix.EncodePool(e)
	e.Bool(l.warmup.done)
	e.Int(l.warmup.last)
	l.bank.EncodeScale(e, l.warmup.done)
	e.Int(l.warmup.len())
	e.Floats(l.warmup.x)
	e.Ints(l.warmup.y)
	e.Int(l.batch.len())
	e.Floats(l.batch.x)
	e.Floats(l.batch.ll)
	e.Ints(l.batch.y)
	for _, v := range l.coreCounters() {
		e.Uint(*v)
	}
	e.Bool(l.view.Built())
	if l.view.Built() {
		l.bank.EncodeParams(e)
		l.mix.EncodeHorizons(e)
		l.bank.EncodeSites(e)
	}
}

// coreCounters are the counters in every state.
func (l *Learner) coreCounters() [4]*uint64 {
	b := &l.bank.Counts
	return [4]*uint64{&b.Steps, &l.counters.StepsRefused, &l.counters.LabelsRefused, &b.CholeskyRetries}
}

// Restore returns the learner whose AppendBinary gave data, under cfg. It
// carries on exactly: the same events lead to the same bytes. A cfg of another
// shape is refused with ErrShape, anything that is not a state with ErrState,
// one of a newer program with ErrNewer.
func Restore(cfg Config, data []byte) (*Learner, error) {
	l, err := NewLearner(cfg)
	if err != nil {
		return nil, err
	}
	if len(data) < len(stateMagic) || string(data[:len(stateMagic)]) != stateMagic {
		return nil, fmt.Errorf("online: state does not begin with its mark: %w", ErrState)
	}
	d := wire.NewDecoder(data[len(stateMagic):], "online: state: ", ErrState)
	version := d.Uint()
	if d.Err() == nil && (version < 1 || version > stateVersion) {
		return nil, fmt.Errorf("online: state of version %d, this program reads versions 1 to %d: %w", version, stateVersion, ErrNewer)
	}
	if shape, now := d.String(math.MaxInt32), cfg.Shape(); d.Err() == nil && shape != now && shape != FormerShape(now) {
		return nil, fmt.Errorf("online: state was made with %s, configuration has %s: %w", shape, now, ErrShape)
	}
	l.decodeCore(d, version)
	if d.Err() == nil {
		l.orderMinibatch()
	}
	if version > 1 {
		l.decodeSections(d)
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	l.forest.Grow()
	l.restoreForests()
	if l.warmup.done {
		l.mix.StartNoise(true)
	}
	// Classes declared since the state was written.
	r := &l.classes
	for _, name := range cfg.Classes.Names {
		if _, known := r.index[name]; !known && !r.removed[name] && len(r.names) < maxClasses {
			r.add(name)
		}
	}
	if len(cfg.Classes.Names) > 0 && l.Pending() == 0 {
		l.publishClasses()
		l.followClasses()
	}
	return l, nil
}

// RestoreOrNew returns a learner restored from a state, or a new one if state is nil. Errors:
// those of Restore, or of NewLearner.
func RestoreOrNew(cfg Config, state []byte) (*Learner, error) {
	if state == nil {
		return NewLearner(cfg)
	}
	return Restore(cfg, state)
}

// decodeCore reads the values that encodeCore wrote, after the shape.
func (l *Learner) decodeCore(d *wire.Decoder, version uint64) {
	l.classes = newRegistry()
	for range d.Int(maxClasses, "number of classes") {
		name := d.String(math.MaxInt32)
		if _, twice := l.classes.index[name]; twice {
			d.Fail("class occurs twice")
		}
		l.classes.add(name)
	}
	classes := len(l.classes.names)
	declared := d.Int(classes, "number of declared classes")
	l.view.Names = l.classes.names[:declared:declared]
	l.view.Counts = make([]uint64, declared)
	for k := range l.view.Counts {
		l.view.Counts[k] = d.Uint()
	}
	l.view.N = d.Uint()
	l.mix.DecodePool(d, version)
	w, b := &l.warmup, &l.batch
	w.done = d.Bool()
	w.last = d.Int(math.MaxInt32, "build size")
	l.bank.DecodeScale(d, w.done)
	n := d.Int(maxWarmup+maxBatch, "warm-up buffer")
	w.kept = w.done && n > 0
	w.x = d.Floats(n*w.d, "warm-up buffer")
	w.y, w.w = d.Ints(n, classes, "class"), ones(n)
	n = d.Int(maxBatch, "minibatch")
	b.x = d.Floats(n*w.d, "minibatch")
	b.ll = d.Floats(n*len(l.cfg.Horizons), "minibatch")
	b.y, b.w, b.errors = d.Ints(n, classes, "class"), ones(n), float64(n)
	if version == 1 {
		l.judge.DecodeVersion1(d)
	}
	for _, v := range l.coreCounters() {
		*v = d.Uint()
	}
	if !d.Bool() || d.Err() != nil {
		return
	}
	window := l.bank.DecodeParams(d, classes, max(maxWindow, maxBatch), l.Pending())
	l.mix.DecodeHorizons(d)
	l.bank.DecodeSites(d, window)
	if d.Err() == nil {
		l.classes.setLatent(l.view.Latent)
	}
}

// orderMinibatch extends the order of the labels by the minibatch that is filling,
// which earlier programs did when it was closed. The section of the order, where a
// state has it, replaces the result.
func (l *Learner) orderMinibatch() {
	if l.cfg.Temporal == TemporalOff {
		return
	}
	for _, k := range l.batch.y {
		if k < len(l.view.Names) {
			l.mix.NextLabel(k)
		}
	}
	l.mix.CountMoves()
}

// ones returns n weights of 1.
func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// weights are those of all samples that are kept one by one.
func (l *Learner) weights() [][]float64 {
	return [][]float64{l.warmup.w, l.batch.w, l.bank.WindowWeights()}
}

// encodeWeights appends the weights, unless all are 1.
func (l *Learner) encodeWeights(e *wire.Encoder) {
	plain := true
	for _, w := range l.weights() {
		plain = plain && !slices.ContainsFunc(w, func(v float64) bool { return v != 1 })
	}
	if plain {
		return
	}
	for _, w := range l.weights() {
		e.Floats(w)
	}
}

func (l *Learner) decodeWeights(d *wire.Decoder) {
	for _, w := range l.weights() {
		d.Fill(w, "weights")
		for i, v := range w {
			if !(v > 0 && v <= MaxWeight) {
				d.Fail("a weight is out of range")
				w[i] = 1
			}
		}
	}
}

func (l *Learner) decodeClasses(d *wire.Decoder) {
	l.classes.decode(d, len(l.cfg.Features))
	l.view.Epoch = l.classes.epoch
	if d.Err() == nil {
		l.view.Aliases = l.classes.aliases()
	}
	for _, u := range l.classes.unconfirmed {
		for i := range u.samples {
			if err := l.checkSample(&u.samples[i]); err != nil {
				d.Abort(err)
				return
			}
		}
	}
}

// corrections are the counters of the section "corrections".
func (c *Counters) corrections() [3]*uint64 {
	return [3]*uint64{&c.CorrectionsExact, &c.CorrectionsAdded, &c.CandidatesDropped}
}

// encodeCorrections appends the counters; nothing if all are 0.
func (l *Learner) encodeCorrections(e *wire.Encoder) {
	c := &l.counters
	if c.CorrectionsExact+c.CorrectionsAdded+c.CandidatesDropped == 0 {
		return
	}
	for _, v := range c.corrections() {
		e.Uint(*v)
	}
}

func (l *Learner) decodeCorrections(d *wire.Decoder) {
	for _, v := range l.counters.corrections() {
		*v = d.Uint()
	}
}
