package simulation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// identifiers is the way in which a broker chooses packet identifiers.
type identifiers string

const (
	sequential identifiers = "sequential" // 1, 2, 3, …, kept when a message is sent again: mosquitto, NATS
	lowest     identifiers = "lowest"     // the lowest free one, kept when a message is sent again
	renewed    identifiers = "renewed"    // from 1 on in every connection: RabbitMQ
	random     identifiers = "random"     // from a random number on in every connection, kept when a message is sent again, without DUP: aedes
)

// broker is a broker of MQTT 3.1.1. World.mu guards it.
type broker struct {
	world      *scene
	rng        *rand.Rand
	ids        identifiers
	window     int // messages in flight of a session
	queue      int // queued messages of a session
	persistent bool
	overlaps   bool // a message is delivered once per matching subscription
	hides      bool // it says that it has no session when it resumes one: ActiveMQ
	unbounded  bool // each acknowledgement releases a whole window of messages: mosquitto before 2.0.13
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
	*meaning // nil: the node published it
}

// peer is the broker's end of a connection.
type peer struct {
	link      *link
	in        []byte
	session   *session
	will      *publication
	written   int
	keepalive *time.Timer
	timeout   time.Duration
	gone      bool
}

func newBroker(w *world) *broker {
	rng := w.random("broker")
	b := &broker{
		world: w.scene, rng: rng, ids: pick(rng, sequential, sequential, lowest, renewed),
		window: pick(rng, 1, 2, 5, 20, 20, 100, 1000), queue: pick(rng, 50, 1000, 1000, 1000), persistent: rng.IntN(3) > 0,
		overlaps: rng.IntN(2) == 0, unbounded: rng.IntN(4) == 0, ack: pick(rng, time.Millisecond, 200*time.Millisecond),
		sessions: map[string]*session{}, peers: map[*peer]bool{}, retained: map[string]publication{},
	}
	if w.oneIn("no DUP", 8) {
		b.ids = random
	}
	b.hides = b.ids == sequential && w.oneIn("hidden sessions", 4)
	if w.plan.earlierSession {
		b.sessions[w.name] = &session{id: w.name, filters: map[string]byte{"in/#": b.best(), "labels/#": b.best()}}
	}
	return b
}

// best returns the highest QoS that the broker supports.
func (b *broker) best() byte {
	if b.ids == renewed { // RabbitMQ
		return 1
	}
	return 2
}

func (b *broker) accept(k *link) *peer {
	p := &peer{link: k}
	b.peers[p] = true
	return p
}

// receive handles bytes from a client.
func (b *broker) receive(p *peer, data []byte) {
	if p.gone {
		return
	}
	if p.keepalive != nil {
		p.keepalive.Reset(p.timeout)
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
			b.world.fail("the node sends a malformed packet: %v", err)
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
		b.answered(p, len(b.nodeOf(p).unproven.acknowledged))
	case *packets.DisconnectPacket:
		p.will = nil
		b.disconnect(p)
	default:
		b.world.fail("the node sends %v", packet)
	}
}

// connect opens or resumes a session, section 3.1 of the standard.
func (b *broker) connect(p *peer, c *packets.ConnectPacket) {
	s := b.sessions[c.ClientIdentifier]
	if s != nil && s.peer != nil {
		b.disconnect(s.peer)
	}
	s = b.sessions[c.ClientIdentifier]
	if s != nil && (c.CleanSession || s.clean) {
		b.dropSession(s)
		s = nil
	}
	answer := packets.NewControlPacket(packets.Connack).(*packets.ConnackPacket)
	answer.SessionPresent = s != nil && !b.hides
	if s == nil {
		s = &session{id: c.ClientIdentifier, clean: c.CleanSession, filters: map[string]byte{}}
		b.sessions[s.id] = s
	}
	s.peer, p.session = p, s
	if state := b.nodeOf(p).topic("state"); s.id == b.nodeOf(p).name && (c.WillTopic != state || string(c.WillMessage) != "offline" || c.WillQos != 1 || !c.WillRetain) {
		b.world.fail("the Last Will is %q on %s", c.WillMessage, c.WillTopic)
	}
	if c.WillFlag {
		p.will = &publication{topic: c.WillTopic, payload: c.WillMessage, qos: c.WillQos, retained: c.WillRetain}
	}
	if c.Keepalive > 0 {
		p.timeout = time.Duration(c.Keepalive) * 3 * time.Second / 2
		p.keepalive = time.AfterFunc(p.timeout, func() {
			b.world.mu.Lock()
			defer b.world.mu.Unlock()
			p.link.end(fmt.Errorf("connection reset by peer"))
		})
	}
	b.write(p, answer)
	b.resume(s)
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

// published handles a publication of the node.
func (b *broker) published(p *peer, c *packets.PublishPacket) {
	b.received++
	n := b.nodeOf(p)
	cursor := c.TopicName == n.topic("cursor")
	if cursor {
		n.unproven.cursorStored(p, string(c.Payload) != "0")
	}
	b.route(publication{topic: c.TopicName, payload: c.Payload, qos: c.Qos, retained: c.Retain})
	if cursor && n.cutting {
		n.cutting = false
		p.link.end(errors.New("connection reset by peer"))
		return
	}
	if c.Qos == 0 {
		return
	}
	answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
	answer.MessageID = c.MessageID
	total := len(b.nodeOf(p).unproven.acknowledged)
	time.AfterFunc(time.Duration(1+b.rng.Int64N(int64(b.ack))), func() {
		b.world.mu.Lock()
		defer b.world.mu.Unlock()
		if !p.gone {
			b.write(p, answer)
			b.answered(p, total)
		}
	})
}

// route queues a publication in the sessions that are subscribed to it.
func (b *broker) route(m publication) {
	if b.world.fleet != nil {
		b.world.fleet.seen(m)
	}
	if m.retained {
		b.retained[m.topic] = m
		if len(m.payload) == 0 {
			delete(b.retained, m.topic)
		}
	}
	m.retained = false
	for _, id := range slices.Sorted(maps.Keys(b.sessions)) {
		s := b.sessions[id]
		if w := b.world.node(id); w.missing && strings.HasPrefix(m.topic, fleetTopic) && m.topic != fleetTopic+w.name {
			continue
		}
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

// disconnect ends a connection, and publishes its will unless the client has sent
// DISCONNECT, section 3.1.2.5.
func (b *broker) disconnect(p *peer) {
	if p.gone {
		return
	}
	p.gone = true
	delete(b.peers, p)
	if p.keepalive != nil {
		p.keepalive.Stop()
	}
	p.link.down.send(nil)
	if s := p.session; s != nil && s.peer == p {
		s.peer = nil
		if s.clean {
			b.dropSession(s)
		}
		if p.will != nil {
			b.route(*p.will)
		}
	}
	b.world.log("gone")
}

// stop ends the broker, which loses its sessions if it is not persistent.
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
		b.dropSession(b.sessions[id])
	}
	b.dropRetained()
}

// nodeOf returns the node of a connection.
func (b *broker) nodeOf(p *peer) *world { return p.link.process.world }

// answered notes that the packet just written answers one that the node wrote after total
// acknowledgements.
func (b *broker) answered(p *peer, total int) { b.nodeOf(p).unproven.answer(p, total) }

// keepsCursor reports whether the broker has a retained cursor of a node with a commit's
// number.
func (b *broker) keepsCursor(n *world) bool {
	kept, ok := b.retained[n.topic("cursor")]
	return ok && string(kept.payload) != "0"
}

func (b *broker) dropRetained() {
	clear(b.retained)
	for _, n := range b.world.nodes {
		n.unproven.cursor = 0
	}
	b.world.log("the retained messages are lost")
}

// matches reports whether a filter matches a topic, section 4.7.
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
