package membership

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// slowLink is the connection of a node over which messages take long, in both directions at once.
type slowLink struct {
	takes    time.Duration // of the first publication; that of others goes by their bytes
	rate     float64       // bytes a second, of which follows
	up, down []passage
	unread   []Publication // those that the broker has, and of which the acknowledgement is on its way
	progress time.Time     // when a publication was acknowledged last, or the connection began
	ends     int           // connections that ended since none was
}

// passage is a message on its way.
type passage struct {
	Publication
	retained bool
	carried  float64 // bytes
}

// slowAck is the time without an acknowledgement after which the client ends a connection, for a large message.
const slowAck = 80 * time.Second

// receive delivers a message to the node.
func (n *node) receive(topic string, payload []byte, retained bool) {
	if n.slow == nil {
		n.Receive(n.in.now, topic, payload, retained)
		return
	}
	n.slow.down = append(n.slow.down, passage{Publication{topic, payload}, retained, 0})
}

// send publishes messages of the node. One that waits is replaced.
func (n *node) send(all []Publication) {
	for _, p := range all {
		s := n.slow
		if s == nil {
			n.in.publish(p)
			continue
		}
		if s.rate == 0 {
			s.rate = float64(len(p.Payload)) / s.takes.Seconds()
		}
		if len(s.up)+len(s.unread) == 0 {
			s.progress = n.in.now
		}
		s.up = append(slices.DeleteFunc(s.up, func(q passage) bool { return q.Topic == p.Topic && q.carried == 0 }), passage{p, false, 0})
	}
}

// carry lets messages go on for a second, and ends a connection without an acknowledgement.
func (n *node) carry() {
	s := n.slow
	if s == nil || !n.online {
		return
	}
	pass := func(way *[]passage, arrive func(passage)) {
		for left := s.rate; len(*way) > 0; {
			p := &(*way)[0]
			step := min(left, float64(len(p.Payload))-p.carried)
			left, p.carried = left-step, p.carried+step
			if p.carried < float64(len(p.Payload)) {
				return
			}
			done := *p
			*way = (*way)[1:]
			arrive(done)
		}
	}
	pass(&s.down, func(p passage) {
		if p.Topic == "" {
			s.progress, s.unread = n.in.now, s.unread[1:]
			return
		}
		n.Receive(n.in.now, p.Topic, p.Payload, p.retained)
	})
	pass(&s.up, func(p passage) {
		s.unread = append(s.unread, p.Publication)
		n.in.publish(p.Publication)
		s.down = append(s.down, passage{}) // the acknowledgement comes behind what the message causes
	})
	way := func(name string) bool {
		ours := func(p Publication) bool { return strings.HasPrefix(p.Topic, n.topics.Contribution(name)) }
		return slices.ContainsFunc(s.unread, ours) || slices.ContainsFunc(s.up, func(p passage) bool { return ours(p.Publication) })
	}
	n.Sending(n.in.now, way(n.name), way(BasisName))
	if len(s.up)+len(s.unread) > 0 && n.in.now.Sub(s.progress) >= slowAck {
		s.ends++
		n.reconnect()
	}
}

// reconnect ends a connection and begins the next one, over which what was not acknowledged is sent again.
func (n *node) reconnect() {
	if n.disconnect() {
		n.slow.up, n.slow.unread = nil, nil
	}
	var again, up []passage
	for _, p := range n.slow.unread {
		again = append(again, passage{p, false, 0})
	}
	again = append(again, n.slow.up...)
	for i, p := range again {
		p.carried = 0
		if !slices.ContainsFunc(again[i+1:], func(later passage) bool { return later.Topic == p.Topic }) {
			up = append(up, p)
		}
	}
	n.slow.up, n.slow.down, n.slow.unread, n.slow.progress = up, nil, nil, n.in.now
	n.connect()
}

// slowly starts a node over a connection on which its first contribution takes some time.
func (w *world) slowly(takes time.Duration) *node {
	a := w.start("a", 0, plain)
	a.labels, a.size, a.slow = 200, 200, &slowLink{takes: takes}
	return a
}

// A contribution that takes long on its way, and as long back, is published once and as it is, and so is the next one
// after a reconnect, at which the broker's own message comes as slowly.
func TestSlowConnection(t *testing.T) {
	for _, takes := range []time.Duration{2 * time.Second, 12 * time.Second, 20 * time.Second, 35 * time.Second} {
		w := newWorld(t)
		a := w.slowly(takes)
		w.pass(3 * time.Minute)
		equal(t, takes.String()+": published, parts, kept", []any{a.published, a.own.parts, a.View(w.now, Model{}).Kept}, []any{1, 0, true})
		a.reconnect()
		w.pass(2 * time.Minute)
		equal(t, takes.String()+": after a reconnect", []any{a.published, a.link.kept}, []any{1, true})
		a.labels += 200
		w.pass(3 * time.Minute)
		equal(t, takes.String()+": published, parts, kept", []any{a.published, a.own.parts, a.View(w.now, Model{}).Kept}, []any{2, 0, true})
		equal(t, takes.String()+": events", a.happened(), []string(nil))
	}
}

// So is a common basis.
func TestBasisOverSlowConnection(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, sharing)
	a.labels, a.size, a.slow = 200, 200, &slowLink{takes: 20 * time.Second}
	w.pass(3 * time.Minute)
	equal(t, "announced, published", []int{a.announced, a.published}, []int{1, 2}) // before and after there was a basis
	equal(t, "basis, events", []any{w.basis(), a.happened()}, []any{"1 a", []string{"fleet_basis"}})
}

// A broker that drops a large message is found in twenty seconds, and over a slow connection later by the time that the
// message takes, twice.
func TestDroppedOverSlowConnection(t *testing.T) {
	for takes, within := range map[time.Duration]time.Duration{time.Second: 33 * time.Second, 20 * time.Second: 100 * time.Second} {
		w := newWorld(t)
		a := w.slowly(takes)
		w.limit = 9000
		w.pass(within)
		if events := a.of("fleet_not_kept"); len(a.happened()) != 1 || !strings.Contains(events[0], "did not come back") {
			t.Errorf("%v: the events are %q", takes, a.events)
		}
		w.pass(5 * time.Minute)
		equal(t, takes.String()+": parts, kept", []any{a.own.parts > 1, a.View(w.now, Model{}).Kept}, []any{true, true})
	}
}

// A contribution that is never acknowledged, since each connection ends before, follows in smaller messages.
func TestNeverAcknowledged(t *testing.T) {
	w := newWorld(t)
	a := w.slowly(100 * time.Second)
	w.pass(20 * time.Minute)
	equal(t, "parts, kept", []any{a.own.parts > 1, a.View(w.now, Model{}).Kept}, []any{true, true})
	if a.slow.ends == 0 || a.slow.ends > 8 {
		t.Errorf("%d connections have ended", a.slow.ends)
	}
}

// Members whose messages a slow connection brings one after the other for a minute have not left, and are not asked for.
func TestMembersOverSlowConnection(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"b", "c", "d", "e"} {
		other := w.start(name, 0, plain)
		other.labels, other.size = 200, 200
	}
	w.pass(time.Minute)
	a := w.slowly(14 * time.Second)
	w.pass(2 * time.Minute)
	equal(t, "published, members", []any{a.published, len(a.peers)}, []any{1, 4})
	a.asked = nil
	a.reconnect()
	w.pass(100 * time.Second) // after which silent members are asked for
	equal(t, "members, asked for", []any{len(a.peers), a.asked}, []any{4, []string(nil)})
	equal(t, "events", a.happened(), []string(nil))
	a.disconnect()
	w.nodes[0].labels = 0
	delete(w.kept, "edge/fleet/c/b")
	a.reconnect()
	w.pass(4 * time.Minute)
	equal(t, "members after one has left", len(a.peers), 3)
}
