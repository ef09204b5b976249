package online

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
)

// labelled is a sample of class k.
func labelled(k, d int, name string) *Event {
	x := make([]float64, d)
	for j := range x {
		x[j] = 3*math.Sin(float64(k*(j+1))) + float64(k%7)/7
	}
	return &Event{Kind: Observe, X: x, Label: name}
}

// TestNamesThatOccurOnce: they use half of the classes at most; labels that occur
// again can use the rest.
func TestNamesThatOccurOnce(t *testing.T) {
	l := newTestLearner(t, testConfig(2))
	for i := range 500 {
		l.Add(labelled(i, 2, fmt.Sprint("once ", i)))
	}
	if n := len(l.classes.names); n != cautiousFrom {
		t.Errorf("%d classes of 500 names that came once, want %d", n, cautiousFrom)
	}
	if want := uint64(500 - cautiousFrom - maxUnconfirmed); l.Counters().CandidatesDropped != want {
		t.Errorf("%d names were dropped, want %d", l.Counters().CandidatesDropped, want)
	}
	for range 2 {
		for i := range 48 {
			l.Add(labelled(i, 2, fmt.Sprint("again ", i)))
		}
	}
	if n, want := len(l.classes.names), l.cfg.Classes.Max; n != want {
		t.Errorf("%d classes after 48 names that came twice, want %d", n, want)
	}
	if len(l.classes.unconfirmed) > maxUnconfirmed || l.classes.held() > maxHeld {
		t.Errorf("%d labels wait with %d samples", len(l.classes.unconfirmed), l.classes.held())
	}
	checkSound(t, l)
}

// TestUnconfirmedAreBounded: the samples of unconfirmed labels are bounded together,
// for any number that each may have.
func TestUnconfirmedAreBounded(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Classes.Confirm = maxConfirm
	l := newTestLearner(t, cfg)
	for range maxConfirm - 1 {
		for i := range 20 {
			l.Add(labelled(i, 2, fmt.Sprint(i)))
			if n := l.classes.held(); n > maxHeld {
				t.Fatalf("%d samples wait, at most %d should", n, maxHeld)
			}
		}
	}
	if l.Counters().CandidatesDropped == 0 {
		t.Error("no label was dropped: the test met no bound")
	}
}

// TestMemoryOfClasses: a default model with the largest number of classes stays within
// its part of 64 MiB, with both snapshots.
func TestMemoryOfClasses(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Features = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	before := heap()
	l := newTestLearner(t, cfg)
	old := l.Posterior()
	for i := range 400 {
		old = l.Posterior()
		l.Add(labelled(i%60, len(cfg.Features), fmt.Sprint("name ", i%60)))
	}
	now := l.Posterior()
	l.bank.Own()    // as the next step does: the largest that a model becomes
	const most = 11 // MB
	if took := heap() - before; took > most {
		t.Errorf("%d classes take %.1f MB, want at most %d", len(l.classes.names), took, most)
	}
	runtime.KeepAlive(old)
	runtime.KeepAlive(now)
	if !l.view.Built() || len(l.view.Latent) < cfg.Classes.Max {
		t.Errorf("built %v with %d latent functions: the test is too short", l.view.Built(), len(l.view.Latent))
	}
}

// TestDeclaredHaveRoom: all declared names are classes; other labels are refused where
// these are more than the bound.
func TestDeclaredHaveRoom(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprint("declared ", i))
	}
	cfg := testConfig(2, names...)
	l := newTestLearner(t, cfg)
	for range 2 {
		if out := l.Add(labelled(1, 2, "another")); !errors.Is(out.Refused, ErrClass) {
			t.Errorf("a class beyond the bound: %+v", out)
		}
	}
	for k, name := range names {
		if out := l.Add(labelled(k, 2, name)); out.Refused != nil {
			t.Errorf("%s: %v", name, out.Refused)
		}
	}
	state, _ := l.AppendBinary(nil)
	if back, err := Restore(cfg, state); err != nil || back.Digest() != l.Digest() {
		t.Errorf("restored: %v", err)
	}
}
