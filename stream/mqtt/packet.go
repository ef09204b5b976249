package mqtt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// Types of packets (MQTT 3.1.1, table 2.1).
const (
	packetConnect     = 1
	packetConnack     = 2
	packetPublish     = 3
	packetPuback      = 4
	packetPubrec      = 5
	packetPubrel      = 6
	packetPubcomp     = 7
	packetSubscribe   = 8
	packetSuback      = 9
	packetUnsubscribe = 10
	packetUnsuback    = 11
	packetPingreq     = 12
	packetPingresp    = 13
	packetDisconnect  = 14
)

// ProtocolError reports a packet from the broker that MQTT 3.1.1 does not allow. It
// ends the connection (section 4.8).
type ProtocolError struct {
	Packet string // name in the standard, or "answer" for what is no packet
	Reason string
}

// Error names the packet and the reason.
func (e *ProtocolError) Error() string {
	return "mqtt: read a packet from the broker: " + e.Packet + " " + e.Reason
}

// errDisconnected reports a DISCONNECT packet. Some brokers send one, as in MQTT 5,
// to clients of MQTT 3.1.1: mochi does when another client takes the session over.
var errDisconnected = errors.New("mqtt: the broker has ended the connection with a DISCONNECT packet")

// violation returns the ProtocolError of a packet with that first byte. It is not inlined: each
// packet has several calls.
//
//go:noinline
func violation(kind byte, reason string, args ...any) error {
	return &ProtocolError{Packet: packetRules[kind>>4].name, Reason: fmt.Sprintf(reason, args...)}
}

// packetRules are the requirements of the standard for each type of packet.
var packetRules = [16]struct {
	name       string
	fromServer bool
	flags      byte // of the fixed header, table 2.2; variable for PUBLISH
	min, max   int  // remaining length; the max of PUBLISH and SUBACK varies
}{
	{name: "packet of the reserved type 0"},
	{name: "CONNECT"},
	{name: "CONNACK", fromServer: true, min: 2, max: 2},
	{name: "PUBLISH", fromServer: true, min: 2},
	{name: "PUBACK", fromServer: true, min: 2, max: 2},
	{name: "PUBREC", fromServer: true, min: 2, max: 2},
	{name: "PUBREL", fromServer: true, min: 2, max: 2, flags: 2},
	{name: "PUBCOMP", fromServer: true, min: 2, max: 2},
	{name: "SUBSCRIBE"},
	{name: "SUBACK", fromServer: true, min: 3},
	{name: "UNSUBSCRIBE"},
	{name: "UNSUBACK", fromServer: true, min: 2, max: 2},
	{name: "PINGREQ"},
	{name: "PINGRESP", fromServer: true},
	{name: "DISCONNECT"},
	{name: "packet of the reserved type 15"},
}

// protocol checks the packets of a broker on one connection against MQTT 3.1.1 and
// against the packets that the client has sent. It accepts harmless deviations: a
// length that is not in its shortest form, DUP at QoS 0, a second acknowledgement of
// a publication, a return code above 0x80 in a SUBACK.
type protocol struct {
	accepted bool // a CONNACK has admitted the client; owned by the reader's goroutine

	mu       sync.Mutex
	requests map[uint16]request // last use of each packet identifier
	pings    int                // number of unanswered PINGREQ packets
}

// request is a packet of the client that the broker answers.
type request struct {
	kind    byte // type of the packet
	qos     byte // of a PUBLISH packet
	filters int  // of a SUBSCRIBE packet
}

// checkHeader checks the fixed header of a packet from the broker before memory is
// allocated for the rest: only PUBLISH may be longer than necessary.
func (p *protocol) checkHeader(kind byte, length int) error {
	rule, packet := packetRules[kind>>4], kind>>4
	most := rule.max
	switch {
	case packet == packetDisconnect && p.accepted:
		return errDisconnected
	case !p.accepted && kind == 'H':
		return &ProtocolError{"answer", "begins as that of an HTTP server: is the port the one of MQTT? ws:// and wss:// take MQTT over HTTP"}
	case !p.accepted && kind == 0x15:
		return &ProtocolError{"answer", "begins as an alert of TLS: is the port the one for TLS, with mqtts:// or wss://?"}
	case !rule.fromServer:
		return violation(kind, "(first byte 0x%02x) is not a packet of a broker", kind)
	case p.accepted && packet == packetConnack:
		return violation(kind, "came twice")
	case !p.accepted && packet != packetConnack:
		return violation(kind, "(first byte 0x%02x) came before CONNACK", kind)
	case packet != packetPublish && kind&15 != rule.flags:
		return violation(kind, "has the flags %04b, want %04b", kind&15, rule.flags)
	case packet == packetPublish && kind>>1&3 == 3:
		return violation(kind, "has QoS 3")
	case packet == packetPublish:
		most = length
	case packet == packetSuback:
		most = 2 + p.mostFilters()
	}
	if length < rule.min || length > most {
		return violation(kind, "has a remaining length of %d, want %d to %d", length, rule.min, most)
	}
	return nil
}

// mostFilters returns the number of topic filters of the largest unanswered SUBSCRIBE.
func (p *protocol) mostFilters() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := 1 // a SUBACK without a SUBSCRIBE is refused by its identifier, not by its length
	for _, r := range p.requests {
		most = max(most, r.filters)
	}
	return most
}

// checkAnswer checks the rest of a packet that is not a PUBLISH.
func (p *protocol) checkAnswer(kind byte, body []byte) error {
	switch kind >> 4 {
	case packetPingresp:
		return p.checkPong(kind)
	case packetConnack:
		return p.checkConnack(kind, body[0], body[1])
	}
	id := binary.BigEndian.Uint16(body)
	if id == 0 {
		return violation(kind, "has the packet identifier 0")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[id]
	switch packet := kind >> 4; {
	case packet == packetPubrel: // possibly of an earlier connection of the session
	case packet == packetSuback && r.kind == packetSubscribe:
		delete(p.requests, id)
		return checkReturnCodes(kind, id, body[2:], r.filters)
	case packet == packetUnsuback && r.kind == packetUnsubscribe:
		delete(p.requests, id)
	case packet == packetPuback && r.kind == packetPublish: // RabbitMQ answers QoS 2 in this way as well
	case (packet == packetPubrec || packet == packetPubcomp) && r.kind == packetPublish && r.qos == 2:
	default:
		return violation(kind, "has the packet identifier %d, which answers no request of the client", id)
	}
	return nil
}

// checkConnack checks acknowledge flags and return code (MQTT 3.1.1, section 3.2.2).
func (p *protocol) checkConnack(kind, flags, code byte) error {
	const lastCode = 5
	switch {
	case flags > 1:
		return violation(kind, "has the acknowledge flags %08b, of which only the last may be set", flags)
	case code > lastCode:
		return violation(kind, "has the return code %d, want 0 to %d", code, lastCode)
	}
	p.accepted = code == 0
	return nil
}

// checkPong checks that a PINGRESP packet answers a ping.
func (p *protocol) checkPong(kind byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pings == 0 {
		return violation(kind, "came without a PINGREQ")
	}
	p.pings--
	return nil
}

// checkReturnCodes checks the return codes of a SUBACK packet (MQTT 3.1.1,
// section 3.9.3): one for each filter.
func checkReturnCodes(kind byte, id uint16, codes []byte, filters int) error {
	const maxQoS, refused = 2, 0x80
	if len(codes) != filters {
		return violation(kind, "%d has %d return codes, the SUBSCRIBE has %d topic filters", id, len(codes), filters)
	}
	for _, c := range codes {
		if c > maxQoS && c < refused {
			return violation(kind, "%d has the return code %d, want 0 to %d or %d", id, c, maxQoS, refused)
		}
	}
	return nil
}

// splitPublish splits the rest of a PUBLISH packet after its fixed header (MQTT
// 3.1.1, section 3.3); packet may end within the payload. id is 0 for QoS 0. The
// topic may be one that the standard forbids: such a message has to be acknowledged,
// or the broker would send it again on each connection.
func splitPublish(kind byte, packet []byte) (topic []byte, id uint16, payload []byte, err error) {
	if len(packet) < 2 {
		return nil, 0, nil, violation(kind, "has %d bytes, not even the length of its topic", len(packet))
	}
	n := int(binary.BigEndian.Uint16(packet))
	rest := packet[2:]
	if n > len(rest) {
		return nil, 0, nil, violation(kind, "announces a topic of %d bytes, %d follow", n, len(rest))
	}
	topic, rest = rest[:n], rest[n:]
	if kind>>1&3 == 0 {
		return topic, 0, rest, nil
	}
	if len(rest) < 2 {
		return nil, 0, nil, violation(kind, "ends before its packet identifier")
	}
	if id = binary.BigEndian.Uint16(rest); id == 0 {
		return nil, 0, nil, violation(kind, "of QoS %d has the packet identifier 0", kind>>1&3)
	}
	return topic, id, rest[2:], nil
}

// errPartial reports a bug of this program: paho writes whole packets.
var errPartial = errors.New("mqtt: write to the broker: not a whole packet")

// recordSent records packets that the client is about to send.
func (p *protocol) recordSent(wire []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(wire) > 0 {
		length, n := binary.Uvarint(wire[1:]) // the encoding is that of MQTT
		if n <= 0 || length > uint64(len(wire)-1-n) {
			return errPartial
		}
		kind, body := wire[0], wire[1+n:][:length]
		wire = wire[1+n+int(length):]
		if err := p.recordPacket(kind, body); err != nil {
			return err
		}
	}
	return nil
}

// recordPacket records one packet of the client. The caller holds mu.
func (p *protocol) recordPacket(kind byte, body []byte) error {
	r := request{kind: kind >> 4}
	switch r.kind {
	case packetPingreq:
		p.pings++
		return nil
	case packetPublish:
		topic := 0
		if len(body) >= 2 {
			topic = 2 + int(binary.BigEndian.Uint16(body))
		}
		if r.qos = kind >> 1 & 3; r.qos == 0 {
			return nil
		}
		body = body[min(topic, len(body)):]
	case packetPubrel: // of a publication of QoS 2, possibly of an earlier connection
		r = request{kind: packetPublish, qos: 2}
	case packetSubscribe:
		for rest := body[min(2, len(body)):]; len(rest) >= 2; r.filters++ {
			rest = rest[min(2+int(binary.BigEndian.Uint16(rest))+1, len(rest)):]
		}
	case packetUnsubscribe:
	default:
		return nil
	}
	if len(body) < 2 {
		return errPartial
	}
	p.requests[binary.BigEndian.Uint16(body)] = r
	return nil
}
