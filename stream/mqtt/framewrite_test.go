package mqtt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Publications and acknowledgements are on the wire as paho would write them, and a ping behind large publications.
func TestFrameConnPublishes(t *testing.T) {
	slow := newSlowConn()
	f := newFrameConn(slow, 100, time.Second)
	var want bytes.Buffer
	for i := range 100 {
		p := publishPacket("a/b", i*i)
		p.Qos, p.MessageID, p.Retain = byte(i%2), uint16(i), i%3 == 0
		p.Write(&want)
		if p.Qos > 0 && len(p.TopicName)+len(p.Payload) >= largePublication {
			packets.NewControlPacket(packets.Pingreq).Write(&want)
		}
		if err := f.publish(&Publication{Topic: "a/b", Payload: p.Payload, QoS: p.Qos, Retained: p.Retain}, p.MessageID); i < 50 && err != nil {
			t.Fatal(err)
		}
		ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
		ack.MessageID = uint16(i)
		ack.Write(&want)
		f.acknowledge(ack.MessageID, 1)
		slow.let <- nil
		for len(slow.began) > 0 {
			<-slow.began
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Join(slow.wire, nil); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes on the wire, want %d, or others", len(got), want.Len())
	}
}

// A network that accepts no data delays no caller for long.
func TestFrameConnBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFrameConn(newSlowConn(), 100, time.Hour)
		defer f.Close()
		large := &Publication{Topic: "a/b", Payload: make([]byte, maxUnwritten)}
		for range 2 { // on its way, and waiting
			if err := f.publish(large, 0); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		began := time.Now()
		if err := f.publish(large, 0); err != errBusy || time.Since(began) != publishWait {
			t.Errorf("publish = %v after %v, want %v after %v", err, time.Since(began), errBusy, publishWait)
		}
		f.acknowledge(1, 1)
		if time.Since(began) != publishWait {
			t.Error("an acknowledgement waits")
		}
	})
}

// Read returns the error of writing: paho ignores the end of a connection that was
// closed at this side.
func TestFrameConnReadTellsWhyWritingFailed(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	f := newFrameConn(ours, 100, time.Millisecond)
	f.acknowledge(1, 1)
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read = %v, want that a write took too long", err)
	}
}

// slowConn is a network that takes a write when it is let.
type slowConn struct {
	net.Conn
	began  chan struct{} // a write waits
	let    chan error    // ends it
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	wire   [][]byte
}

func newSlowConn() *slowConn {
	return &slowConn{began: make(chan struct{}, 100), let: make(chan error, 100), closed: make(chan struct{})}
}

func (c *slowConn) SetWriteDeadline(time.Time) error { return nil }

func (c *slowConn) Close() error { c.once.Do(func() { close(c.closed) }); return nil }

func (c *slowConn) Write(p []byte) (int, error) {
	c.began <- struct{}{}
	select {
	case err := <-c.let:
		if err != nil {
			return 0, err
		}
	case <-c.closed:
		return 0, net.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire = append(c.wire, bytes.Clone(p))
	return len(p), nil
}

// Bytes that are written while the network is busy leave in one write, in order, and
// before the connection is closed.
func TestFrameConnWrite(t *testing.T) {
	slow := newSlowConn()
	f := newFrameConn(slow, 100, time.Second)
	var want []byte
	put := func(i int) {
		packet := fmt.Appendf([]byte{packetPublish << 4, 10, 0, 1, 'a'}, "%7d", i)
		want = append(want, packet...)
		if n, err := f.Write(packet); n != len(packet) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	put(0)
	<-slow.began
	for i := range 100 {
		put(i + 1)
	}
	slow.let <- nil
	slow.let <- nil
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Join(slow.wire, nil); !bytes.Equal(got, want) {
		t.Errorf("the network has %q, want %q", got, want)
	}
	if len(slow.wire) != 2 {
		t.Errorf("%d writes to the network, want 2", len(slow.wire))
	}
	if _, err := f.Write([]byte{packetPingreq << 4, 0}); err == nil {
		t.Error("a closed connection takes a packet")
	}
}

// The bytes that wait for the network are bounded; an error of the network ends the
// connection and is returned by a later write.
func TestFrameConnWriteFails(t *testing.T) {
	slow := newSlowConn()
	f := newFrameConn(slow, 100, time.Second)
	block := make([]byte, maxUnwritten)
	for range 2 {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
		<-slow.began
		slow.let <- nil
	}
	f.Write(block)
	<-slow.began
	f.Write(block)
	refused := make(chan error)
	go func() {
		_, err := f.Write(block) // which has to wait
		refused <- err
	}()
	broken := errors.New("broken")
	slow.let <- broken
	if err := <-refused; !errors.Is(err, broken) {
		t.Errorf("Write = %v, want %v", err, broken)
	}
	<-slow.closed
}

// A network that takes nothing does not hold up the end of a connection.
func TestFrameConnCloseStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newSlowConn()
		f := newFrameConn(slow, 100, time.Second)
		f.Write([]byte{packetPingreq << 4, 0})
		began := time.Now()
		f.Close()
		if took := time.Since(began); took != closeFlush {
			t.Errorf("Close takes %v, want %v", took, closeFlush)
		}
	})
}

// A broker that sends while the connection is closed gets all that was written
// before, and then its end, not a reset.
func TestFrameConnCloseLingers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	type result struct {
		got []byte
		err error
	}
	broker := make(chan result, 1)
	unread := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			broker <- result{nil, err}
			return
		}
		defer conn.Close()
		conn.Write(bytes.Repeat([]byte{'x'}, 5000)) // unread when Close is called
		close(unread)
		first := make([]byte, 4)
		if _, err := io.ReadFull(conn, first); err != nil {
			broker <- result{nil, err}
			return
		}
		_, refused := conn.Write(bytes.Repeat([]byte{'y'}, 5000))
		rest, err := io.ReadAll(conn)
		broker <- result{append(first, rest...), errors.Join(refused, err)}
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	<-unread
	f := newFrameConn(nc, 100, time.Second)
	const last = "\x40\x02\x00\x01\x40\x02\x00\x02\xe0\x00" // acknowledgements, DISCONNECT
	if _, err := f.Write([]byte(last)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if r := <-broker; r.err != nil || string(r.got) != last {
		t.Errorf("the broker gets %q and %v, want %q", r.got, r.err, last)
	}
	if n, err := f.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes come after the end", n)
	}
}
