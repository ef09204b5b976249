package membership

import (
	"strings"
	"testing"
	"time"
)

// A publication that waits behind retained messages, as on a slow connection, is neither missed
// nor published again in smaller messages.
func TestEchoBehindRetained(t *testing.T) {
	w := newWorld(t)
	behind := true
	w.lost = func(_ *node, topic string) bool { return behind && topic == "edge/fleet/c/a" }
	a := w.start("a", 0, plain)
	a.labels, a.size = 200, 50
	other := of(t, "b", 1)
	for range 60 {
		w.pass(time.Second)
		a.Receive(w.now, "edge/fleet/c/b", other, true)
	}
	behind = false
	w.pass(time.Minute)
	equal(t, "events", a.happened(), nil)
	equal(t, "published, parts", []int{a.published, a.own.parts}, []int{1, 0})
	equal(t, "kept", a.View(w.now, Model{}).Kept, true)
}

// Where the broker keeps more messages than it sends at once, a publication that it leaves out is
// not published again in more of them.
func TestManyRetained(t *testing.T) {
	w := newWorld(t)
	w.lost = func(_ *node, topic string) bool { return topic == "edge/fleet/c/a" }
	a := w.start("a", 0, plain)
	a.labels, a.size = 200, 50
	other := of(t, "b", 1)
	for range askAllBelow + 1 {
		a.Receive(w.now, "edge/fleet/c/b", other, true)
	}
	w.pass(2 * time.Minute)
	equal(t, "published, parts", []int{a.published, a.own.parts}, []int{1, 0})
	events := strings.Join(a.of("fleet_not_kept"), "\n")
	if len(a.happened()) != 1 || !strings.Contains(events, "1001 others") || !strings.Contains(events, "max_queued_messages") {
		t.Errorf("the events are %s", a.events)
	}
}
