package membership

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// came returns the members that a node has reported as new.
func (n *node) came() (names []string) {
	for _, e := range n.events {
		if detail, found := strings.CutPrefix(e, "fleet_member "); found {
			name, _, _ := strings.Cut(detail, ":")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A node reports the members that come while it runs, and none that were there when it started:
// an automation would act at each restart of each node.
func TestMembersThatCame(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b"} {
		w.start(name, 0, plain).labels = 200
	}
	w.pass(time.Minute)
	n := w.start("n", 0, plain)
	n.disconnect() // at once, as over a poor connection
	n.connect()
	w.pass(time.Minute)
	equal(t, "those before the start", n.came(), []string(nil))
	equal(t, "members", len(n.View(w.now, Model{}).Members), 2)

	w.start("c", 0, plain).labels = 200
	w.pass(time.Minute)
	equal(t, "published meanwhile", n.came(), []string{"c"})

	large := w.start("d", 0, func(c *Config) { c.MaxMessage = 4 << 10 })
	large.labels, large.size = 200, 60
	w.pass(10 * time.Second)
	n.retained("+/+") // what its first subscription to parts brings
	w.pass(time.Minute)
	equal(t, "published in parts, to which there was no subscription", n.came(), []string{"c", "d"})

	n.disconnect()
	w.start("e", 0, plain).labels = 200
	w.pass(time.Minute)
	n.connect()
	w.pass(time.Minute)
	equal(t, "published while the node was not connected", n.came(), []string{"c", "d", "e"})

	again := w.start("n", 2, plain)
	w.pass(time.Minute)
	equal(t, "after a restart", again.came(), []string(nil))
}

// A member whose message the broker had lost on the way is new when it comes by request.
func TestMemberThatCameLate(t *testing.T) {
	w := newWorld(t)
	n := w.start("n", 0, plain)
	w.pass(time.Minute)
	w.lost = func(of *node, topic string) bool { return of == n && strings.HasSuffix(topic, "/a") }
	w.start("a", 0, plain).labels = 200
	w.pass(time.Minute)
	equal(t, "lost", n.came(), []string(nil))
	w.lost = nil
	w.pass(20 * time.Minute)
	equal(t, "asked for", n.came(), []string{"a"})
}
