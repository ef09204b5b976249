package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
)

// A message of a node's earlier process that comes back, from a broker that has lost its latest
// messages or over a bridge, is replaced by the next publication. One whose process goes on
// publishing is of a second node of that name.
func TestOwnPast(t *testing.T) {
	const topic = "edge/fleet/c/a"
	for name, test := range map[string]struct {
		do      func(w *world, a *node, past string)
		stopped bool
	}{
		"the broker has gone back to an older save": {func(w *world, a *node, past string) {
			a.disconnect()
			w.kept[topic] = past
			a.connect()
		}, false},
		"the broker has gone back twice": {func(w *world, a *node, past string) {
			for range 2 {
				a.disconnect()
				w.kept[topic] = past
				a.connect()
				w.pass(20 * time.Second)
			}
		}, false},
		"a bridge brings it": {func(w *world, _ *node, past string) { w.publish(Publication{topic, []byte(past)}) }, false},
		"a bridge brings it twice": {func(w *world, _ *node, past string) {
			for range 2 {
				w.publish(Publication{topic, []byte(past)})
				w.pass(20 * time.Second)
			}
		}, false},
		"its process goes on": {func(w *world, _ *node, past string) {
			c, err := fleet.Decode([]byte(past))
			if err != nil {
				w.t.Fatal(err)
			}
			for range 2 {
				c.Sequence++
				data, _ := c.AppendBinary(nil)
				w.publish(Publication{topic, data})
			}
		}, true},
	} {
		for _, found := range []bool{true, false} { // the message at the start
			w := newWorld(t)
			a := w.start("a", 0, plain)
			a.labels = 200
			w.pass(10 * time.Second)
			past := w.kept[topic]
			if a.disconnect(); !found {
				clear(w.kept)
			}
			w.nodes = nil
			a = w.start("a", 1, plain)
			a.labels = 300
			w.pass(2 * time.Minute)
			if a.published != 1 {
				t.Fatalf("%s: published %d times", name, a.published)
			}
			test.do(w, a, past)
			w.pass(time.Minute)
			equal(t, name+": stopped", a.own.stopped != "", test.stopped)
			if test.stopped {
				continue
			}
			equal(t, name+": events", a.happened(), []string(nil))
			if c, err := fleet.Decode([]byte(w.kept[topic])); err != nil || c.Instance != a.instance || c.Version != a.own.Version {
				t.Errorf("%s: the broker keeps %+v, %v", name, c, err)
			}
			equal(t, name+": kept", a.View(w.now, Model{}).Kept, true)
		}
	}
}

// The message of before comes over a bridge while there is nothing to publish yet.
func TestOwnPastBeforeTheFirst(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 4, plain)
	w.pass(10 * time.Second)
	past := contribution(t, "a", 5, 2)
	past.Instance, past.Version = 1, fleet.Version{Epoch: 4, Sequence: 1}
	data, err := past.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.publish(Publication{"edge/fleet/c/a", data})
	w.pass(10 * time.Second)
	a.labels = 200
	w.pass(20 * time.Second)
	equal(t, "published, stopped", []any{a.published, a.own.stopped}, []any{1, ""})
}

// Whatever takes the place of the own message at the broker, the view says so, and the node
// publishes again.
func TestOwnMessageReplaced(t *testing.T) {
	const topic = "edge/fleet/c/a"
	for name, other := range map[string]func(older string) string{
		"an older one of this process": func(older string) string { return older },
		"one of another member":        func(string) string { return string(of(t, "b", 3)) },
		"no contribution":              func(string) string { return "garbage" },
		"a damaged one":                func(older string) string { return older[:len(older)-1] },
		"a damaged list of parts":      func(string) string { return listMagic + "?" },
	} {
		for _, away := range []bool{false, true} { // while the node has no connection
			w := newWorld(t)
			a := w.start("a", 0, plain)
			a.labels = 200
			w.pass(10 * time.Second)
			older := w.kept[topic]
			a.labels = 300
			w.pass(2 * time.Minute)
			if away {
				a.disconnect()
			}
			w.publish(Publication{topic, []byte(other(older))})
			if away {
				a.connect()
			}
			view := a.View(w.now, Model{})
			equal(t, name+": published, kept", []any{a.published, view.Kept, a.link.kept}, []any{2, false, false})
			w.pass(time.Minute)
			view = a.View(w.now, Model{})
			equal(t, name+": published, kept", []any{a.published, view.Kept}, []any{3, true})
			if c, err := fleet.Decode([]byte(w.kept[topic])); err != nil || c.Version != a.own.Version {
				t.Errorf("%s: the broker keeps %+v, %v", name, c, err)
			}
		}
	}
}

// A message with the last epoch that members accept does not silence the node of its name, nor
// does a state file with that epoch or a later one.
func TestLastEpoch(t *testing.T) {
	for _, stored := range []uint64{0, maxEpoch - 1, maxEpoch, maxEpoch + 1} {
		w := newWorld(t)
		a, b := w.start("a", stored, plain), w.start("b", 0, plain)
		a.labels = 200
		w.pass(10 * time.Second)
		c := contribution(t, "a", 100, 2)
		c.Instance, c.Version = a.instance+1, fleet.Version{Epoch: maxEpoch - 1, Sequence: 1}
		data, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		w.publish(Publication{"edge/fleet/c/a", data})
		for _, a.labels = range []uint64{200, 300, 400} {
			w.pass(2 * time.Minute)
			if got := b.set.Get("a"); got == nil || got.Instance != a.instance || got.N != a.labels {
				t.Errorf("state file with epoch %d, %d labels: b does not have them, refused %v", stored, a.labels, b.counts.Refused)
			}
		}
		equal(t, "kept", a.View(w.now, Model{}).Kept, true)
	}
}

// The view has the classes that only others have, and those of this node alone: a device with other
// names for the same classes is seen by them. So it is after a restart, too.
func TestForeignClasses(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	foreign := func() string {
		v := a.View(w.now, Model{Classes: []string{"a", "b", "worn"}})
		return fmt.Sprint(v.Foreign, v.Alone)
	}
	a.labels = 200
	w.pass(2 * time.Minute)
	equal(t, "classes without a member", foreign(), "[] []")
	c := contribution(t, "b", 60, 2)
	c.Version, c.Classes = fleet.Version{Epoch: 1, Sequence: 1}, []string{"b", "worn"}
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.publish(Publication{"edge/fleet/c/b", data})
	equal(t, "classes", foreign(), "[worn] [a]")
	w.nodes = nil
	a = w.start("a", a.own.epoch, plain)
	a.labels = 200
	w.pass(10 * time.Second)
	equal(t, "classes after a restart", foreign(), "[worn] [a]")
	f := w.start("f", 0, func(c *Config) { c.Role = RoleFollower })
	w.pass(10 * time.Second)
	if v := f.View(w.now, Model{}); v.Foreign != nil || v.Alone != nil {
		t.Errorf("a follower has the classes %q and %q", v.Foreign, v.Alone)
	}
}

// After a restart without new labels the view has the version that the broker and the others have.
func TestVersionAfterRestart(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels = 200
	w.pass(2 * time.Minute)
	w.nodes = []*node{b}
	a = w.start("a", a.own.epoch, plain)
	version := func() string {
		v, theirs := a.View(w.now, Model{}).Own, b.View(w.now, Model{}).Members[0]
		return fmt.Sprintf("%d.%d, at b %d.%d", v.Epoch, v.Sequence, theirs.Epoch, theirs.Sequence)
	}
	a.labels = 200
	w.pass(2 * time.Minute)
	equal(t, "version", version(), "1.1, at b 1.1")
	a.labels = 400
	w.pass(2 * time.Minute)
	equal(t, "version after more labels", version(), "2.1, at b 2.1")
}

// A node that publishes no more, because another process has its name, goes on when that one ends. If
// that one runs on after all, it contradicts.
func TestNamesakeEnds(t *testing.T) {
	const topic = "edge/fleet/c/a"
	const silent = "it ends without a word"
	for name, end := range map[string]func(w *world, a *node){
		silent:                           func(w *world, _ *node) { w.pass(2 * tryAfter) },
		"it says so":                     func(_ *world, a *node) { a.OtherEnded() },
		"its contribution was removed":   func(w *world, _ *node) { w.publish(Publication{Topic: topic}) },
		"it says so, and that was wrong": func(_ *world, a *node) { a.OtherEnded() },
	} {
		w := newWorld(t)
		first := w.start("a", 0, plain)
		first.labels = 200
		w.pass(time.Minute)
		other := w.start("b", 0, plain)
		a := w.start("a", 0, plain)
		a.labels = 150
		w.pass(3 * time.Minute)
		first.labels = 320
		w.pass(3 * time.Minute)
		equal(t, name+": stopped", []any{a.own.stopped != "", first.own.stopped}, []any{true, ""})
		a.labels = 300
		w.pass(10 * time.Minute)
		published := a.published
		runs := name == "it says so, and that was wrong"
		if !runs {
			first.disconnect()
			w.nodes = []*node{other, a}
		}
		end(w, a)
		w.pass(2 * time.Minute)
		c, err := fleet.Decode([]byte(w.kept[topic]))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, name+": published again", a.published > published, true)
		equal(t, name+": stopped at the end", a.View(w.now, Model{}).Stopped != "", runs)
		want := a
		if runs {
			want = first
		}
		equal(t, name+": labels that the broker keeps", c.N, want.labels)
		equal(t, name+": those that another member has", other.set.Get("a").N, want.labels)
		if name == silent { // the events say how long nothing was heard
			equal(t, name+": last event", strings.Contains(a.events[len(a.events)-1], "has published nothing for 1h0m0s"), true)
		}
		equal(t, name+": kept", want.View(w.now, Model{}).Kept, true)
	}
}

// A displaced node tries less and less often whether the process that has its name has ended, where
// that one runs and is silent.
func TestNamesakeIsSilent(t *testing.T) {
	w := newWorld(t)
	first := w.start("a", 0, plain)
	first.labels = 200
	w.pass(time.Minute)
	a := w.start("a", 0, plain)
	a.labels = 150
	w.pass(time.Minute)
	first.labels = 320
	w.pass(time.Minute)
	published := a.published
	w.pass(48 * time.Hour)
	if tries := a.published - published; tries < 3 || tries > 5 {
		t.Errorf("%d tries in 48 hours", tries)
	}
	equal(t, "stopped", []bool{first.own.stopped != "", a.own.stopped != ""}, []bool{false, true})
	c, err := fleet.Decode([]byte(w.kept["edge/fleet/c/a"]))
	if err != nil || c.N != 320 {
		t.Errorf("the broker keeps %+v, %v", c, err)
	}
}

// Who publishes no more because the broker ends its connections does not begin again for another's end.
func TestStrikesStay(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	a.labels = 200
	for range maxStrikes {
		w.limit = 1
		w.pass(time.Minute)
		a.own.fresh, a.own.at = true, w.now
		a.disconnect()
		a.connect()
	}
	equal(t, "stopped", a.own.stopped != "", true)
	a.OtherEnded()
	equal(t, "stopped after another's end", a.own.stopped != "", true)
}

// Another process of a node's name, in its first epoch too, may have published more often. The next
// publication replaces what it has left, also at members that have taken it and were away since.
func TestNamesakeThatPublishedMore(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels, b.labels = 200, 50
	w.pass(time.Minute)
	other, err := fleet.Decode([]byte(w.kept["edge/fleet/c/a"]))
	if err != nil {
		t.Fatal(err)
	}
	other.Instance, other.Sequence = 1, other.Sequence+7 // lower than that of a
	data, err := other.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.publish(Publication{"edge/fleet/c/a", data})
	b.disconnect()
	w.pass(time.Minute)
	b.connect() // which brings the retained message
	w.pass(time.Second)
	if got := b.set.Get("a"); got == nil || got.Instance != a.instance {
		t.Errorf("b has %+v of a", got)
	}
	if v := a.View(w.now, Model{}); !v.Kept || a.own.stopped != "" {
		t.Errorf("the view of a is %+v", v)
	}
}
