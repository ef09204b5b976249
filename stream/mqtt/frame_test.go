package mqtt

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/stream/topic"
)

// admitted returns a connection over which CONNACK has come.
func admitted(r io.Reader, maxPayload int) *frameConn {
	f := newFrameConn(sink{Reader: r}, maxPayload, time.Second)
	f.protocol.accepted = true
	return f
}

func publishPacket(topic string, payload int) *packets.PublishPacket {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Qos, p.MessageID, p.Payload = topic, 1, 7, bytes.Repeat([]byte{'x'}, payload)
	return p
}

// Packets of every kind and size pass unchanged, except that long ones are cut; their
// successors are intact.
func TestFrameConn(t *testing.T) {
	const limit = 100
	var wire bytes.Buffer
	sizes := []int{0, 1, limit, 127, 128, 16384, topic.MaxLength, 2<<20 + 12345, 5, 200000}
	for _, n := range sizes {
		publishPacket("a/b", n).Write(&wire)
		packets.NewControlPacket(packets.Pingresp).Write(&wire)
	}
	long := publishPacket(strings.Repeat("t", topic.MaxLength), limit)
	long.Write(&wire)

	f := admitted(&wire, limit)
	f.protocol.pings = len(sizes)
	for _, n := range sizes {
		got, err := packets.ReadPacket(f)
		if err != nil {
			t.Fatalf("after a payload of %d: %v", n, err)
		}
		p := got.(*packets.PublishPacket)
		if p.TopicName != "a/b" || p.MessageID != 7 {
			t.Errorf("payload of %d: topic %q, id %d", n, p.TopicName, p.MessageID)
		}
		switch {
		case n <= limit && len(p.Payload) != n:
			t.Errorf("payload of %d came as %d", n, len(p.Payload))
		case n > limit && (len(p.Payload) <= limit || len(p.Payload) > topic.MaxLength+limit+1):
			t.Errorf("payload of %d came as %d, want more than %d and bounded", n, len(p.Payload), limit)
		}
		if ping, err := packets.ReadPacket(f); err != nil || ping.(*packets.PingrespPacket) == nil {
			t.Fatalf("after a payload of %d: %v, %v, want a PINGRESP", n, ping, err)
		}
	}
	if got, err := packets.ReadPacket(f); err != nil || len(got.(*packets.PublishPacket).Payload) != limit {
		t.Errorf("longest topic: %v", err)
	}
	if _, err := packets.ReadPacket(f); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

// Messages and acknowledgements that are read here are as paho reads them, and
// all other packets go to the reader.
func TestFrameConnTakes(t *testing.T) {
	var wire bytes.Buffer
	var want []string
	for i := range 200 {
		p := publishPacket(fmt.Sprintf("topic/%d", i%3), i)
		p.Qos, p.MessageID, p.Dup, p.Retain = byte(i%3), uint16(i), i%5 == 0, i%7 == 0
		p.Write(&wire)
		id := p.MessageID
		if p.Qos == 0 {
			id = 0
		}
		want = append(want, fmt.Sprintln(p.TopicName, string(p.Payload), p.Qos, id, p.Dup && p.Qos > 0, p.Retain))
		ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
		ack.MessageID = uint16(firstReceipt - 100 + i)
		ack.Write(&wire)
		if ack.MessageID >= firstReceipt {
			want = append(want, fmt.Sprintln(ack.MessageID))
		}
	}
	var got []string
	f := admitted(&wire, 1000)
	f.protocol.requests = map[uint16]request{}
	for id := range uint16(firstReceipt) {
		f.protocol.requests[id] = request{kind: packetPublish, qos: 1}
	}
	f.onMessage = func(m *Message) {
		got = append(got, fmt.Sprintln(m.Topic, string(m.Payload), m.QoS, m.ID, m.Dup, m.Retained))
		m.Free()
	}
	f.onPuback = func(id uint16) bool {
		if id >= firstReceipt {
			got = append(got, fmt.Sprintln(id))
		}
		return id >= firstReceipt
	}
	for i := 0; ; i++ {
		packet, err := packets.ReadPacket(f)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch p := packet.(type) {
		case *packets.PublishPacket:
			t.Errorf("the reader gets a message of QoS %d", p.Qos)
		case *packets.PubackPacket:
			if p.MessageID >= firstReceipt {
				t.Errorf("the reader gets the acknowledgement %d", p.MessageID)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d of %d were taken, or not as they came", len(got), len(want))
	}
}

// A PUBLISH packet that ends before its topic or identifier does ends the
// connection.
func TestFrameConnMalformed(t *testing.T) {
	for _, wire := range []string{"\x30\x00", "\x30\x01a", "\x30\x03\x00\x02a", "\x32\x03\x00\x01a", "\x32\x04\x00\x01a\x00", "\x30\x09\x00\x01"} {
		f := admitted(strings.NewReader(wire), 10)
		f.onMessage = func(m *Message) { t.Errorf("%x became a message", wire) }
		if _, err := f.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("%x: %v, want that it is malformed", wire, err)
		}
	}
}

// A message of QoS 2 is received in its turn among those of QoS 1. PUBREC acknowledges
// it; PUBREL proves that the broker has read the PUBREC, and is answered with PUBCOMP,
// also if it answers the PUBREC of an earlier connection.
func TestFrameConnExactlyOnce(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	f := newFrameConn(ours, 100, time.Second)
	f.protocol.accepted = true
	taken := make(chan *Message, 3)
	f.onMessage = func(m *Message) { taken <- m }
	go io.Copy(io.Discard, f)
	for i, qos := range []byte{1, 2, 1} {
		p := publishPacket("a/b", 1)
		p.Qos, p.MessageID = qos, uint16(i+1)
		if err := p.Write(theirs); err != nil {
			t.Fatal(err)
		}
	}
	for i, qos := range []byte{1, 2, 1} {
		m := <-taken
		if m.QoS != qos || int(m.ID) != i+1 {
			t.Fatalf("message %d has the identifier %d and QoS %d", i+1, m.ID, m.QoS)
		}
		f.acknowledge(m.ID, m.QoS)
	}
	read := func(kind byte, id uint16) {
		t.Helper()
		p, err := packets.ReadPacket(theirs)
		if err != nil || p.Details().MessageID != id {
			t.Fatalf("%v, %v, want the identifier %d", p, err, id)
		}
		var wire bytes.Buffer
		if p.Write(&wire); wire.Bytes()[0]>>4 != kind {
			t.Fatalf("%v, want a packet of type %d", p, kind)
		}
	}
	read(packetPuback, 1)
	read(packetPubrec, 2)
	read(packetPuback, 3)
	if n := f.acks.confirmed.Load(); n != 0 {
		t.Errorf("%d acknowledgements are known to be read before any answer", n)
	}
	for _, id := range []uint16{2, 77} {
		release := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
		release.MessageID = id
		if err := release.Write(theirs); err != nil {
			t.Fatal(err)
		}
		read(packetPubcomp, id)
		if n := f.acks.confirmed.Load(); n != 2 {
			t.Errorf("after PUBREL %d: %d acknowledgements are known to be read, want 2", id, n)
		}
	}
}

// A receipt is used again once both sides are done with it.
func TestReceipts(t *testing.T) {
	var rs receipts
	a, b := rs.next(), rs.next()
	if a.id != firstReceipt || b.id != firstReceipt+1 {
		t.Fatalf("identifiers %d and %d", a.id, b.id)
	}
	if rs.pubackRead(7) || !rs.pubackRead(b.id) || !rs.pubackRead(b.id) || !rs.pubackRead(b.id+9) {
		t.Error("acknowledgements from the range of publications are theirs, and no other")
	}
	<-b.done
	if c := rs.next(); c.id != firstReceipt+2 || b.err != nil {
		t.Errorf("identifier %d is used again too soon; %v", c.id, b.err)
	}
	b.free()
	if c := rs.next(); c != b {
		t.Errorf("identifier %d, want %d again", c.id, b.id)
	}
	rs.finish(a.id, errBusy)
	if <-a.done; a.err != errBusy {
		t.Errorf("%v, want %v", a.err, errBusy)
	}
}

// Whatever a broker sends, reading ends, and the cut of long packets is the only
// difference.
func FuzzFrameConn(f *testing.F) {
	var wire bytes.Buffer
	publishPacket("a/b", 70000).Write(&wire)
	publishPacket("a/b", 3).Write(&wire)
	f.Add(wire.Bytes())
	f.Add([]byte{0x30, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte{0x30, 0xff, 0xff, 0xff, 0x50, 0x7f})
	f.Add([]byte{0xd0, 0x00, 0x40, 0x02, 0x00, 0x01})
	f.Add([]byte{0x34, 0x06, 0x00, 0x01, 'a', 0x00, 0x05, 'x', 0x62, 0x02, 0x00, 0x05}) // QoS 2, and its PUBREL
	f.Fuzz(func(t *testing.T, wire []byte) {
		taking := admitted(bytes.NewReader(wire), 10)
		taking.onMessage = func(m *Message) {
			if n := len(m.Topic) + len(m.Payload); m.QoS > 2 || n > taking.limit {
				t.Fatalf("QoS %d, %d bytes", m.QoS, n)
			}
		}
		taking.onPuback = func(id uint16) bool { return id%2 == 0 }
		if _, err := io.ReadAll(taking); err == nil && len(taking.rest) > 0 {
			t.Fatal("something is left")
		}
		conn := admitted(bytes.NewReader(wire), 10)
		got, err := io.ReadAll(conn)
		if len(got) > len(wire) {
			t.Fatalf("%d bytes became %d", len(wire), len(got))
		}
		if err == nil && plainWire(wire, conn.limit) && !bytes.Equal(got, wire) {
			t.Fatalf("%x became %x", wire, got)
		}
	})
}

// plainWire reports whether every length in wire is in its shortest form and
// none announces a PUBLISH packet above the limit.
func plainWire(wire []byte, limit int) bool {
	for len(wire) > 1 {
		n, i := 0, 1
		for shift := 0; i < len(wire); i, shift = i+1, shift+7 {
			n |= int(wire[i]&0x7f) << shift
			if wire[i]&0x80 == 0 {
				break
			}
		}
		if i > 1 && i < len(wire) && wire[i] == 0 || wire[0]>>4 == packetPublish && n > limit {
			return false
		}
		if i+1+n > len(wire) {
			return true
		}
		wire = wire[i+1+n:]
	}
	return true
}
