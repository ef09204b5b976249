package online

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/wire"
)

// bankState is the encoded state of the bank and of the horizons' weights.
func (l *Learner) bankState() []byte {
	var e wire.Encoder
	l.bank.EncodeScale(&e, l.warmup.done)
	l.bank.EncodeParams(&e)
	l.mix.EncodeHorizons(&e)
	l.bank.EncodeSites(&e)
	l.bank.EncodeFiltered(&e)
	return e.Buf
}

// A panic in a step refuses the step: the state before it is restored.
func TestPanicInAStep(t *testing.T) {
	l := newTestLearner(t, testConfig(3, "a", "b", "c"))
	rng := rand.New(rand.NewPCG(9, 9))
	feed(l, rng, 200)
	before, post := l.bankState(), l.Posterior()
	latent := l.classes.latent[2]
	l.classes.latent[2] = 9         // of three latent functions
	for range l.cfg.Batch.MaxSize { // without being judged, which would fail first
		ev := blob(rng, 3)
		l.batch.add(ev.X, l.classes.index["c"], 1, 1)
		l.batch.ll = append(l.batch.ll, 0, 0, 0)
	}
	var out Outcome
	l.flush(&out)
	refused := out.Refused
	if p := (*Panic)(nil); !errors.As(refused, &p) || len(p.Stack) == 0 || l.Counters().StepsRefused != 1 {
		t.Errorf("refused with %v, %d counted", refused, l.Counters().StepsRefused)
	}
	if !bytes.Equal(before, l.bankState()) || !slices.Equal(post.Bank[1].Mean, l.view.Bank[1].Mean) || !slices.Equal(post.Weights, l.view.Weights) {
		t.Error("the earlier state was not restored")
	}
	l.classes.latent[2] = latent
	feed(l, rng, 100)
	if l.Counters().StepsRefused != 1 {
		t.Error("steps after the refused one fail")
	}
	checkSound(t, l)
}

// A panic while the model is built leaves no model, until the next attempt.
func TestPanicInTheBuild(t *testing.T) {
	l := newTestLearner(t, testConfig(3, "a", "b", "c"))
	rng := rand.New(rand.NewPCG(9, 9))
	feed(l, rng, 5)
	l.classes.latent = l.classes.latent[:1] // of three classes
	for range 5 {                           // without being judged, which would fail first
		ev := blob(rng, 3)
		l.batch.add(ev.X, l.classes.index[ev.Label], 1, 1)
	}
	l.flush(new(Outcome))
	l.classes.latent = slices.Repeat([]int{-1}, 3)
	if l.view.Built() || l.Counters().StepsRefused != 1 {
		t.Errorf("built %v, %d steps refused", l.view.Built(), l.Counters().StepsRefused)
	}
	checkSound(t, l)
	feed(l, rng, 300)
	if !l.WarmedUp() || l.Counters().StepsRefused != 1 {
		t.Errorf("warmed up %v, %d steps refused", l.WarmedUp(), l.Counters().StepsRefused)
	}
	checkSound(t, l)
}

// A build that always fails does not collect observations without bound.
func TestBuildThatAlwaysFails(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	l := newTestLearner(t, cfg)
	l.classes.latent = l.classes.latent[:1] // of three classes
	rng := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		for range cfg.Batch.MaxSize {
			ev := blob(rng, 3)
			l.batch.add(ev.X, l.classes.index[ev.Label], 1, 1)
		}
		l.flush(new(Outcome))
	}
	if n := l.warmup.len(); l.view.Built() || n > cfg.warmup() || l.Counters().StepsRefused == 0 {
		t.Errorf("built %v with %d observations, of %d at most; %d steps refused", l.view.Built(), n, cfg.warmup(), l.Counters().StepsRefused)
	}
}

// A record that makes the learner panic is left out at each start, and the result
// is that of a learner without the record.
func TestReplayLeavesOutWhatPanics(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	cfg.Classes.Open = false
	rng := rand.New(rand.NewPCG(9, 9))
	var records []Record
	untouched := newTestLearner(t, cfg)
	for i := range 203 {
		r := Record{Seq: uint64(i + 1), Event: blob(rng, 3)}
		switch {
		case i == 50 || i == 120:
			r.Label = "poison"
		case i == 180:
			r.Label = "of no class"
		}
		if records = append(records, r); r.Label != "poison" {
			untouched.Add(&r.Event)
		}
	}
	untouched.counters.StepsRefused += 2
	revive := func() (*Learner, error) {
		l := newTestLearner(t, cfg)
		l.classes.index["poison"] = 99 // there are three
		return l, nil
	}
	l, refused, err := Replay(revive, records)
	if err != nil {
		t.Fatal(err)
	}
	var left, other []uint64
	for _, r := range refused {
		if r.LeftOut != nil {
			left = append(left, r.Seq)
		} else {
			other = append(other, r.Seq)
		}
	}
	if !slices.Equal(left, []uint64{51, 121}) || !slices.Equal(other, []uint64{181}) {
		t.Errorf("left out %d, otherwise refused %d", left, other)
	}
	delete(l.classes.index, "poison")
	if l.Digest() != untouched.Digest() {
		t.Error("the state is not that of a learner without the records that were left out")
	}
	if _, _, err := Replay(func() (*Learner, error) { return nil, ErrState }, records); !errors.Is(err, ErrState) {
		t.Errorf("revive fails: %v", err)
	}
}
