package membership

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"edge/online/fleet"
)

// Publications and merges keep their intervals, and only changes lead to either.
func TestPace(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	b := w.start("b", 0, plain)
	a.labels, b.labels = 200, 300
	w.pass(10 * time.Second)
	equal(t, "published", []int{a.published, b.published}, []int{1, 1})
	equal(t, "merged", a.merges, []string{"b300"})
	b.labels += 99
	w.pass(2 * time.Minute)
	equal(t, "published after 99 labels", b.published, 1)
	for range 4 {
		b.labels += 100
		w.pass(20 * time.Second)
	}
	equal(t, "published in 80 s", b.published, 3)
	equal(t, "merged", a.merges, []string{"b300"})
	w.pass(5 * time.Minute)
	equal(t, "merged after five minutes", a.merges, []string{"b300", "b799"})
	equal(t, "events", append(a.happened(), b.happened()...), []string(nil))
	if v := a.View(w.now, Model{WarmedUp: true, Answers: true}); v.State != Joined || len(v.Members) != 1 || v.Members[0].Share != 1 || !v.Kept {
		t.Errorf("the view is %+v", v)
	}
}

// Whatever the order, the repetition and the loss of messages, a member knows the newest
// versions that it has received.
func TestAnyOrder(t *testing.T) {
	var messages []Publication
	for _, name := range []string{"a", "b", "c"} {
		for epoch := range uint64(3) {
			for sequence := range uint64(3) {
				c := contribution(t, name, 10*epoch+sequence+1, 20)
				c.Version = fleet.Version{Epoch: epoch + 1, Sequence: sequence + 1}
				data, err := c.AppendBinary(nil)
				if err != nil {
					t.Fatal(err)
				}
				limit := 300 + 2000*int(sequence%2) // in parts, or as a whole
				head, parts := split(c.Version, data, limit)
				topics := NewTopics("edge", "c")
				for i, p := range parts {
					messages = append(messages, Publication{topics.Part(name, i), p})
				}
				messages = append(messages, Publication{topics.Contribution(name), head})
			}
		}
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t)
		n := w.start("own", 0, plain)
		for range 2 {
			for _, i := range rng.Perm(len(messages)) {
				n.Receive(w.now, messages[i].Topic, messages[i].Payload, false)
			}
		}
		// What was lost or came in a wrong order is repaired by the next messages, in order.
		for _, p := range messages[len(messages)-len(messages)/3:] {
			n.Receive(w.now, p.Topic, p.Payload, false)
		}
		if c := n.set.Get("c"); c == nil || c.Version != (fleet.Version{Epoch: 3, Sequence: 3}) {
			t.Fatalf("seed %d: the set has %+v of c", seed, c)
		}
		equal(t, "refused", n.counts.Refused, map[fleet.Reason]uint64{})
	}
}

// A member whose message was removed says so until it publishes the next one.
func TestOwnMessageRemoved(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	a.labels = 200
	w.pass(10 * time.Second)
	of := func() (kept, cleared bool) {
		v := a.View(w.now, Model{})
		return v.Kept, v.Cleared
	}
	if kept, cleared := of(); !kept || cleared {
		t.Errorf("published: kept %v, cleared %v", kept, cleared)
	}
	w.publish(Publication{Topic: NewTopics("edge", "c").Contribution("a")})
	w.pass(20 * time.Second)
	if kept, cleared := of(); kept || !cleared || a.published != 1 {
		t.Errorf("removed: kept %v, cleared %v, published %d", kept, cleared, a.published)
	}
	a.labels += 100
	w.pass(2 * time.Minute)
	if kept, cleared := of(); !kept || cleared || a.published != 2 {
		t.Errorf("after more labels: kept %v, cleared %v, published %d", kept, cleared, a.published)
	}
}

// A node that starts again knows the size of what the broker keeps of it, and leaves no
// part behind once that is smaller.
func TestPartsOfEarlierProcess(t *testing.T) {
	w := newWorld(t)
	small := func(c *Config) { c.MaxMessage = 4 << 10 }
	a := w.start("a", 0, small)
	a.labels, a.size = 200, 100
	w.pass(10 * time.Second)
	if len(w.kept) < 3 {
		t.Fatalf("the broker keeps %d messages", len(w.kept))
	}
	before := a.View(w.now, Model{})
	a.disconnect()
	w.nodes = nil
	a = w.start("a", before.Epoch, small)
	a.labels, a.size = 200, 2
	w.pass(10 * time.Second)
	after := a.View(w.now, Model{})
	equal(t, "size and parts", []int{after.Bytes, after.Parts}, []int{before.Bytes, before.Parts})
	equal(t, "published", a.published, 0)
	equal(t, "topics that a leaving node clears", len(a.OwnTopics()), 1+before.Parts)
	a.labels = 300
	w.pass(2 * time.Minute)
	equal(t, "published", a.published, 1)
	equal(t, "messages that the broker keeps", len(w.kept), 1)
}

// An epoch is above the one of the state file and that of the broker.
func TestEpochs(t *testing.T) {
	for _, test := range []struct {
		stored, kept, want uint64
		events             []string
	}{
		{0, 0, 1, nil},
		{4, 0, 5, nil},
		{4, 4, 5, nil},
		{4, 9, 10, []string{"fleet_regressed"}},
		{0, 3, 4, []string{"fleet_regressed"}},
		{9, 4, 10, nil}, // it was killed before it published
	} {
		w := newWorld(t)
		if test.kept > 0 {
			c := contribution(t, "a", 200, 2)
			c.Instance, c.Version = 1, fleet.Version{Epoch: test.kept, Sequence: 3}
			data, _ := c.AppendBinary(nil)
			w.kept[NewTopics("edge", "c").Contribution("a")] = string(data)
		}
		a := w.start("a", test.stored, plain)
		a.labels = 200
		w.pass(4 * time.Second)
		if test.kept == 0 && a.own.epoch != 0 {
			t.Errorf("stored %d: epoch %d before the broker's message may have come", test.stored, a.own.epoch)
		}
		w.pass(4 * time.Second)
		equal(t, fmt.Sprintf("stored %d, kept %d", test.stored, test.kept), a.own.epoch, test.want)
		equal(t, "events", a.happened(), test.events)
		// What the broker has is not published again, unless the state file has other.
		equal(t, fmt.Sprintf("stored %d, kept %d: published", test.stored, test.kept), a.published > 0, test.stored != test.kept || test.kept == 0)
	}
}

// A member leaves by an empty message, and where the broker keeps the own message and not
// the member's; not where the broker has lost all of them, which are then published again.
func TestLeaving(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels, b.labels = 200, 300
	w.pass(10 * time.Second)
	topics := NewTopics("edge", "c")

	clear(w.kept)
	a.disconnect()
	a.connect()
	w.pass(20 * time.Second)
	equal(t, "members after the broker lost its messages", len(a.peers), 1)
	equal(t, "published again", a.published, 2)
	equal(t, "events", a.happened(), []string(nil))
	b.disconnect()
	b.connect()
	w.pass(20 * time.Second)
	equal(t, "published again by b", b.published, 2)

	a.disconnect()
	w.publish(Publication{Topic: topics.Contribution("b")}) // while a is away
	a.connect()
	w.pass(5 * time.Minute)
	equal(t, "members", len(a.peers), 0)
	equal(t, "events", a.happened(), []string{"fleet_left"})
	equal(t, "merges", a.merges, []string{"b300", ""})

	b.labels += 100
	w.pass(6 * time.Minute)
	equal(t, "members after b published", len(a.peers), 1)
	for _, p := range a.Forget(w.now, "b") {
		w.publish(p)
	}
	w.pass(6 * time.Minute)
	equal(t, "merges", a.merges, []string{"b300", "", "b400", ""})
	if _, kept := w.kept[topics.Contribution("b")]; kept {
		t.Error("the broker keeps a forgotten message")
	}
}

// Of two processes of one name the one that began later stops, whichever publishes first.
func TestDuplicate(t *testing.T) {
	w := newWorld(t)
	first := w.start("a", 0, plain)
	first.labels = 200
	w.pass(10 * time.Second)
	second := w.start("a", 0, plain)
	second.labels = 500
	for range 5 {
		first.labels += 100
		second.labels += 100
		w.pass(time.Minute)
	}
	equal(t, "events of the first", slices.Compact(first.happened()), []string{"fleet_duplicate"})
	equal(t, "events of the second", second.happened(), []string{"fleet_regressed", "fleet_duplicate"})
	equal(t, "stopped", []bool{first.own.stopped != "", second.own.stopped != ""}, []bool{false, true})
	c, err := fleet.Decode([]byte(w.kept[NewTopics("edge", "c").Contribution("a")]))
	if err != nil || c.Instance != first.instance {
		t.Errorf("the broker keeps %+v, %v", c, err)
	}
}

// A publication that does not come back is published in smaller and smaller parts, until
// the broker keeps them.
func TestHalvedUntilKept(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels, a.size = 200, 200
	w.limit = 9000
	w.pass(2 * time.Minute)
	if n := a.own.parts; n < 4 || a.own.bytes/n > w.limit || n > 2*a.own.bytes/w.limit+1 {
		t.Errorf("%d bytes in %d parts", a.own.bytes, n)
	}
	equal(t, "events", a.happened(), []string{"fleet_not_kept"})
	equal(t, "members of b", len(b.peers), 1)
	published := a.published
	a.labels += 100
	w.pass(2 * time.Minute)
	equal(t, "published", a.published, published+1)
}

// A message below the least size is not halved.
func TestNotKept(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels, a.size = 200, 50
	w.limit = 4000
	w.pass(10 * time.Second)
	size := a.own.bytes
	if size <= w.limit || size > 2*w.limit-200 {
		t.Fatalf("the contribution has %d bytes", size)
	}
	w.pass(30 * time.Second)
	equal(t, "events", a.happened(), []string{"fleet_not_kept"})
	equal(t, "published", []int{a.published, a.own.parts}, []int{2, 2})
	if v := a.View(w.now, Model{}); !v.Kept || v.Lost {
		t.Errorf("the view is %+v", v)
	}
	equal(t, "members of b", len(b.peers), 1)
	w.limit = 1000
	a.labels += 100
	w.pass(5 * time.Minute)
	equal(t, "events", a.happened(), []string{"fleet_not_kept", "fleet_not_kept"})
	equal(t, "published", a.published, 3)
	if v := a.View(w.now, Model{}); v.Kept || !v.Lost {
		t.Errorf("the view of one that is not kept is %+v", v)
	}
}

// A broker that ends the connection upon a message that is too large gets smaller and smaller parts.
func TestConnectionsLostByLargeMessages(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, plain), w.start("b", 0, plain)
	a.labels, a.size, w.limit = 200, 200, 9000
	for range 120 {
		if w.pass(time.Second); a.own.fresh && a.limit() > w.limit {
			a.disconnect()
			a.connect()
		}
	}
	if v := a.View(w.now, Model{}); !v.Kept || v.Stopped != "" || v.Parts < 2 {
		t.Errorf("the view is %+v", v.Own)
	}
	equal(t, "events", slices.Compact(a.happened()), []string{"fleet_not_kept"})
	equal(t, "members of b", len(b.peers), 1)
}

// Two connections that end right after a publication end the publications, if it cannot be divided.
func TestConnectionsLost(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	a.labels = 200
	w.limit = 100
	w.pass(6 * time.Second)
	equal(t, "published", a.published, 1)
	equal(t, "withdrawn at the first end", a.disconnect(), false)
	w.pass(3 * time.Second)
	a.connect()
	equal(t, "withdrawn at the second", a.disconnect(), true)
	a.connect()
	a.labels += 500
	w.pass(5 * time.Minute)
	equal(t, "published", a.published, 1)
	equal(t, "events", a.happened(), []string{"fleet_not_kept"})
	if v := a.View(w.now, Model{}); v.Stopped == "" {
		t.Errorf("the view is %+v", v)
	}
	// A connection that ends later is none of them.
	w = newWorld(t)
	a = w.start("a", 0, plain)
	a.labels = 200
	w.pass(6 * time.Second)
	for range 5 {
		w.pass(3 * time.Second)
		equal(t, "withdrawn", a.disconnect(), false)
		a.connect()
	}
}

// All that a member keeps is bounded, and each refusal is counted.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 0, func(c *Config) { c.MaxMembers, c.Members = 3, []string{"a", "b", "c", "d", "e"} })
	send := func(topic string, c *fleet.Contribution, change func([]byte) []byte) {
		t.Helper()
		data, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		n.Receive(w.now, "edge/fleet/c/"+topic, change(data), false)
	}
	same := func(data []byte) []byte { return data }
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		send(name, contribution(t, name, uint64(100-i%2*50+i), 2), same)
	}
	equal(t, "members", slices.Sorted(maps.Keys(n.peers)), []string{"a", "c", "e"})
	held := 0
	for _, p := range n.peers {
		held += p.held
	}
	equal(t, "bytes", n.held, held)
	send("f", contribution(t, "f", 1000, 2), same)
	send("a", contribution(t, "b", 1000, 2), same)
	send("A!", contribution(t, "a", 1000, 2), same)
	send("a", contribution(t, "a", 1000, 2), func(data []byte) []byte { data[len(data)/2] ^= 1; return data })
	far := contribution(t, "a", 1000, 2)
	far.Epoch = maxEpoch
	send("a", far, same)
	send("a/0", contribution(t, "a", 1000, 2), same)
	n.Flood(w.now, 4)
	want := map[fleet.Reason]uint64{NoRoom: 2, NotListed: 1, BadName: 2, Malformed: 3, Flooded: 4}
	equal(t, "refused", n.counts.Refused, want)
	refused := 0
	for _, e := range n.happened() {
		if e == "fleet_refused" {
			refused++
		}
	}
	equal(t, "events: one of a reason and member in a minute", refused, len(want)+1) // bad names on a topic of a, and of no member
	n.cfg.Members = nil
	_, parts := split(fleet.Version{Epoch: 1, Sequence: 1}, make([]byte, 900), 500)
	for i := range maxAssemblies + 10 { // parts of members that do not exist are bounded as well
		n.Receive(w.now, fmt.Sprintf("edge/fleet/c/x%d/0", i), parts[0], false)
	}
	equal(t, "members with parts", len(n.assemblies), maxAssemblies)
}

// A member that publishes nothing for too long leaves the sum, and comes back.
func TestStale(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, func(c *Config) { c.StaleAfter, c.MergeEvery = 10*time.Minute, time.Second })
	b := w.start("b", 0, plain)
	b.labels = 200
	w.pass(9 * time.Minute)
	equal(t, "merges", a.merges, []string{"b200"})
	w.pass(2 * time.Minute)
	equal(t, "merges after eleven minutes", a.merges, []string{"b200", ""})
	b.labels += 100
	w.pass(10 * time.Second)
	equal(t, "merges", a.merges, []string{"b200", "", "b300"})
}

// A model whose fleet has gone while its node was down leaves it.
func TestAllLeftMeanwhile(t *testing.T) {
	w := newWorld(t)
	c := contribution(t, "a", 200, 2)
	c.Instance, c.Version = 1, fleet.Version{Epoch: 4, Sequence: 3}
	data, _ := c.AppendBinary(nil)
	w.kept[NewTopics("edge", "c").Contribution("a")] = string(data)
	a := w.start("a", 4, plain)
	a.Joined()
	a.labels = 200
	w.pass(20 * time.Second)
	equal(t, "merges", len(a.merges), 1)
	// A broker that has lost its messages says nothing about the others.
	w = newWorld(t)
	a = w.start("a", 4, plain)
	a.Joined()
	a.labels = 200
	w.pass(20 * time.Second)
	equal(t, "merges", len(a.merges), 0)
	// One that keeps only the message of a member which is not listed any more has not.
	b := w.start("b", 0, plain)
	b.labels = 200
	w.pass(20 * time.Second)
	w.nodes = []*node{b}
	delete(w.kept, "edge/fleet/c/a")
	a = w.start("a", 4, func(c *Config) { c.Members = []string{"z"} })
	a.Joined()
	a.labels = 200
	w.pass(20 * time.Second)
	equal(t, "merges", len(a.merges), 1)
}

// A follower publishes nothing and merges at once.
func TestFollower(t *testing.T) {
	w := newWorld(t)
	f := w.start("f", 0, func(c *Config) { c.Role = RoleFollower })
	a := w.start("a", 0, plain)
	f.labels, a.labels = 100, 200
	w.pass(3 * time.Minute)
	equal(t, "merges", f.merges, []string{"a200"})
	equal(t, "published", f.published, 0)
	equal(t, "state", f.View(w.now, Model{Answers: true}).State, Follower)
}

func TestStates(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	w.pass(10 * time.Second)
	state := func(of Model) State { return a.View(w.now, of).State }
	equal(t, "without others", state(Model{}), Alone)
	b := w.start("b", 0, plain)
	b.labels = 100
	w.pass(10 * time.Second)
	equal(t, "before the model has merged", state(Model{}), Gathering)
	equal(t, "in the warm-up", state(Model{Answers: true}), Newcomer)
	equal(t, "later", state(Model{Answers: true, WarmedUp: true}), Joined)
	a.disconnect()
	w.pass(11 * time.Minute)
	equal(t, "without a broker", state(Model{Answers: true, WarmedUp: true}), Isolated)
}

// Whatever a message is, it is refused or taken, and what is kept stays bounded.
func FuzzReceive(f *testing.F) {
	c := contribution(f, "a", 20, 2)
	data, _ := c.AppendBinary(nil)
	head, parts := split(fleet.Version{Epoch: 1, Sequence: 1}, data, 80)
	f.Add("a", data, false)
	f.Add("a", head, true)
	f.Add("a/0", parts[0], true)
	f.Add("own", data, true)
	f.Add("a", []byte{}, false)
	f.Fuzz(func(t *testing.T, topic string, payload []byte, retained bool) {
		w := newWorld(t)
		n := w.start("own", 0, plain)
		n.Receive(w.now, "edge/fleet/c/"+topic, payload, retained)
		n.Receive(w.now, "edge/fleet/c/"+topic, payload, retained)
		kept := n.held
		for _, a := range n.assemblies {
			kept += a.bytes
		}
		if kept > 16*len(payload) { // unpacked at most eight times, with parameters of twice their bytes
			t.Errorf("%d bytes are kept of %d", kept, len(payload))
		}
	})
}

// The view shows of which members a newer version waits for the next merge.
func TestWaiting(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 0, func(c *Config) { c.MergeEvery = 10 * time.Minute }), w.start("b", 0, plain)
	waits := func() bool { return a.View(w.now, Model{}).Members[0].Waiting }
	a.labels, b.labels = 200, 200
	w.pass(time.Minute)
	equal(t, "waiting after the first merge", waits(), false)
	b.labels += 200
	w.pass(2 * time.Minute)
	equal(t, "waiting for the second", waits(), true)
	w.pass(10 * time.Minute)
	equal(t, "waiting after it", waits(), false)
}
