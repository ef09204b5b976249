package mqtt

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/stream/field"
)

// linked is a connection with a network that takes everything.
func linked() *Conn {
	return &Conn{
		client: NewClient(Options{Counters: new(Counters), CursorTopic: "edge/n1/cursor"}), lost: make(chan struct{}), cursor: newCursorState(nil),
		net: newFrameConn(sink{Reader: strings.NewReader("")}, 100, time.Second),
	}
}

// A large publication is on its way until the broker has acknowledged it, or has answered a ping behind it.
func TestUploading(t *testing.T) {
	a := &linked().net.acks
	want := func(when string, uploading bool) {
		t.Helper()
		if a.uploading() != uploading {
			t.Errorf("%s: uploading %v", when, !uploading)
		}
	}
	a.pingWritten()
	a.publishWritten(40_000, true)
	a.pingWritten()
	a.publishWritten(40_001, true)
	a.pingWritten()
	a.pongRead()
	a.pongRead()
	want("the first one is read", true)
	a.pubackRead(40_000)
	want("the first one is acknowledged", true)
	a.pongRead()
	want("both are read", false)
	a.publishWritten(40_002, true)
	want("another one", true)
	a.pubackRead(40_002)
	want("it is acknowledged", false)
}

// An answer of the broker proves that it has read all earlier packets.
func TestAcks(t *testing.T) {
	a := &linked().net.acks
	want := func(n uint64) {
		t.Helper()
		if got := a.confirmed.Load(); got != n {
			t.Errorf("%d confirmed, want %d", got, n)
		}
	}
	a.ackWritten()
	a.publishWritten(40_000, false)
	a.ackWritten()
	a.pingWritten()
	a.ackWritten()
	a.pubackRead(1) // never left
	want(0)
	a.pongRead()
	want(2)
	a.pubackRead(40_000)
	want(2)
	a.publishWritten(40_000, false)
	a.pubackRead(40_000)
	want(3)
	if a.position() != 3 {
		t.Errorf("position %d, want 3", a.position())
	}
	a.ackWritten()
	a.pingWritten()
	a.ackWritten()
	a.pingWritten()
	a.pongRead() // to the first ping
	want(4)
	a.pongRead()
	want(5)
	a.pongRead() // to none
	a.prove(7)
	a.pingWritten()
	a.pingWritten()
	if first, second := a.pongRead(), a.pongRead(); first != 7 || second != 0 {
		t.Errorf("the answers prove %d and %d, want 7 and none", first, second)
	}
}

// A connection that is being closed takes no acknowledgement any more, and
// reports that those it was given may not have been written.
func TestWrittenUntilClosed(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go io.Copy(io.Discard, far)
	conn := linked()
	conn.net = newFrameConn(near, 1000, time.Second)
	conn.net.acknowledge(1, 1)
	conn.net.acks.pingWritten()
	if n := conn.Written(); n != 1 {
		t.Errorf("%d acknowledgements were written, want 1", n)
	}
	conn.net.Close()
	conn.net.acknowledge(2, 1)
	conn.net.acks.pongRead()
	if written, confirmed := conn.Written(), conn.Confirmed(); written != 0 || confirmed != 1 {
		t.Errorf("%d acknowledgements may be counted on after the end, and %d were read, want 0 and 1", written, confirmed)
	}
}

// An answer is waited for as long as bytes arrive, and then no longer than quiet.
func TestAwaits(t *testing.T) {
	for name, c := range map[string]struct {
		arrives time.Duration // bytes do, once a second
		answer  time.Duration
		want    bool
		ends    time.Duration
	}{
		"at once":                     {0, time.Second, true, time.Second},
		"nothing arrives":             {0, time.Minute, false, 2 * time.Second},
		"behind much else":            {20 * time.Second, 19500 * time.Millisecond, true, 19500 * time.Millisecond},
		"what arrives ends":           {10500 * time.Millisecond, time.Hour, false, 14 * time.Second},
		"for ever, without an answer": {time.Hour, time.Hour, false, time.Minute},
	} {
		bubble(name, t, func(t *testing.T) {
			conn, answer, began := linked(), make(chan struct{}), time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer time.Sleep(2 * time.Second) // until nothing arrives any more
			defer cancel()
			go func() {
				for time.Since(began) < c.arrives && ctx.Err() == nil {
					time.Sleep(time.Second - time.Millisecond)
					conn.net.arrived.Add(1)
					time.Sleep(time.Millisecond)
				}
			}()
			late := time.AfterFunc(c.answer, func() { close(answer) })
			defer late.Stop()
			got := conn.await(ctx, answer, 2*time.Second)
			if took := time.Since(began); got != c.want || took != c.ends {
				t.Errorf("%v after %v, want %v after %v", got, took, c.want, c.ends)
			}
		})
	}
}

// A reconnect for the sake of redelivery waits until the broker has read the
// acknowledgements.
func TestAllAcknowledgementsAreRead(t *testing.T) {
	a := &linked().net.acks
	a.ackWritten()
	a.publishWritten(40_000, false)
	a.ackWritten()
	read := a.allRead()
	a.pingWritten()
	if a.pubackRead(40_000); isClosed(read) {
		t.Error("one of two is enough")
	}
	if a.pongRead(); !isClosed(read) {
		t.Error("the answer to a later ping is not enough")
	}
	if !isClosed(a.allRead()) {
		t.Error("what was read already is waited for")
	}
}

// A packet that arrives after a ping shows that the broker is alive: the answer may be
// behind much else. paho, which sends no pings, gets no answers.
func TestPacketAnswersPing(t *testing.T) {
	for name, packet := range map[string]string{"message": "\x30\x04\x00\x01ax", "PINGRESP": "\xd0\x00"} {
		f := conversation(t, strings.NewReader("\x20\x02\x00\x00"+packet), 100)
		f.onMessage = func(*Message) {}
		buf := make([]byte, 10)
		io.ReadFull(f, buf[:4]) // CONNACK
		for len(f.alive) > 0 {
			<-f.alive
		}
		f.ping()
		if n, err := f.Read(buf); err != io.EOF {
			t.Errorf("%s: paho read % x, %v", name, buf[:n], err)
		}
		if len(f.alive) == 0 || f.pinged.Load() {
			t.Errorf("%s: the ping is not answered", name)
		}
	}
}

// A broker that answers pings keeps its connection, at the interval that CONNECT
// announced; one that falls silent loses it.
func TestKeepAlive(t *testing.T) {
	for name, c := range map[string]struct {
		answers int
		every   time.Duration
		upload  time.Duration // after the connection began a large publication is acknowledged
		bytes   time.Duration // after that, bytes of a large message come
	}{
		"never answers":                       {0, 30 * time.Second, 0, 0},
		"falls silent":                        {3, 30 * time.Second, 0, 0},
		"more than one ping within the limit": {3, time.Second, 0, 0},
		"a large publication is on its way":   {0, 30 * time.Second, 75 * time.Second, 0},
		"a large message is on its way":       {0, 30 * time.Second, 0, 45 * time.Second},
	} {
		answers, every := c.answers, c.every
		bubble(name, t, func(t *testing.T) {
			near, far := net.Pipe()
			conn := linked()
			conn.client.Config.Keepalive, conn.client.PingTimeout = every, 10*time.Second
			conn.net, conn.paho = newFrameConn(near, 1000, time.Second), paho.NewClient(paho.NewClientOptions())
			conn.net.onMessage, conn.net.keepalive = func(*Message) {}, uint16(every/time.Second)
			began, pings := time.Now(), 0
			go func() { // the broker
				for {
					p, err := packets.ReadPacket(far)
					if err != nil {
						return
					}
					switch p := p.(type) {
					case *packets.ConnectPacket:
						if time.Duration(p.Keepalive)*time.Second != every || p.ClientIdentifier != "n1" {
							t.Errorf("it announces %v", p)
						}
						far.Write([]byte{packetConnack << 4, 2, 0, 0})
					case *packets.PingreqPacket:
						if pings++; time.Since(began) != time.Duration(pings)*every {
							t.Errorf("ping %d after %v", pings, time.Since(began))
						}
						if pings <= answers {
							far.Write([]byte{packetPingresp << 4, 0})
						}
					}
				}
			}()
			go io.Copy(io.Discard, conn.net)
			hello := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
			hello.ProtocolName, hello.ProtocolVersion, hello.ClientIdentifier = "MQTT", 4, "n1"
			hello.Write(conn.net)
			want := time.Duration(answers+1)*every + 10*time.Second
			if c.upload > 0 {
				conn.net.acks.publishWritten(40_000, true)
				time.AfterFunc(c.upload, func() { conn.net.acks.pubackRead(40_000) })
				want = 80 * time.Second // of those after the first wait, the first one behind the acknowledgement
			}
			if c.bytes > 0 { // one in each second
				want = 60 * time.Second
				go func() {
					time.Sleep(every - time.Second) // before the ping
					far.Write([]byte{packetPublish << 4, 100})
					for time.Since(began) < c.bytes {
						far.Write([]byte{0})
						time.Sleep(time.Second)
					}
				}()
			}
			conn.keepAlive(t.Context())
			if took := time.Since(began); took != want || conn.err == nil {
				t.Errorf("it ends after %v, want %v: %v", took, want, conn.err)
			}
			near.Close()
			far.Close()
		})
	}
}

// The cursor is awaited while the link is silent, and 2 s where the broker answers.
func TestAwaitsTheCursor(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		cursor, bytes time.Duration // after the SUBACK
		found         bool
		known         time.Duration
	}{
		"at once":                        {0, 0, true, 0},
		"soon after the answer":          {1500 * time.Millisecond, time.Millisecond, true, 1500 * time.Millisecond},
		"a broker that keeps none":       {never, time.Millisecond, false, 2 * time.Second},
		"a link that is silent at first": {25 * time.Second, 25 * time.Second, true, 25 * time.Second},
		"none, and a silent link":        {never, 25 * time.Second, false, 26 * time.Second},
		"nothing at all":                 {never, never, false, time.Minute},
	} {
		bubble(name, t, func(t *testing.T) {
			conn, began := linked(), time.Now()
			defer time.AfterFunc(c.bytes, func() { conn.net.arrived.Add(2) }).Stop()
			defer time.AfterFunc(c.cursor, func() { conn.cursor.setPayload([]byte("7")) }).Stop()
			conn.awaitCursor(t.Context())
			if took := time.Since(began); conn.cursor.Found != c.found || took != c.known {
				t.Errorf("found %v after %v, want %v after %v", conn.cursor.Found, took, c.found, c.known)
			}
		})
	}
}

// A cursor of 0 is that of no commit. It does not show which messages come again.
func TestUnknownCursor(t *testing.T) {
	for payload, want := range map[string]bool{"0": false, "1": true, "7": true, "7 3 0": true} {
		c := newCursorState(nil)
		c.setPayload([]byte(payload))
		if c.Found != want || c.Fresh {
			t.Errorf("cursor %s: found %v, fresh %v", payload, c.Found, c.Fresh)
		}
	}
}

// A cursor is read as it was published, and so is that of an earlier program.
func TestPayloadOfACursor(t *testing.T) {
	for _, c := range []Cursor{{}, {Found: true, Sequence: 7, Before: 3}, {Found: true, Sequence: 9 + SessionGap, Before: 4 + SessionGap, Session: SessionGap}} {
		payload := string(c.append(nil))
		if got, ok := parseCursor(payload); !ok || got != c {
			t.Errorf("%q: %+v, want %+v", payload, got, c)
		}
	}
	if got, ok := parseCursor("1048583"); !ok || got != (Cursor{Found: true, Sequence: 7 + SessionGap, Session: 8}) {
		t.Errorf("of an earlier program: %+v", got)
	}
	for _, payload := range []string{"", "-1", "x", "1 2 x", "1 2 3 4", "4611686018427387904"} {
		if got, ok := parseCursor(payload); ok {
			t.Errorf("%q: %+v", payload, got)
		}
	}
}

// A cursor that was found over a connection also is that of the next ones, which a broker that has lost
// it may have begun: nothing else says that the acknowledgements before it were read.
func TestCursorOfAnEarlierConnection(t *testing.T) {
	var c *cursorState
	for i, step := range []struct {
		payload    string // "": the connection ends before
		yes, never uint64
	}{{"", 0, 1}, {"7 3 0", 5, 3}, {"", 0, 5}, {"0", 7, 8}, {"12 10 0", 11, 10}, {"0", 12, 7}} {
		c = newCursorState(c)
		c.setPayload([]byte(step.payload))
		if step.yes > 0 && !c.Proves(step.yes) || c.Proves(step.never) {
			t.Errorf("connection %d: %+v, want one that proves %d and not %d", i, c.Cursor, step.yes, step.never)
		}
	}
}

// A session that began after all commits keeps a cursor beyond them.
func TestCursorOfASessionThatBegins(t *testing.T) {
	c := newCursorState(nil)
	c.setNewSession(3)
	if !c.Fresh || c.Cursor.Sequence <= 3 {
		t.Errorf("%+v", c.Cursor)
	}
}

// again reads the same bytes without end.
type again struct {
	wire []byte
	at   int
}

func (r *again) Read(p []byte) (n int, err error) {
	n = copy(p, r.wire[r.at:])
	r.at = (r.at + n) % len(r.wire)
	return n, nil
}

// sink is a network that takes everything.
type sink struct {
	net.Conn
	io.Reader
}

func (s sink) Read(p []byte) (int, error)     { return s.Reader.Read(p) }
func (sink) Write(p []byte) (int, error)      { return len(p), nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) Close() error                     { return nil }

// A message is read, acknowledged and answered without an allocation.
func TestMessagesWithoutAllocations(t *testing.T) {
	var packet wire
	p := publishPacket("factory/p7/vibration", 0)
	p.Payload = []byte("[0.25,1]")
	p.Write(&packet)
	queue := NewQueue(10, field.MiB, MessageSize)
	c := NewClient(Options{Counters: new(Counters), Dropped: new(atomic.Uint64), Queue: queue})
	out := NewOutbox(DefaultOutboxConfig(), c.Counters)
	conn := &Conn{client: c, lost: make(chan struct{}), redeliver: make(chan struct{}, 1)}
	conn.net = newFrameConn(sink{Reader: &again{wire: packet}}, 1000, time.Second)
	conn.net.protocol.accepted = true
	conn.net.onMessage, conn.net.onPuback = conn.receive, conn.receipts.pubackRead
	carry := func() {
		for queue.Len() == 0 {
			if err := conn.net.next(); err != nil {
				t.Fatal(err)
			}
		}
		msg, _ := queue.Pop()
		answer := out.New()
		answer.Topic, answer.QoS, answer.Payload = msg.Topic, 1, append(answer.Payload, msg.Payload...)
		out.Push(answer)
		msg.Ack()
		msg.Free()
		answer, _ = out.Pop()
		sent := conn.publish(answer, false)
		conn.receipts.pubackRead(firstReceipt)
		<-sent.done
		sent.free()
		answer.Free()
	}
	carry()
	if n := testing.AllocsPerRun(200, carry); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// wire holds the written bytes.
type wire []byte

func (w *wire) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
