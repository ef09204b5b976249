package simulation

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// identifiers says how a broker numbers what it sends.
type identifiers string

const (
	sequential identifiers = "sequential" // kept when it is sent again: mosquitto, NATS
	lowest     identifiers = "lowest"     // the lowest that is free, kept when it is sent again
	renewed    identifiers = "renewed"    // from 1 on in every connection: RabbitMQ
	random     identifiers = "random"     // from a random number on in every connection, kept when it is sent again, without DUP: aedes
)

// broker is one that follows MQTT 3.1.1. World.mu guards all of it.
type broker struct {
	world      *world
	rng        *rand.Rand
	ids        identifiers
	window     int // messages in flight of a session
	queue      int // messages that wait in a session
	persistent bool
	overlaps   bool // each subscription that matches has a message of its own
	unbounded  bool // each acknowledgement lets as many more come as the window has: mosquitto before 2.0.13
	down       bool
	ack        time.Duration // longest time to acknowledge a publication

	sessions map[string]*session
	peers    map[*peer]bool
	retained map[string]publication

	received int // publications of nodes
}

// publication is a message on a topic.
type publication struct {
	topic    string
	payload  []byte
	qos      byte
	retained bool
	*meaning // nil: a node published it
}

// session is what the broker knows of a client.
type session struct {
	id       string
	clean    bool
	filters  map[string]byte
	waiting  []*delivery
	inflight []*delivery
	last     uint16 // identifier
	peer     *peer  // nil: not connected
	refused  int    // beyond the limit of the queue
}

// delivery is one message for one session, of QoS 1 or 2.
type delivery struct {
	publication
	id       uint16
	sent     int      // times
	known    int      // acknowledgements that the node could know to be read when it was sent first
	taken    bool     // it arrived at the client whole, at least once
	acked    bool     // the broker has read its acknowledgement, PUBACK or PUBREC
	proven   bool     // and the node can know that
	lost     int      // with the session of this number; 0: not lost
	mistaken *mistake // the standard leaves open whether it is a repetition; nil: it does not
	released bool     // of QoS 2: PUBREC was read, and PUBCOMP was not
	born     int      // life in which it was sent first
	died     int      // life in which it was acknowledged
	number   int      // of the acknowledgement
	at       int      // byte of the connection after which it has arrived
	over     *peer
}

// peer is the broker's end of a connection.
type peer struct {
	link     *link
	in       []byte
	session  *session
	will     *publication
	written  int
	alive    *time.Timer
	patience time.Duration
	gone     bool
}

func newBroker(w *world) *broker {
	rng := w.random("broker")
	b := &broker{
		world: w, rng: rng, ids: pick(rng, sequential, sequential, lowest, renewed),
		window: pick(rng, 1, 2, 5, 20, 20, 100, 1000), queue: pick(rng, 50, 1000, 1000, 1000), persistent: rng.IntN(3) > 0,
		overlaps: rng.IntN(2) == 0, unbounded: rng.IntN(4) == 0, ack: pick(rng, time.Millisecond, 200*time.Millisecond),
		sessions: map[string]*session{}, peers: map[*peer]bool{}, retained: map[string]publication{},
	}
	if w.oneIn("no DUP", 8) {
		b.ids = random
	}
	if w.plan.earlier {
		b.sessions[nodeID] = &session{id: nodeID, filters: map[string]byte{"in/#": b.best(), "labels/#": b.best()}}
	}
	return b
}

// best is the highest QoS that the broker knows.
func (b *broker) best() byte {
	if b.ids == renewed { // as RabbitMQ
		return 1
	}
	return 2
}

func (b *broker) accept(k *link) *peer {
	p := &peer{link: k}
	b.peers[p] = true
	return p
}

// receive takes bytes of a client.
func (b *broker) receive(p *peer, data []byte) {
	if p.gone {
		return
	}
	if p.alive != nil {
		p.alive.Reset(p.patience)
	}
	p.in = append(p.in, data...)
	for !p.gone {
		length, head := 0, 0
		if len(p.in) >= 2 {
			n, size := binary.Uvarint(p.in[1:min(len(p.in), 5)])
			length, head = int(n), size
		}
		if head <= 0 || len(p.in) < 1+head+length {
			return
		}
		packet, err := packets.ReadPacket(bytes.NewReader(p.in[:1+head+length]))
		if err != nil {
			b.world.fail("the node sends a packet that cannot be read: %v", err)
			p.link.end(err)
			return
		}
		p.in = p.in[1+head+length:]
		b.world.log("< %v", packet)
		b.handle(p, packet)
	}
}

func (b *broker) handle(p *peer, packet packets.ControlPacket) {
	if p.session == nil {
		if c, ok := packet.(*packets.ConnectPacket); ok {
			b.connect(p, c)
			return
		}
		b.world.fail("the node sends %v before CONNECT", packet)
		return
	}
	switch c := packet.(type) {
	case *packets.PublishPacket:
		b.published(p, c)
	case *packets.PubackPacket:
		if d := b.acknowledged(p.session, 1, c.MessageID, packet); d != nil {
			b.complete(p.session, d)
		}
	case *packets.PubrecPacket:
		if d := b.acknowledged(p.session, 2, c.MessageID, packet); d != nil {
			d.released = true
			b.release(p.session, d)
		}
	case *packets.PubcompPacket:
		b.completed(p.session, c.MessageID, packet)
	case *packets.SubscribePacket:
		b.subscribe(p, c)
	case *packets.UnsubscribePacket:
		for _, f := range c.Topics {
			delete(p.session.filters, f)
		}
		answer := packets.NewControlPacket(packets.Unsuback).(*packets.UnsubackPacket)
		answer.MessageID = c.MessageID
		b.write(p, answer)
	case *packets.PingreqPacket:
		b.write(p, packets.NewControlPacket(packets.Pingresp))
		b.world.doubt.proves(p, len(b.world.doubt.all))
	case *packets.DisconnectPacket:
		p.will = nil
		b.ended(p)
	default:
		b.world.fail("the node sends %v", packet)
	}
}

// connect opens or resumes a session, section 3.1 of the standard.
func (b *broker) connect(p *peer, c *packets.ConnectPacket) {
	s := b.sessions[c.ClientIdentifier]
	if s != nil && s.peer != nil {
		b.ended(s.peer)
	}
	s = b.sessions[c.ClientIdentifier]
	if s != nil && (c.CleanSession || s.clean) {
		b.forget(s)
		s = nil
	}
	answer := packets.NewControlPacket(packets.Connack).(*packets.ConnackPacket)
	answer.SessionPresent = s != nil
	if s == nil {
		s = &session{id: c.ClientIdentifier, clean: c.CleanSession, filters: map[string]byte{}}
		b.sessions[s.id] = s
	}
	s.peer, p.session = p, s
	if state := "edge/" + nodeID + "/state"; s.id == nodeID && (c.WillTopic != state || string(c.WillMessage) != "offline" || c.WillQos != 1 || !c.WillRetain) {
		b.world.fail("the Last Will is %q on %s", c.WillMessage, c.WillTopic)
	}
	if c.WillFlag {
		p.will = &publication{topic: c.WillTopic, payload: c.WillMessage, qos: c.WillQos, retained: c.WillRetain}
	}
	if c.Keepalive > 0 {
		p.patience = time.Duration(c.Keepalive) * 3 * time.Second / 2
		p.alive = time.AfterFunc(p.patience, func() {
			b.world.mu.Lock()
			defer b.world.mu.Unlock()
			p.link.end(fmt.Errorf("connection reset by peer"))
		})
	}
	b.write(p, answer)
	b.resume(s)
}

// resume sends again what was in flight, in order and with DUP, section 4.4.
func (b *broker) resume(s *session) {
	if b.ids == renewed {
		s.last = 0
		s.waiting, s.inflight = slices.Concat(s.inflight, s.waiting), nil
		b.world.doubt.resumes(s, false)
		b.fill(s)
		return
	}
	if b.ids == random {
		s.last = uint16(b.rng.IntN(1 << 16))
		if s.id == nodeID && !b.keepsCursor() {
			b.world.repeats(s)
		}
	}
	b.world.doubt.resumes(s, true)
	for _, d := range s.inflight {
		if d.released {
			b.release(s, d)
			continue
		}
		b.transmit(s, d)
	}
	b.fill(s)
}

// fill sends what the window has room for.
func (b *broker) fill(s *session) {
	for s.peer != nil && len(s.waiting) > 0 && len(s.inflight) < b.window {
		b.next(s)
	}
}

// next sends the message that has waited longest.
func (b *broker) next(s *session) {
	d := s.waiting[0]
	s.waiting = s.waiting[1:]
	d.id = b.identifier(s)
	if b.ids == random {
		b.world.doubt.sends(s, d)
	}
	s.inflight = append(s.inflight, d)
	b.transmit(s, d)
}

// identifier returns one that is not in use.
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
	if strings.HasPrefix(s.id, nodeID) { // or its second connection
		s.peer.link.life.answers.transmitted(&d.publication)
	}
	if d.sent++; d.sent == 1 {
		d.born, d.known = s.peer.link.life.number, b.world.doubt.settle()
	}
	b.write(s.peer, packet)
	d.over, d.at = s.peer, s.peer.written
	if d.retained && d.topic == cursorTopic {
		b.world.doubt.tells(s.peer)
	}
}

// arrived notes whether the last transmission reached the client.
func (d *delivery) arrived() bool {
	if d.over != nil && d.over.link.client.read >= d.at {
		d.taken = true
	}
	return d.taken
}

func (b *broker) write(p *peer, packet packets.ControlPacket) {
	var buffer bytes.Buffer
	if err := packet.Write(&buffer); err != nil {
		b.world.fail("%v", err)
	}
	b.world.log("> %v", packet)
	p.written += buffer.Len()
	p.link.down.send(buffer.Bytes())
}

// release sends PUBREL.
func (b *broker) release(s *session, d *delivery) {
	packet := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
	packet.MessageID = d.id
	b.write(s.peer, packet)
}

// acknowledged notes a PUBACK or PUBREC, after which a message is not sent again,
// and returns its delivery; nil if there is none. Section 4.6: acknowledgements
// come in the order of the messages of that QoS.
func (b *broker) acknowledged(s *session, qos byte, id uint16, packet packets.ControlPacket) *delivery {
	d := s.find(id)
	if d == nil || d.qos != qos || d.released || d.over != s.peer {
		b.world.fail("the node sends %v, but that message is not in flight on this connection", packet)
		return nil
	}
	if first := s.first(func(other *delivery) bool { return other.qos == qos && !other.released }); first != d {
		b.world.fail("the node sends %v before the acknowledgement of %d, which came first", packet, first.id)
	}
	b.world.acknowledged++
	d.acked, d.died, d.number = true, s.peer.link.life.number, b.world.acknowledged
	b.world.doubt.acknowledged(s, d)
	s.peer.link.life.answers.acknowledged(&d.publication)
	return d
}

// completed notes a PUBCOMP.
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
			b.next(s)
		}
	}
	b.fill(s)
}

// published takes a publication of a node.
func (b *broker) published(p *peer, c *packets.PublishPacket) {
	b.received++
	if c.TopicName == cursorTopic {
		b.world.doubt.kept(p, string(c.Payload) != "0")
	}
	b.route(publication{topic: c.TopicName, payload: c.Payload, qos: c.Qos, retained: c.Retain})
	if c.Qos == 0 {
		return
	}
	answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
	answer.MessageID = c.MessageID
	total := len(b.world.doubt.all)
	time.AfterFunc(time.Duration(1+b.rng.Int64N(int64(b.ack))), func() {
		b.world.mu.Lock()
		defer b.world.mu.Unlock()
		if !p.gone {
			b.write(p, answer)
			b.world.doubt.proves(p, total)
		}
	})
}

// route hands a publication to the sessions that asked for it.
func (b *broker) route(m publication) {
	if m.retained {
		b.retained[m.topic] = m
		if len(m.payload) == 0 {
			delete(b.retained, m.topic)
		}
	}
	m.retained = false
	for _, id := range slices.Sorted(maps.Keys(b.sessions)) {
		s := b.sessions[id]
		qos, matched := byte(0), 0
		for _, f := range slices.Sorted(maps.Keys(s.filters)) {
			if matches(f, m.topic) {
				matched++
				qos = max(qos, s.filters[f])
			}
		}
		if !b.overlaps {
			matched = min(matched, 1)
		}
		for range matched {
			b.enqueue(s, m, qos)
		}
	}
}

// enqueue lets a message wait for its turn in a session.
func (b *broker) enqueue(s *session, m publication, granted byte) {
	m.qos = min(m.qos, granted)
	d := &delivery{publication: m}
	switch {
	case m.qos == 0:
		if s.peer != nil {
			if s.id == nodeID && m.meaning != nil {
				b.world.loose = append(b.world.loose, m)
			}
			b.transmit(s, d)
		}
	case len(s.waiting) >= b.queue:
		s.refused++
		b.world.log("the queue of %s is full", s.id)
	default:
		if s.id == nodeID {
			b.world.history = append(b.world.history, d)
		}
		s.waiting = append(s.waiting, d)
		b.fill(s)
	}
}

func (b *broker) subscribe(p *peer, c *packets.SubscribePacket) {
	answer := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
	answer.MessageID = c.MessageID
	for i, f := range c.Topics {
		p.session.filters[f] = min(c.Qoss[i], b.best())
		answer.ReturnCodes = append(answer.ReturnCodes, p.session.filters[f])
	}
	b.write(p, answer)
	for _, topic := range slices.Sorted(maps.Keys(b.retained)) {
		for _, f := range c.Topics {
			if matches(f, topic) {
				b.enqueue(p.session, b.retained[topic], p.session.filters[f])
			}
		}
	}
}

// ended lets a connection go. The will is published unless the client has said
// goodbye, section 3.1.2.5.
func (b *broker) ended(p *peer) {
	if p.gone {
		return
	}
	p.gone = true
	delete(b.peers, p)
	if p.alive != nil {
		p.alive.Stop()
	}
	p.link.down.send(nil)
	if s := p.session; s != nil && s.peer == p {
		s.peer = nil
		if s.clean {
			b.forget(s)
		}
		if p.will != nil {
			b.route(*p.will)
		}
	}
	b.world.log("gone")
}

// forget drops a session with all that it holds.
func (b *broker) forget(s *session) {
	if b.sessions[s.id] == s {
		delete(b.sessions, s.id)
	}
	b.world.lost(s)
}

// stop ends the broker; what it has not on its disk is lost.
func (b *broker) stop() {
	b.down = true
	for p := range b.peers {
		p.will = nil
	}
	for _, k := range slices.Clone(b.world.net.links) {
		k.cut()
	}
	if b.persistent {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(b.sessions)) {
		b.forget(b.sessions[id])
	}
	b.forgetRetained()
}

// keepsCursor reports whether the broker keeps the number of a commit of the node's.
func (b *broker) keepsCursor() bool {
	kept, ok := b.retained[cursorTopic]
	return ok && string(kept.payload) != "0"
}

func (b *broker) forgetRetained() {
	clear(b.retained)
	b.world.doubt.cursor = 0
	b.world.log("the retained messages are lost")
}

// matches reports whether a filter asks for a topic, section 4.7.
func matches(filter, topic string) bool {
	f, t := strings.Split(filter, "/"), strings.Split(topic, "/")
	for i, level := range f {
		if level == "#" {
			return true
		}
		if i >= len(t) || level != "+" && level != t[i] {
			return false
		}
	}
	return len(f) == len(t)
}
