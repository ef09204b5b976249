package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/stream/codec"
)

// hostileBroker answers each connection with another conversation that breaks
// the protocol: its seed and the number of the connection choose how.
type hostileBroker struct {
	seed   uint64
	addr   string
	served atomic.Int64
	stop   func()
}

func newHostileBroker(t *testing.T, addr string, seed uint64) *hostileBroker {
	b := &hostileBroker{seed: seed, addr: addr}
	var l net.Listener
	eventually(t, "the port to be free", func() (free bool) {
		var err error
		l, err = net.Listen("tcp", addr)
		return err == nil
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := uint64(0); ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				h := &hostileTalk{conn: conn, rng: rand.New(rand.NewPCG(seed, n))}
				h.run()
				b.served.Add(1)
			})
		}
	})
	b.stop = sync.OnceFunc(func() {
		l.Close()
		wg.Wait()
	})
	t.Cleanup(b.stop)
	return b
}

// hostileTalk is one conversation.
type hostileTalk struct {
	conn net.Conn
	rng  *rand.Rand
	odds float64 // of a packet to be tampered with
}

// run answers as a broker does, with some packets tampered with, until the client
// has had enough or sends nothing for a while.
func (h *hostileTalk) run() {
	defer h.end()
	const silence = 50 * time.Millisecond
	switch h.odds = []float64{0.02, 0.1, 0.3, 1}[h.rng.IntN(4)]; h.rng.IntN(20) {
	case 0: // before the client has sent anything
		h.conn.Write(h.noise(1 + h.rng.IntN(300)))
	case 1:
		h.send(h.burst()...)
	case 2: // nothing, and the end
		return
	}
	for {
		h.conn.SetReadDeadline(time.Now().Add(silence))
		packet, err := packets.ReadPacket(h.conn)
		if err != nil {
			return
		}
		var answers []packets.ControlPacket
		switch p := packet.(type) {
		case *packets.ConnectPacket:
			answers = append(answers, packets.NewControlPacket(packets.Connack))
			if h.rng.IntN(4) == 0 { // what an earlier connection left
				answers = append(answers, h.burst()...)
			}
		case *packets.SubscribePacket:
			a := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
			a.MessageID, a.ReturnCodes = p.MessageID, make([]byte, len(p.Topics))
			if h.rng.IntN(4) == 0 {
				a.ReturnCodes = make([]byte, h.rng.IntN(2*len(p.Topics)+2))
			}
			answers = append(append(answers, a), h.burst()...)
		case *packets.UnsubscribePacket:
			a := packets.NewControlPacket(packets.Unsuback).(*packets.UnsubackPacket)
			a.MessageID = p.MessageID
			answers = append(answers, a)
		case *packets.PublishPacket:
			if p.Qos == 1 {
				a := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
				a.MessageID = p.MessageID
				answers = append(answers, a)
			}
		case *packets.PubrecPacket:
			a := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
			a.MessageID = p.MessageID
			answers = append(answers, a)
		case *packets.PingreqPacket:
			answers = append(answers, packets.NewControlPacket(packets.Pingresp))
		}
		if h.send(answers...) != nil {
			return
		}
	}
}

// end closes the connection in one of the ways that there are.
func (h *hostileTalk) end() {
	tcp := h.conn.(*net.TCPConn)
	switch h.rng.IntN(3) {
	case 0:
		tcp.SetLinger(0) // a reset
	case 1:
		tcp.CloseWrite()
		tcp.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		io.Copy(io.Discard, tcp)
	}
	h.conn.Close()
}

// burst returns messages, some of which no broker should let pass.
func (h *hostileTalk) burst() (all []packets.ControlPacket) {
	topics := []string{"factory/p7/vibration", "factory/p7/vibration", "edge/n1/bearing/label", "a/b", "", "factory/+/vibration", "factory/\xff/vibration", "\x00", strings.Repeat("t", 60000)}
	for range h.rng.IntN(6) {
		p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
		p.TopicName, p.Qos, p.MessageID = topics[h.rng.IntN(len(topics))], byte(h.rng.IntN(3)), uint16(1+h.rng.IntN(20))
		p.Dup, p.Retain = h.rng.IntN(3) == 0, h.rng.IntN(5) == 0
		switch h.rng.IntN(4) {
		case 0:
			p.Payload = h.noise(h.rng.IntN(200))
		case 1:
			p.Payload = make([]byte, h.rng.IntN(1<<20))
		default:
			p.Payload = fmt.Appendf(nil, `{"id":"h%d","features":[1,2],"label":"ok"}`, h.rng.IntN(100))
		}
		all = append(all, p)
	}
	return all
}

// send writes packets, tampered with as the odds are.
func (h *hostileTalk) send(all ...packets.ControlPacket) error {
	h.conn.SetWriteDeadline(time.Now().Add(time.Second))
	for _, p := range all {
		var wire bytes.Buffer
		p.Write(&wire)
		out := wire.Bytes()
		if h.rng.Float64() < h.odds {
			out = h.tamper(out)
		}
		if _, err := h.conn.Write(out); err != nil {
			return err
		}
	}
	return nil
}

func (h *hostileTalk) tamper(wire []byte) []byte {
	at := func() int { return h.rng.IntN(min(len(wire), 12)) } // where a packet's fields are
	switch h.rng.IntN(11) {
	case 0, 1:
		wire[at()] ^= 1 << h.rng.IntN(8)
	case 2:
		wire[at()] = byte(h.rng.Uint32())
	case 3: // ends too early
		return wire[:at()]
	case 4: // announces 256 MB, and more than it needs comes
		return append([]byte{wire[0], 0xff, 0xff, 0xff, 0x7f}, make([]byte, h.rng.IntN(1<<20))...)
	case 5:
		return append([]byte{wire[0], 0xff, 0xff, 0xff, 0xff, 0x7f}, wire[1:]...)
	case 6: // twice
		return append(wire, wire...)
	case 7: // not at all
		return nil
	case 8: // another type
		wire[0] = wire[0]&15 | byte(h.rng.IntN(16))<<4
	case 9: // a longer one
		if wire[1] < 100 {
			wire[1] += byte(1 + h.rng.IntN(20))
		}
		return append(wire, h.noise(20)...)
	case 10:
		return append(wire, h.noise(1+h.rng.IntN(100))...)
	}
	return wire
}

func (h *hostileTalk) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(h.rng.Uint32())
	}
	return b
}

// testHostileBroker lets a node meet a broker that breaks the protocol on each
// of n connections. The node survives within its memory, leaves no goroutine
// behind, and serves an honest broker afterwards. EDGE_HOSTILE_SEED chooses
// other conversations.
func testHostileBroker(t *testing.T, n int64) {
	seed := uint64(1)
	if s := os.Getenv("EDGE_HOSTILE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	honest := newMochi(t, nil, nil)
	honest.start(t)
	d := startNode(t, honest, newFakeJournal(), nil, func(node *Node) { node.client.Config.MaxReconnectInterval = time.Millisecond }).ready(t)
	goroutines := runtime.NumGoroutine()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	honest.stop()

	hostile := newHostileBroker(t, honest.addr, seed)
	var heap uint64
	for last, at := int64(-1), time.Now(); hostile.served.Load() < n; time.Sleep(10 * time.Millisecond) {
		if served := hostile.served.Load(); served > last {
			last, at = served, time.Now()
		} else if time.Since(at) > patience {
			t.Fatalf("seed %d: no connection for %v after %d", seed, patience, served)
		}
		runtime.ReadMemStats(&now)
		heap = max(heap, now.HeapSys)
	}
	hostile.stop()
	s := d.Stats()
	t.Logf("seed %d: %d connections, %d protocol errors, %d other failures to connect or losses, %d messages, %d refused for their topic, heap %d MiB more, %d goroutines before and %d after",
		seed, hostile.served.Load(), s.ProtocolErrors, s.ConnectFailures+s.Reconnects-s.ProtocolErrors, s.Received, s.Rejected[codec.BadTopic], (heap-min(heap, before.HeapSys))>>20, goroutines, runtime.NumGoroutine())
	if most := before.HeapSys + 128<<20; heap > most {
		t.Errorf("seed %d: the heap reached %d MiB, %d before", seed, heap>>20, before.HeapSys>>20)
	}
	if s.ProtocolErrors == 0 || s.Rejected[codec.BadTopic] == 0 || s.Learned == 0 {
		t.Errorf("seed %d: the conversations are too shallow: %+v", seed, s)
	}

	honest.start(t)
	p, i := newProbe(t, honest), 0
	eventually(t, "20 more to be learnt", func() bool { // the node may not be subscribed yet
		p.send("factory/p7/vibration", fmt.Sprintf(`{"id":"honest-%d","features":[1,2],"label":"ok"}`, i))
		i++
		return d.Stats().Learned >= s.Learned+20
	})
	eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines+clientGoroutines })
	if err := d.stop(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("stop: %v", err)
	}
}

// clientGoroutines are those of the test's own client, of its broker's side of
// it, and of a connection that has just been made.
const clientGoroutines = 16

func TestHostileBroker(t *testing.T) { testHostileBroker(t, 300) }

// A broker that breaks the protocol in the same way on each connection is named
// once, in the log and as an event, and not taken for a clash of client ids. When
// it keeps to the protocol the node goes on.
func TestProtocolErrorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	honest := newMochi(t, nil, nil)
	l, err := net.Listen("tcp", honest.addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for packet := packets.ControlPacket(nil); err == nil; {
				if packet, err = packets.ReadPacket(conn); err != nil {
					break
				}
				switch p := packet.(type) {
				case *packets.ConnectPacket:
					err = packets.NewControlPacket(packets.Connack).Write(conn)
				case *packets.SubscribePacket:
					a := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
					a.MessageID, a.ReturnCodes = p.MessageID, make([]byte, len(p.Topics)+1)
					err = a.Write(conn)
				}
			}
			conn.Close()
		}
	})
	var events atomic.Int64
	d := startNode(t, honest, newFakeJournal(), nil, func(node *Node) {
		node.client.Config.MaxReconnectInterval = time.Millisecond
		node.client.Event = func(kind, _ string) {
			if kind == "protocol_error" {
				events.Add(1)
			}
		}
	})
	eventually(t, "some connections", func() bool { return d.Stats().ProtocolErrors >= 20 })
	log := string(d.log.tail(1 << 20))
	for _, line := range []string{"connection to the broker lost", "the broker violates MQTT 3.1.1"} {
		if n := strings.Count(log, line); n != 1 {
			t.Errorf("%q is in the log %d times, want once:\n%s", line, n, log)
		}
	}
	if strings.Contains(log, "client_id?") {
		t.Errorf("the log speaks of another client:\n%s", log)
	}
	if n := events.Load(); n != 1 {
		t.Errorf("%d events, want one", n)
	}
	l.Close()
	wg.Wait()
	honest.start(t)
	eventually(t, "the log to name the change", func() bool { return strings.Contains(string(d.log.tail(1<<20)), "this connection lasts") })
}
