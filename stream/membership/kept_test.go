package membership

import (
	"strings"
	"testing"
	"time"
)

// A broker may pass on a message that it does not keep, because it keeps only smaller ones. Such a
// contribution follows in smaller messages, and who comes later gets it.
func TestPassedOnAndNotKept(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	a.labels, a.size, w.keeps = 200, 200, 9000
	w.pass(15 * time.Second)
	if v := a.View(w.now, Model{}); v.Kept {
		t.Errorf("the view is %+v", v.Own)
	}
	w.pass(2 * time.Minute)
	equal(t, "kept, parts", []any{a.View(w.now, Model{}).Kept, a.own.parts > 1}, []any{true, true})
	if events := a.of("fleet_not_kept"); len(a.happened()) != 1 || !strings.Contains(events[0], "the broker does not keep it") {
		t.Errorf("the events are %q", a.events)
	}
	late := w.start("late", 0, plain)
	w.pass(10 * time.Second)
	equal(t, "members of the late one", len(late.peers), 1)
}

// A broker that starts may keep nothing at first: the contribution is published again as it is.
func TestNothingIsKeptAtFirst(t *testing.T) {
	w := newWorld(t)
	w.keeps = 1
	a := w.start("a", 0, plain)
	a.labels, a.size = 200, 50
	w.pass(12 * time.Second)
	w.keeps = 0
	w.pass(30 * time.Second)
	equal(t, "published, parts, kept", []any{a.published, a.own.parts, a.View(w.now, Model{}).Kept}, []any{2, 0, true})
	equal(t, "events", a.happened(), []string(nil))
}

// The own message is asked for if it is larger than those before, also where the broker marks no retained message.
func TestAskedWhetherItIsKept(t *testing.T) {
	for _, unmarked := range []bool{false, true} {
		w := newWorld(t)
		w.plain = unmarked
		a := w.start("a", 0, plain)
		for _, a.size = range []int{60, 50, 40, 30} {
			a.labels += 100
			w.pass(90 * time.Second)
			equal(t, "kept", a.View(w.now, Model{}).Kept, true)
		}
		equal(t, "published, asked", []any{a.published, a.asked}, []any{4, []string{"edge/fleet/c/a"}})
		equal(t, "events", a.happened(), []string(nil))
		equal(t, "subscriptions", len(a.open), 0)
	}
}

// Contributions that follow each other within the time of an answer are asked for as well, also the one that was
// published while the answer for the one before was on its way.
func TestAskedSoonAgain(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, func(c *Config) { c.Every, c.Interval = 10, time.Second })
	next := func() {
		a.labels += 10
		a.size += 10
	}
	next()
	w.pass(7 * time.Second)
	next()
	w.pass(25 * time.Second)
	equal(t, "published once each", a.published, 2)

	next()
	w.pass(2 * time.Second)
	next()
	answers := 0
	w.lost = func(*node, string) bool { answers++; return answers == 1 } // the answer is of the one before
	w.pass(30 * time.Second)
	equal(t, "published, parts, kept", []any{a.published, a.own.parts, a.View(w.now, Model{}).Kept}, []any{4, 0, true})
	equal(t, "events", a.happened(), []string(nil))
	equal(t, "due", len(a.asking.due), 0)
}

// A broker that restarts without its messages, before it has answered whether it keeps the own one, gets it again as it was.
func TestRestartsBeforeTheAnswer(t *testing.T) {
	w := newWorld(t)
	w.keeps = 1
	a := w.start("a", 0, plain)
	a.labels, a.size = 200, 50
	w.pass(7 * time.Second)
	equal(t, "published, passed on, fresh", []any{a.published, !a.own.passed.IsZero(), a.own.fresh}, []any{1, true, true})
	a.disconnect()
	w.keeps = 0
	a.connect()
	w.pass(30 * time.Second)
	equal(t, "published, parts, kept", []any{a.published, a.own.parts, a.View(w.now, Model{}).Kept}, []any{2, 0, true})
	equal(t, "events", a.happened(), []string(nil))
}

// A common basis that the broker passes on and does not keep is unknown to who comes later: it is published again,
// and the node says so.
func TestBasisPassedOnAndNotKept(t *testing.T) {
	w := newWorld(t)
	w.keeps = 1
	a := w.start("a", 0, sharing)
	a.labels, a.size = 200, 50
	w.pass(5 * time.Minute)
	said := 0
	for _, e := range a.of("fleet_not_kept") {
		if strings.Contains(e, "the common basis came back, and the broker does not keep it") {
			said++
		}
	}
	equal(t, "events, announcements", []int{said, a.announced}, []int{1, basisAttempts})
}

// A broker that starts may keep nothing at first: the basis is published again.
func TestBasisIsNotKeptAtFirst(t *testing.T) {
	w := newWorld(t)
	w.keeps = 1
	a := w.start("a", 0, sharing)
	a.labels, a.size = 200, 50
	w.pass(12 * time.Second)
	w.keeps = 0
	w.pass(time.Minute)
	equal(t, "basis", w.basis(), "1 a")
	equal(t, "events", a.happened(), []string{"fleet_basis"})
}

// A basis is asked for once, and is kept, also where the broker marks no retained message.
func TestBasisIsAskedFor(t *testing.T) {
	for _, unmarked := range []bool{false, true} {
		w := newWorld(t)
		w.plain = unmarked
		a := w.start("a", 0, sharing)
		a.labels, a.size = 200, 50
		w.pass(2 * time.Minute)
		asked := 0
		for _, filter := range a.asked {
			if filter == "edge/fleet/c/basis" {
				asked++
			}
		}
		equal(t, "asked, announced", []int{asked, a.announced}, []int{1, 1})
		equal(t, "events", a.happened(), []string{"fleet_basis"})
	}
}
