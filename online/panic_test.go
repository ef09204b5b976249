package online

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// A panic in a step is a step that is refused: the state of before stays.
func TestPanicInAStep(t *testing.T) {
	l := newTestLearner(t, testConfig(3, "a", "b", "c"))
	rng := rand.New(rand.NewPCG(9, 9))
	feed(l, rng, 200)
	params, window, post := slices.Clone(l.params.Theta), slices.Clone(l.winX), l.Posterior()
	resp := l.work.resp
	l.work.resp = nil // the last sweep finds no room
	var refused error
	for refused == nil {
		ev := blob(rng, 3)
		refused = l.Add(&ev).Refused
	}
	if p := (*Panic)(nil); !errors.As(refused, &p) || len(p.Stack) == 0 || l.Counters().StepsRefused != 1 {
		t.Errorf("refused with %v, %d counted", refused, l.Counters().StepsRefused)
	}
	if !slices.Equal(params, l.params.Theta) || !slices.Equal(window, l.winX) || !slices.Equal(post.Bank[1].Mean, l.view.Bank[1].Mean) {
		t.Error("the state of before did not come back")
	}
	l.work.resp = resp
	feed(l, rng, 100)
	if l.Counters().StepsRefused != 1 {
		t.Error("steps after the refused one fail")
	}
	checkSound(t, l)
}

// A panic while the model is built leaves none, until the next attempt.
func TestPanicInTheBuild(t *testing.T) {
	l := newTestLearner(t, testConfig(3, "a", "b", "c"))
	rng := rand.New(rand.NewPCG(9, 9))
	feed(l, rng, 5)
	l.latent = l.latent[:1] // of three classes
	for range 5 {           // without being judged, which would fail first
		ev := blob(rng, 3)
		l.hold(ev.X, l.class[ev.Label], 1)
	}
	l.flush(new(Outcome))
	l.latent = slices.Repeat([]int{-1}, 3)
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

// What cannot be built does not gather observations for ever.
func TestBuildThatAlwaysFails(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	l := newTestLearner(t, cfg)
	l.latent = l.latent[:1] // of three classes
	rng := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		for range cfg.Batch.MaxSize {
			ev := blob(rng, 3)
			l.hold(ev.X, l.class[ev.Label], 1)
		}
		l.flush(new(Outcome))
	}
	if n := len(l.bufY); l.view.Built() || n > cfg.warmup() || l.Counters().StepsRefused == 0 {
		t.Errorf("built %v with %d observations, of %d at most; %d steps refused", l.view.Built(), n, cfg.warmup(), l.Counters().StepsRefused)
	}
}

// A record that makes the learner panic is left out at each start, and what is
// learnt is what a learner knows that never saw it.
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
		l.class["poison"] = 99 // there are three
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
	delete(l.class, "poison")
	if l.Digest() != untouched.Digest() {
		t.Error("what is learnt is not what a learner knows that never saw what is left out")
	}
	if _, _, err := Replay(func() (*Learner, error) { return nil, ErrState }, records); !errors.Is(err, ErrState) {
		t.Errorf("revive fails: %v", err)
	}
}
