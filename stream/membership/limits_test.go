package membership

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
)

// of returns the events of a kind.
func (n *node) of(kind string) (details []string) {
	for _, e := range n.events {
		if k, detail, _ := strings.Cut(e, " "); k == kind {
			details = append(details, detail)
		}
	}
	return details
}

// put lets the broker keep a contribution of a member that is no node of the world.
func (w *world) put(member string, labels uint64) {
	w.t.Helper()
	c := contribution(w.t, member, labels, 2)
	c.Version = fleet.Version{Epoch: 1, Sequence: 1}
	data, err := c.AppendBinary(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.publish(Publication{Topic: "edge/fleet/c/" + member, Payload: data})
}

// Members for which there was no room come back when another one leaves.
func TestRoomAgain(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, func(c *Config) { c.MaxMembers = 2 })
	for i, name := range []string{"a", "b", "c"} {
		w.put(name, uint64(300-100*i))
	}
	equal(t, "members", []bool{n.peers["a"] != nil, n.peers["b"] != nil, n.peers["c"] != nil}, []bool{true, true, false})
	w.publish(Publication{Topic: "edge/fleet/c/a"})
	w.pass(2 * time.Second)
	equal(t, "asked", n.asked, []string{"edge/fleet/c/#"})
	equal(t, "members", []bool{n.peers["a"] != nil, n.peers["b"] != nil, n.peers["c"] != nil}, []bool{false, true, true})
	equal(t, "missed", []int{int(n.counts.Missed), len(n.of("fleet_missed"))}, []int{0, 0})
	w.publish(Publication{Topic: "edge/fleet/c/b"}) // nobody is left out any more
	w.pass(20 * time.Second)
	equal(t, "asked", len(n.asked), 1)
	equal(t, "subscriptions", len(n.open), 0)
}

// A member that leaves while the messages of all are asked for makes room as well.
func TestRoomAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, func(c *Config) { c.MaxMembers = 2 })
	for i, name := range []string{"a", "b", "c", "d"} {
		w.put(name, uint64(400-100*i))
	}
	for _, name := range []string{"a", "b"} {
		w.publish(Publication{Topic: "edge/fleet/c/" + name})
		w.pass(2 * time.Second)
	}
	w.pass(10 * time.Second)
	equal(t, "members", []bool{n.peers["c"] != nil, n.peers["d"] != nil}, []bool{true, true})
	equal(t, "asked", n.asked, []string{"edge/fleet/c/#", "edge/fleet/c/#"})
	equal(t, "missed", n.counts.Missed, 0)
	w.pass(time.Minute)
	equal(t, "subscriptions", len(n.open), 0)
}

// Who has room is decided by the labels alone, also where contributions come in parts: those that
// came first hold no place, whether their parts are all there or not.
func TestRoomForParts(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, func(c *Config) { c.MaxMembers = 2 })
	receive := func(member string, labels uint64, complete bool) {
		t.Helper()
		c := contribution(t, member, labels, 9)
		c.Version = fleet.Version{Epoch: 1, Sequence: 1}
		data, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		head, parts := split(c.Version, data, 100)
		n.Receive(w.now, n.topics.Contribution(member), head, true)
		for i, p := range parts {
			if i > 0 || complete {
				n.Receive(w.now, n.topics.Part(member, i), p, true)
			}
		}
	}
	for i := range 5 {
		receive(fmt.Sprint("incomplete", i), 1000, false)
	}
	for i := range 5 {
		receive(fmt.Sprint("m", i), uint64(100+i), true)
	}
	equal(t, "members", slices.Sorted(maps.Keys(n.peers)), []string{"m3", "m4"})
}

// The shares are of 1 also where a member says that it has more labels than there can be.
func TestShares(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, plain)
	sum := &fleet.Merge{}
	for name, labels := range map[string]uint64{"a": 100, "b": math.MaxUint64} {
		w.put(name, 100)
		sum.Members = append(sum.Members, fleet.Member{Name: name, N: labels})
	}
	n.Merged(w.now, sum)
	members := n.View(w.now, Model{}).Members
	equal(t, "shares", fmt.Sprintf("%.3f %.3f", members[0].Share, members[1].Share), "0.000 1.000")
}

// Messages that are no parts take no room of those that are.
func TestGarbageTakesNoRoom(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, func(c *Config) { c.MaxMembers = 2 })
	for i := range 10 {
		w.publish(Publication{Topic: fmt.Sprintf("edge/fleet/c/z%d/0", i), Payload: []byte("garbage")})
		w.publish(Publication{Topic: fmt.Sprintf("edge/fleet/c/z%d", i), Payload: []byte(listMagic)})
	}
	a := w.start("a", 1, func(c *Config) { c.MaxMessage = 4096 })
	a.labels, a.size = 200, 60
	w.pass(time.Minute)
	equal(t, "parts", a.own.parts > 0, true)
	equal(t, "members", slices.Collect(maps.Keys(n.peers)), []string{"a"})
	equal(t, "refused", n.counts.Refused, map[fleet.Reason]uint64{Malformed: 20})
}

// Classes that are spelt almost alike are told, of the model as of members.
func TestSpellings(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, plain)
	w.put("x", 100) // of classes a and b
	w.put("y", 100)
	for own, want := range map[string]string{"": "[]", "a b": "[]", "c": "[]", "A b": "[[A a]]", "a B A": "[[A a] [B b]]"} {
		equal(t, own, fmt.Sprint(n.View(w.now, Model{Classes: strings.Fields(own)}).Spellings), want)
	}
}

// Each member of the set that a merge leaves out is told, and no more events come of members
// that come and go, however many they are.
func TestEventsAreLimited(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, plain)
	w.put("a", 100)
	w.put("b", 100)
	for range 3 {
		n.Merged(w.now, &fleet.Merge{Members: []fleet.Member{{Name: "a", Refused: fleet.Distrusted}, {Name: "b", Refused: fleet.Distrusted}}})
	}
	told := n.of("fleet_refused")
	if len(told) != 2 || !strings.HasPrefix(told[0], "a: trust") || !strings.HasPrefix(told[1], "b: trust") {
		t.Errorf("events %q", told)
	}
	for range 50 {
		w.put("z", 100)
		w.publish(Publication{Topic: "edge/fleet/c/z"})
	}
	equal(t, "events", []int{len(n.of("fleet_member")), len(n.of("fleet_left"))}, []int{3, 1})
	for i := range 1000 {
		w.put(fmt.Sprint("z", i), 100)
		w.publish(Publication{Topic: fmt.Sprint("edge/fleet/c/z", i)})
	}
	if len(n.noted) > maxNoted+10 || len(n.events) > maxNoted+10 {
		t.Errorf("%d events are kept in mind, %d were published", len(n.noted), len(n.events))
	}
	w.pass(2 * time.Minute)
	w.put("y", 100)
	if got := n.of("fleet_member"); !strings.HasPrefix(got[len(got)-1], "y: ") {
		t.Errorf("the latest event is %q", got[len(got)-1])
	}
}

// A state file that is an older one of the same run is told, once its journal is learnt; the
// one that was stopped is not.
func TestOlderStateOfTheSameRun(t *testing.T) {
	for labels, want := range map[uint64]int{500: 0, 620: 0, 200: 1} {
		w := newWorld(t)
		a := w.start("a", 0, plain)
		a.labels = 500
		w.pass(10 * time.Second)
		epoch := a.View(w.now, Model{}).Epoch
		a.disconnect()
		w.nodes = nil
		a = w.start("a", epoch, plain)
		a.Step(w.now, Learnt{Labels: 10, Behind: true})
		a.labels = labels
		w.pass(2 * time.Minute)
		equal(t, fmt.Sprint("events with ", labels, " labels"), len(a.of("fleet_regressed")), want)
		equal(t, "published", a.published > 0, labels != 500)
	}
}

// A removed part leaves the others known, so that all are removed with their member.
func TestForgetsAllParts(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 1, plain)
	c := contribution(t, "a", 100, 9)
	c.Version = fleet.Version{Epoch: 1, Sequence: 1}
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	n.Receive(w.now, "edge/fleet/c/a/5", nil, false) // of a larger one before
	head, parts := split(c.Version, data, 100)
	for i, p := range parts {
		n.Receive(w.now, n.topics.Part("a", i), p, false)
	}
	n.Receive(w.now, "edge/fleet/c/a", head, false)
	n.Receive(w.now, n.topics.Part("a", len(parts)), nil, false)
	var topics []string
	for _, p := range n.Forget(w.now, "a") {
		topics = append(topics, p.Topic)
	}
	if len(parts) < 3 || len(topics) != 1+len(parts) || !slices.Contains(topics, n.topics.Part("a", len(parts)-1)) {
		t.Errorf("removed are %q of %d parts", topics, len(parts))
	}
}

// A panic of a decoder is an error: a retained message must not end the program at each start.
func TestDecodePanics(t *testing.T) {
	got, err := decode(func(data []byte) (*int, error) { v := int(data[1]); return &v, nil }, []byte{1})
	if got != nil || err == nil || !strings.HasPrefix(err.Error(), "panic: ") {
		t.Errorf("decode = %v, %v", got, err)
	}
	if got, err = decode(func(data []byte) (*int, error) { v := int(data[0]); return &v, nil }, []byte{1}); err != nil || *got != 1 {
		t.Errorf("decode = %v, %v", got, err)
	}
}
