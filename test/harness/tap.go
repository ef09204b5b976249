package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/tidwall/gjson"
)

// Ahead is the number of samples that a publisher may send before the daemon
// acknowledges them: mosquitto keeps 1000 messages for a client that is away, and
// drops the rest.
const Ahead = 500

// Tap is a proxy between a daemon and its broker. It parses the packets that pass
// and records the samples that the daemon acknowledges; a sample's id is its number.
type Tap struct {
	listener net.Listener
	broker   string
	all      sync.WaitGroup
	flow     sync.RWMutex // locked while no byte may pass

	mu     sync.Mutex
	conns  map[net.Conn]bool
	open   int // connections being served
	quiet  *sync.Cond
	suback bool
	upTo   int          // number of the last sample acknowledged: acknowledgements come in order
	total  int          // acknowledgements
	acked  map[int]bool // samples that were acknowledged; nil: not recorded
	err    error

	password string // in the last CONNECT packet
}

// NewTap listens on a free port until the end of the test.
func NewTap(t testing.TB, broker string) *Tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Tap{listener: l, broker: broker, conns: map[net.Conn]bool{}}
	p.quiet = sync.NewCond(&p.mu)
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns[c] = true
			p.open++
			p.mu.Unlock()
			p.all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// URL returns the address at which the daemon connects to the tap.
func (p *Tap) URL() string { return "mqtt://" + p.listener.Addr().String() }

// Password returns the password of the last connection.
func (p *Tap) Password() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.password
}

func (p *Tap) serve(daemon net.Conn) {
	defer func() {
		daemon.Close()
		p.mu.Lock()
		delete(p.conns, daemon)
		p.open--
		p.quiet.Broadcast()
		p.mu.Unlock()
	}()
	broker, err := net.Dial("tcp", p.broker)
	if err != nil {
		return
	}
	// The numbers of the samples in flight by packet identifier, 0 for a sample
	// without a number: mosquitto 2.0.11 reuses an identifier in flight where more
	// than 65,535 messages wait. Guarded by p.mu.
	samples := map[uint16][]int{}
	streams := map[uint16]bool{} // subscriptions that are not of the daemon's own topics alone, by packet identifier
	var down sync.WaitGroup
	down.Go(func() {
		p.follow(daemon, broker, func(packet packets.ControlPacket) {
			switch m := packet.(type) {
			case *packets.SubackPacket:
				p.suback = p.suback || streams[m.MessageID]
			case *packets.PublishPacket:
				samples[m.MessageID] = append(samples[m.MessageID], int(gjson.GetBytes(m.Payload, "id").Int()))
			}
		})
		daemon.Close()
	})
	// The bytes that a killed daemon has written are still read to their end.
	p.follow(broker, daemon, func(packet packets.ControlPacket) {
		switch m := packet.(type) {
		case *packets.ConnectPacket:
			p.password = string(m.Password)
		case *packets.SubscribePacket:
			streams[m.MessageID] = slices.ContainsFunc(m.Topics, func(filter string) bool { return !strings.HasPrefix(filter, "edge/") })
		}
		m, ok := packet.(*packets.PubackPacket)
		if !ok {
			return
		}
		n, under := 0, samples[m.MessageID]
		if len(under) > 0 {
			n, samples[m.MessageID] = under[0], under[1:]
		}
		if len(under) == 0 || n > p.upTo+1 {
			p.err = errors.Join(p.err, fmt.Errorf("message %d, sample %d, is acknowledged after sample %d", m.MessageID, n, p.upTo))
		}
		p.upTo, p.total = max(p.upTo, n), p.total+1
		if p.acked != nil {
			p.acked[n] = true
		}
	})
	broker.Close()
	down.Wait()
}

// follow copies packets until one end closes. It calls see before it forwards a
// packet, since the answer may come at once.
func (p *Tap) follow(to, from net.Conn, see func(packets.ControlPacket)) {
	var raw bytes.Buffer
	for r := io.TeeReader(from, &raw); ; raw.Reset() {
		packet, err := packets.ReadPacket(r)
		if err != nil {
			return
		}
		p.mu.Lock()
		see(packet)
		p.mu.Unlock()
		p.flow.RLock()
		to.Write(raw.Bytes()) // a closed end reads no more; the other is still read to its end
		p.flow.RUnlock()
	}
}

// Cut closes all connections.
func (p *Tap) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Settle waits until every connection that has closed was read to its end.
func (p *Tap) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open > 0 {
		p.quiet.Wait()
	}
}

// Acknowledged returns the number of the last sample that was acknowledged.
func (p *Tap) Acknowledged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upTo
}

// Record lets the tap remember the acknowledged samples, for WasAcknowledged: a broker may
// send them in any order.
func (p *Tap) Record() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acked = map[int]bool{}
}

// WasAcknowledged reports whether a sample was acknowledged since Record.
func (p *Tap) WasAcknowledged(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked[n]
}

// Acks counts the acknowledgements, those of repeated messages included.
func (p *Tap) Acks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// Subscribed reports whether the broker has confirmed a subscription.
func (p *Tap) Subscribed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suback
}

// Err returns an error if a sample was acknowledged out of order.
func (p *Tap) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Stall forwards no byte for a while; all connections stay open.
func (p *Tap) Stall(d time.Duration) {
	p.flow.Lock()
	defer p.flow.Unlock()
	time.Sleep(d)
}
