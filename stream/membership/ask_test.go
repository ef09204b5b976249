package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A message that the broker has not sent is asked for once its member has been silent, and
// counted. The subscription ends.
func TestAskedAgain(t *testing.T) {
	for name, size := range map[string]int{"whole": 2, "in parts": 60} {
		w := newWorld(t)
		a, b := w.start("a", 0, plain), w.start("b", 0, func(c *Config) { c.MaxMessage = 4096 })
		b.labels, b.size = 200, size
		w.pass(time.Minute)
		w.lost = func(n *node, _ string) bool { return n == a }
		b.labels += 100
		w.pass(time.Minute)
		w.lost = nil
		equal(t, name+": in parts", b.own.parts > 0, size > 2)
		equal(t, name+": version before", a.set.Get("b").Sequence, 1)
		w.pass(time.Minute)
		equal(t, name+": version after", a.set.Get("b").Sequence, 2)
		equal(t, name+": missed", a.View(w.now, Model{}).Missed, 1)
		equal(t, name+": events", a.happened(), []string{"fleet_missed"})
		w.pass(time.Minute)
		equal(t, name+": open subscriptions", len(a.open), 0)
		equal(t, name+": nothing was missed by b", len(b.peers), 0)
	}
}

// A message that was not sent at the beginning of a connection is asked for before its member
// is taken to have left.
func TestAskedBeforeLeaving(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels, b.labels = 200, 200
	w.pass(10 * time.Second)
	a.asked = nil
	a.disconnect()
	w.lost = func(n *node, topic string) bool { return n == a && strings.HasSuffix(topic, "/b") }
	a.connect()
	w.lost = nil
	w.pass(30 * time.Second)
	equal(t, "members", len(a.peers), 1)
	equal(t, "asked", a.asked, []string{"edge/fleet/c/b"})
	equal(t, "events", a.happened(), []string(nil))
}

// What was published while the connection was down was not missed, also if the connection ended
// right after a message was asked for.
func TestAskedBeforeTheConnection(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	b.labels = 200
	for len(a.asked) == 0 {
		w.pass(time.Second)
	}
	a.disconnect()
	b.labels += 100
	w.pass(2 * time.Second)
	a.connect()
	equal(t, "version, asked, missed", []any{a.set.Get("b").Sequence, len(a.open), a.View(w.now, Model{}).Missed}, []any{2, 1, 0})
}

// The own message that was lost on its way back is asked for before it counts as not kept.
func TestAskedForTheOwn(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	w.lost = func(*node, string) bool { return true }
	a.labels = 200
	w.pass(10 * time.Second)
	w.lost = nil
	w.pass(time.Minute)
	equal(t, "asked", a.asked, []string{"edge/fleet/c/a"})
	equal(t, "events", a.happened(), []string(nil))
	equal(t, "published, kept, parts", []any{a.published, a.View(w.now, Model{}).Kept, a.own.parts}, []any{1, true, 0})
}

// The first message of a member that was lost is found among those of all.
func TestAskedForAll(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	w.lost = func(n *node, _ string) bool { return n == a }
	b.labels = 200
	w.pass(time.Minute)
	w.lost = nil
	w.pass(8 * time.Minute)
	equal(t, "members", len(a.peers), 0)
	w.pass(2 * time.Minute)
	equal(t, "asked", a.asked, []string{"edge/fleet/c/#"})
	equal(t, "members, missed", []any{len(a.peers), a.View(w.now, Model{}).Missed}, []any{1, 1})
	equal(t, "open subscriptions", len(a.open), 0)
}

// Many members that are silent at once are asked for together.
func TestAskedTogether(t *testing.T) {
	for n, want := range map[int]string{4: "[edge/fleet/c/b edge/fleet/c/c edge/fleet/c/d edge/fleet/c/e]", 5: "[edge/fleet/c/#]"} {
		w := newWorld(t)
		a := w.start("a", 0, plain)
		for i := range n {
			w.start(string(rune('b'+i)), 0, plain).labels = 200
		}
		w.pass(3 * time.Minute)
		equal(t, "asked", fmt.Sprint(a.asked), want)
	}
}

// Where the broker keeps more messages than it can send at once, those of all are not asked for
// again: neither for silent members, nor after ten minutes, nor when a member makes room.
func TestAskedByNameInACrowd(t *testing.T) {
	for others, want := range map[int]string{askAllBelow - 6: "[edge/fleet/c/#]", askAllBelow - 5: "[edge/fleet/c/m0 edge/fleet/c/m1 edge/fleet/c/m2 edge/fleet/c/m3 edge/fleet/c/m4 edge/fleet/c/m5]"} {
		w := newWorld(t)
		for i := range others {
			w.kept[fmt.Sprint("edge/fleet/c/z", i)] = "no contribution"
		}
		for i := range 6 {
			w.put(fmt.Sprint("m", i), 100)
		}
		a := w.start("a", 0, func(c *Config) { c.MaxMembers = 6 })
		w.pass(3 * time.Minute)
		equal(t, "members", len(a.peers), 6)
		equal(t, "asked", fmt.Sprint(a.asked), want)
		if others > askAllBelow-6 {
			a.asked = nil
			w.put("m6", 99) // there is no room
			w.publish(Publication{Topic: "edge/fleet/c/m0"})
			w.pass(24 * time.Hour)
			equal(t, "asked", len(a.asked) > 0, true)
			equal(t, "asked for all", slices.Contains(a.asked, "edge/fleet/c/#"), false)
		}
		equal(t, "subscriptions", len(a.open), 0)
	}
}

// The waits become longer while a member is silent, and begin anew with its next message.
// Nothing is asked for without a connection, nor of a member that publishes at its pace.
func TestPaceOfAsking(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	b.labels = 200
	w.pass(10 * time.Minute)
	equal(t, "asked in ten minutes", a.asked, []string{"edge/fleet/c/b", "edge/fleet/c/#"})
	w.pass(24 * time.Hour)
	equal(t, "asked in a day", len(a.asked), 9)
	a.disconnect()
	w.pass(72 * time.Hour)
	equal(t, "asked while the broker was away", len(a.asked), 9)
	a.connect()
	once := func() (times int) { // it was asked for the message of b
		for _, filter := range a.asked {
			if filter == "edge/fleet/c/b" {
				times++
			}
		}
		return times
	}
	paced := 0
	for i := range 40 {
		if i == 20 {
			paced = once()
		}
		b.labels += 100
		w.pass(5 * time.Minute)
	}
	equal(t, "asked of a member at its pace", once()-paced, 0)
	w.pass(11 * time.Minute)
	equal(t, "asked after three pauses", once()-paced, 1)
	equal(t, "missed", a.View(w.now, Model{}).Missed, 0)
}
