package membership

import (
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
)

// A member that comes back with an old state file is heard, although the broker has
// forgotten its message and its versions begin below those that the others have. An older
// version of the same process, and one that the broker kept, is not.
func TestOldStateFileAtAForgetfulBroker(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 7, plain), w.start("b", 0, plain)
	a.labels, b.labels = 500, 300
	w.pass(10 * time.Second)
	a.disconnect()
	w.nodes = w.nodes[1:]
	b.disconnect()
	clear(w.kept)
	b.connect()
	w.pass(20 * time.Second)
	again := w.start("a", 3, plain)
	again.labels = 200
	w.pass(10 * time.Minute)
	kept := b.set.Get("a")
	if kept == nil || kept.N != 200 {
		t.Fatalf("b has %+v of a", kept)
	}
	equal(t, "merges of b", b.merges, []string{"a500", "a200"})
	equal(t, "bytes held", b.held, b.peers["a"].held)
	for _, retained := range []bool{false, true} {
		older := contribution(t, "a", 100, 2)
		older.Instance, older.Version = kept.Instance, fleet.Version{Epoch: 2, Sequence: 1}
		if retained {
			older.Instance++
		}
		data, err := older.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Receive(w.now, NewTopics("edge", "c").Contribution("a"), data, retained)
		equal(t, "version of a", b.set.Get("a").Version, kept.Version)
	}
}

// The same holds of a contribution in parts: also where the receiver has kept its connection, as
// behind a bridge, and where it has a part of a version that was never completed.
func TestOldStateFileInParts(t *testing.T) {
	small := func(c *Config) { c.MaxMessage = 4 << 10 }
	for _, bridged := range []bool{true, false} {
		w := newWorld(t)
		a, b := w.start("a", 7, small), w.start("b", 0, plain)
		a.labels, a.size, b.labels = 500, 100, 300
		w.pass(10 * time.Second)
		a.disconnect()
		w.nodes = w.nodes[1:]
		clear(w.kept)
		if !bridged {
			_, parts := split(fleet.Version{Epoch: 8, Sequence: 2}, make([]byte, 20000), 4<<10)
			b.Receive(w.now, a.Topics().Part("a", 0), parts[0], false)
			b.disconnect()
			b.connect()
		}
		w.pass(20 * time.Second)
		again := w.start("a", 3, small)
		again.labels, again.size = 200, 100
		w.pass(10 * time.Minute)
		equal(t, "merges of b", b.merges, []string{"a500", "a200"})
	}
}

// A node that starts again hears its own contribution, and loses the connection at once to a
// broker that forgets its retained messages: it publishes again.
func TestHeardBeforeTheBrokerForgot(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	a.labels = 200
	w.pass(10 * time.Second)
	before := a.View(w.now, Model{})
	a.disconnect()
	w.nodes = nil
	a = w.start("a", before.Epoch, plain)
	a.labels = 200
	a.disconnect()
	clear(w.kept)
	w.pass(5 * time.Second)
	a.connect()
	w.pass(2 * time.Minute)
	equal(t, "published", []int{a.published, len(w.kept)}, []int{1, 1})
}

// A node whose connections all end before it has waited for its own message publishes once they
// have lasted long enough together, and merges.
func TestShortConnections(t *testing.T) {
	w := newWorld(t)
	b := w.start("b", 0, plain)
	b.labels = 100
	w.pass(time.Minute)
	a := w.start("a", 0, plain)
	a.labels = 200
	for range 4 {
		w.pass(3 * time.Second)
		a.disconnect()
		w.pass(3 * time.Second)
		a.connect()
	}
	equal(t, "published", []int{a.published, len(w.kept)}, []int{1, 2})
	equal(t, "merges of a", a.merges, []string{"b100"})
	equal(t, "events", a.happened(), nil)
}

// A node that starts together with others, at a broker that has lost its messages, keeps the sums
// that its state has until the others have published again. One without any takes what is there.
func TestSumsOfBefore(t *testing.T) {
	for _, joined := range []bool{true, false} {
		w := newWorld(t)
		a := w.start("a", 3, plain)
		a.labels = 200
		if joined {
			a.Joined()
		}
		for second := range 60 {
			if second%2 == 0 && second < 10 {
				w.put(string(rune('b'+second/2)), 100)
			}
			w.pass(time.Second)
		}
		want := "b100 c100 d100"
		if joined {
			want = "b100 c100 d100 e100 f100"
		}
		equal(t, "merges", a.merges, []string{want})
	}
}

// A node whose state file was lost says so, and not that the file has epoch 0.
func TestLostStateFile(t *testing.T) {
	for stored, want := range map[uint64]string{0: "its state file is new, or older than the first version: ", 2: "its state file epoch 2: "} {
		w := newWorld(t)
		c := contribution(t, "a", 200, 2)
		c.Instance, c.Version = 1, fleet.Version{Epoch: 3, Sequence: 1}
		data, _ := c.AppendBinary(nil)
		w.kept[NewTopics("edge", "c").Contribution("a")] = string(data)
		a := w.start("a", stored, plain)
		w.pass(8 * time.Second)
		if events := a.of("fleet_regressed"); len(events) != 1 || !strings.Contains(events[0], want) {
			t.Errorf("with epoch %d in the file the events are %q", stored, events)
		}
	}
}
