package membership

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
	"edge/stream/field"
)

// A node that ends has an epoch once its own message is known, or the broker has been
// quiet for a second, and none before, or without a connection.
func TestLeave(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration // since the connection
		do    func(w *world, n *node)
		want  uint64
	}{
		"at once":                 {0, func(*world, *node) {}, 0},
		"quiet":                   {time.Second, func(*world, *node) {}, 3},
		"messages still come":     {time.Second, func(w *world, n *node) { n.Receive(w.now, "edge/fleet/c/b", nil, true) }, 0},
		"the own message is here": {0, func(w *world, n *node) { n.Receive(w.now, "edge/fleet/c/a", of(t, "a", 7), true) }, 8},
		"no connection":           {time.Second, func(_ *world, n *node) { n.disconnect() }, 0},
		"durable":                 {time.Minute, func(w *world, _ *node) { w.pass(time.Second) }, 0},
		"follower":                {time.Second, func(_ *world, n *node) { n.cfg.Role = RoleFollower }, 0},
	} {
		w := newWorld(t)
		n := w.start("a", 2, plain)
		w.now = w.now.Add(test.after)
		test.do(w, n)
		equal(t, name, n.Leave(w.now), test.want)
		if test.want > 0 {
			n.EpochDurable(test.want)
			equal(t, name+", final", []bool{n.Final(5), n.Final(0)}, []bool{true, false})
		}
	}
}

// of returns the encoded contribution of a member, of an epoch.
func of(t *testing.T, member string, epoch uint64) []byte {
	c := contribution(t, member, 5, 2)
	c.Epoch, c.Sequence = epoch, 1
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A model that was reset takes its contribution back, in all its parts, and publishes again after its
// warm-up. One that learns its journal has not forgotten.
func TestReset(t *testing.T) {
	w := newWorld(t)
	small := func(c *Config) { c.MaxMessage = 4 * field.KiB }
	a, b := w.start("a", 0, small), w.start("b", 0, small)
	a.labels, a.size, b.labels = 300, 100, 50
	w.pass(2 * time.Minute)
	if len(w.kept) < 4 {
		t.Fatalf("the broker keeps %d messages, want parts", len(w.kept))
	}
	n := len(w.kept)
	a.Step(w.now, Learnt{Behind: true})
	equal(t, "messages while the journal is learnt", len(w.kept), n)
	a.labels = 0
	w.pass(10 * time.Second)
	equal(t, "messages after a reset", len(w.kept), 1)
	equal(t, "members of b", len(b.peers), 0)
	if v := a.View(w.now, Model{}); !v.Cleared || v.Kept || v.Lost {
		t.Errorf("the view after a reset is %+v", v)
	}
	a.disconnect()
	a.connect()
	w.pass(5 * time.Minute)
	equal(t, "events", a.happened(), []string{"fleet_left"})
	equal(t, "published", a.published, 1)
	a.labels = 60
	w.pass(2 * time.Minute)
	equal(t, "published after the warm-up", a.published, 2)
	equal(t, "members of b after it", len(b.peers), 1)
	a.labels = 0
	w.pass(10 * time.Second)
	a.labels = 60 // as many as in the one that it took back
	w.pass(5 * time.Minute)
	equal(t, "published after another reset", a.published, 3)
	equal(t, "members of b", len(b.peers), 1)
}

// A member of which the newest message cannot be read, as that of a later program, stays with the
// version before until the next connection. The reason why it leaves is then told.
func TestNewestIsUnreadable(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels, b.labels = 50, 50
	w.pass(time.Minute)
	good := w.kept["edge/fleet/c/b"]
	b.disconnect()
	w.publish(Publication{Topic: "edge/fleet/c/b", Payload: []byte("EFC9")})
	shown := func() string {
		var all []string
		for _, m := range a.View(w.now, Model{}).Members {
			all = append(all, m.Name+" "+string(m.Unread))
		}
		return strings.Join(all, ", ")
	}
	equal(t, "members", shown(), "b format")
	w.publish(Publication{Topic: "edge/fleet/c/b", Payload: []byte(good)})
	equal(t, "members after the version before", shown(), "b ")
	w.publish(Publication{Topic: "edge/fleet/c/b", Payload: []byte("EFC9")})
	a.disconnect()
	w.pass(time.Second)
	a.connect()
	w.pass(time.Minute)
	equal(t, "members after a reconnect", shown(), "")
	equal(t, "left", a.of("fleet_left"), []string{"b: its message at the broker is refused: format"})
}

// A member that leaves while a node is away is missed by a follower, by a node that has nothing
// to publish yet and by one that may not write, if the broker keeps the message of another
// member. A broker that keeps none may have lost them.
func TestLeavingUnseen(t *testing.T) {
	for name, start := range map[string]func(w *world) *node{
		"a follower":     func(w *world) *node { return w.start("n", 0, func(c *Config) { c.Role = RoleFollower }) },
		"in the warm-up": func(w *world) *node { return w.start("n", 0, plain) },
		"may not write": func(w *world) *node {
			w.lost = func(_ *node, topic string) bool { return topic == "edge/fleet/c/n" }
			n := w.start("n", 0, plain)
			n.labels = 100
			return n
		},
	} {
		for _, lost := range []bool{false, true} {
			w := newWorld(t)
			a, b := w.start("a", 0, plain), w.start("b", 0, plain)
			n := start(w)
			a.labels, b.labels = 200, 300
			w.pass(time.Minute)
			n.disconnect()
			w.nodes = []*node{n}
			if lost {
				clear(w.kept)
			} else {
				delete(w.kept, "edge/fleet/c/b")
			}
			n.connect()
			w.pass(time.Minute)
			if lost {
				equal(t, name+", lost: members", len(n.peers), 2)
			} else {
				equal(t, name+": members", slices.Collect(maps.Keys(n.peers)), []string{"a"})
				equal(t, name+": left", slices.Contains(n.happened(), "fleet_left"), true)
			}
		}
	}
}

// The time without a connection makes no member stale, and a new connection makes none fresh. A
// stale member has no share.
func TestStaleAfterOutage(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, func(c *Config) { c.StaleAfter, c.MergeEvery = 10*time.Minute, time.Second })
	b := w.start("b", 0, plain)
	b.labels = 200
	for _, step := range []struct {
		what  string
		after time.Duration
		do    func()
		stale bool
	}{
		{"connected", 9 * time.Minute, func() {}, false},
		{"an outage", time.Hour, func() { a.disconnect() }, false},
		{"connected again", 9 * time.Minute, a.connect, false},
		{"silent", 2 * time.Minute, func() {}, true},
		{"another outage", time.Hour, func() { a.disconnect() }, true},
		{"another connection", time.Minute, a.connect, true},
		{"published", 2 * time.Minute, func() { b.labels += 100 }, false},
	} {
		step.do()
		w.pass(step.after)
		one := a.View(w.now, Model{}).Members[0]
		equal(t, step.what, []any{one.Stale, one.Taken, one.Share > 0, one.Waiting}, []any{step.stale, !step.stale, !step.stale, false})
	}
	equal(t, "merges", strings.Join(a.merges, ","), "b200,,b300")
}

// A merge that fails by its contributions is refused: counted, told, and tried again.
func TestMergeFails(t *testing.T) {
	w := newWorld(t)
	n := w.start("a", 1, plain)
	n.MergeFailed(w.now, nil)
	n.MergeFailed(w.now, errors.New("panic: index"))
	equal(t, "refused", n.View(w.now, Model{}).Refused, map[fleet.Reason]uint64{fleet.NotFactored: 1})
	equal(t, "events", n.events, []string{"fleet_refused c: numbers: the contributions cannot be added: panic: index"})
}

// A member that is a follower after a restart takes its contribution back, once; what another
// process of its name publishes stays.
func TestMemberBecomesAFollower(t *testing.T) {
	for name, parted := range map[string]bool{"one message": false, "parts": true} {
		w := newWorld(t)
		f, b := w.start("f", 0, func(c *Config) {
			if parted {
				c.MaxMessage = 1 << 10
			}
		}), w.start("b", 0, plain)
		f.labels, b.labels = 100, 100
		if parted {
			f.size = 60
		}
		w.pass(3 * time.Minute)
		equal(t, name+": the broker keeps parts", len(w.kept) > 2, parted)
		f.disconnect()
		w.nodes = []*node{b}
		f = w.start("f", 1, func(c *Config) { c.Role = RoleFollower })
		w.pass(10 * time.Minute)
		equal(t, name+": kept", slices.Sorted(maps.Keys(w.kept)), []string{"edge/fleet/c/b"})
		equal(t, name+": merges of b", b.merges[len(b.merges)-1], "")
		equal(t, name+": events", f.happened(), []string{"fleet_left"})
		w.publish(Publication{"edge/fleet/c/f", of(t, "f", 7)})
		w.pass(3 * time.Minute)
		equal(t, name+": kept", slices.Sorted(maps.Keys(w.kept)), []string{"edge/fleet/c/b", "edge/fleet/c/f"})
	}
}
