package simulation

import (
	"slices"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// session is the broker's session of a client.
type session struct {
	id       string
	clean    bool
	filters  map[string]byte
	waiting  []*delivery
	inflight []*delivery
	last     uint16 // identifier
	peer     *peer  // nil: not connected
	refused  int    // messages beyond the limit of the queue
}

// delivery is one message for one session, of QoS 1 or 2.
type delivery struct {
	publication
	id           uint16
	sent         int        // number of transmissions
	provenBefore int        // acknowledgements proven to the node at the first transmission, see unproven
	received     bool       // it arrived at the client completely, at least once
	acked        bool       // the broker has read its acknowledgement, PUBACK or PUBREC
	proven       bool       // acked, and the node can know it
	lost         int        // number of the loss, see world.losses; 0: not lost
	adrift       bool       // a restored backup has it as taken, and not that it was acknowledged since
	ambiguous    *ambiguity // the node cannot know whether it is a repetition; nil: it can
	released     bool       // QoS 2: the broker has read PUBREC, and not PUBCOMP
	sentIn       int        // process that it was first sent to
	ackedIn      int        // process that acknowledged it
	number       int        // of the acknowledgement
	offset       int        // position in the connection's bytes at which it ends
	conn         *peer
}

// resume sends the messages in flight again, in order and with DUP, section 4.4.
func (b *broker) resume(s *session) {
	if b.ids == renewed {
		s.last = 0
		s.waiting, s.inflight = slices.Concat(s.inflight, s.waiting), nil
		b.world.node(s.id).unproven.markResent(s, false)
		b.fill(s)
		return
	}
	if b.ids == random {
		s.last = uint16(b.rng.IntN(1 << 16))
		if n := b.world.node(s.id); s.id == n.name && !b.keepsCursor(n) {
			n.repeats(s)
		}
	}
	b.world.node(s.id).unproven.markResent(s, true)
	for _, d := range s.inflight {
		if d.released {
			b.release(s, d)
			continue
		}
		b.transmit(s, d)
	}
	b.fill(s)
}

// fill sends queued messages until the window is full.
func (b *broker) fill(s *session) {
	for s.peer != nil && len(s.waiting) > 0 && len(s.inflight) < b.window {
		b.sendNext(s)
	}
}

// sendNext sends the first message of the queue.
func (b *broker) sendNext(s *session) {
	d := s.waiting[0]
	s.waiting = s.waiting[1:]
	d.id = b.identifier(s)
	if b.ids == random {
		b.world.node(s.id).unproven.markFirst(s, d)
	}
	s.inflight = append(s.inflight, d)
	b.transmit(s, d)
}

// identifier returns an unused packet identifier.
func (b *broker) identifier(s *session) uint16 {
	if b.ids == lowest {
		s.last = 0
	}
	for {
		if s.last++; s.last != 0 && s.find(s.last) == nil {
			return s.last
		}
	}
}

func (s *session) find(id uint16) *delivery {
	for _, d := range s.inflight {
		if d.id == id {
			return d
		}
	}
	return nil
}

func (b *broker) transmit(s *session, d *delivery) {
	packet := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	packet.TopicName, packet.Payload, packet.Qos, packet.Retain = d.topic, d.payload, d.qos, d.retained
	packet.MessageID, packet.Dup = d.id, d.sent > 0 && b.ids != random
	d.arrived()
	n := b.world.node(s.id)
	s.peer.link.process.answers.transmitted(&d.publication) // also of its second connection
	if d.sent++; d.sent == 1 {
		d.sentIn, d.provenBefore = s.peer.link.process.number, n.unproven.settleAnswers()
	}
	b.write(s.peer, packet)
	d.conn, d.offset = s.peer, s.peer.written
	if d.retained && d.topic == n.topic("cursor") {
		n.unproven.cursorSent(s.peer)
	}
}

// arrived reports whether a transmission has reached the client, and records it.
func (d *delivery) arrived() bool {
	if d.conn != nil && d.conn.link.client.read >= d.offset {
		d.received = true
	}
	return d.received
}

// release sends PUBREL.
func (b *broker) release(s *session, d *delivery) {
	packet := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
	packet.MessageID = d.id
	b.write(s.peer, packet)
}

// acknowledged handles a PUBACK or PUBREC, after which a message is not sent again,
// and returns its delivery, nil for an unknown identifier. Section 4.6:
// acknowledgements arrive in the order of the messages of that QoS.
func (b *broker) acknowledged(s *session, qos byte, id uint16, packet packets.ControlPacket) *delivery {
	d := s.find(id)
	if d == nil || d.qos != qos || d.released || d.conn != s.peer {
		b.world.fail("the node sends %v, but that message is not in flight on this connection", packet)
		return nil
	}
	if first := s.first(func(other *delivery) bool { return other.qos == qos && !other.released }); first != d {
		b.world.fail("the node sends %v before the acknowledgement of %d, which was sent first", packet, first.id)
	}
	n := b.world.node(s.id)
	n.acknowledged++
	d.acked, d.ackedIn, d.number = true, s.peer.link.process.number, n.acknowledged
	n.unproven.add(s, d)
	s.peer.link.process.answers.acknowledged(&d.publication)
	return d
}

// completed handles a PUBCOMP.
func (b *broker) completed(s *session, id uint16, packet packets.ControlPacket) {
	d := s.find(id)
	if d == nil || !d.released {
		b.world.fail("the node sends %v, but that message was not released", packet)
		return
	}
	if first := s.first(func(other *delivery) bool { return other.released }); first != d {
		b.world.fail("the node sends %v before that for %d, which was released first", packet, first.id)
	}
	b.complete(s, d)
}

// first returns the first message in flight for which ok reports true.
func (s *session) first(ok func(*delivery) bool) *delivery {
	return s.inflight[slices.IndexFunc(s.inflight, ok)]
}

// complete ends a delivery.
func (b *broker) complete(s *session, d *delivery) {
	s.inflight = slices.DeleteFunc(s.inflight, func(other *delivery) bool { return other == d })
	if b.unbounded {
		for n := 0; n < b.window && len(s.waiting) > 0; n++ {
			b.sendNext(s)
		}
	}
	b.fill(s)
}

// enqueue adds a message to the queue of a session.
func (b *broker) enqueue(s *session, m publication, granted byte) {
	m.qos = min(m.qos, granted)
	d := &delivery{publication: m}
	switch {
	case m.qos == 0:
		if s.peer != nil {
			if n := b.world.node(s.id); s.id == n.name && m.meaning != nil {
				n.qos0 = append(n.qos0, m)
			}
			b.transmit(s, d)
		}
	case len(s.waiting) >= b.queue:
		s.refused++
		b.world.log("the queue of %s is full", s.id)
	default:
		if n := b.world.node(s.id); s.id == n.name {
			n.history = append(n.history, d)
		}
		s.waiting = append(s.waiting, d)
		b.fill(s)
	}
}

// dropSession deletes a session with its messages.
func (b *broker) dropSession(s *session) {
	if b.sessions[s.id] == s {
		delete(b.sessions, s.id)
	}
	w := b.world.node(s.id)
	w.lost(s)
	w.unproven.drop(s)
}
