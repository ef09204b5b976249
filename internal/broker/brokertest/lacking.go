package brokertest

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"

	"edge/internal/broker/embedded"
)

// Lacking makes the embedded broker do less than it grants.
type Lacking struct {
	mochi.HookBase
	Undelivered bool // shared subscriptions are granted and receive no message
	Everybody   bool // each member of one is sent each message
	Unretained  bool // retained messages are not sent to subscriptions with a wildcard
	Unmarked    bool // retained messages are sent without their mark
	Unrepeated  bool // messages in flight when a connection ends are lost, and later messages have its identifiers
	Most        int  // retained messages that it keeps; 0: all
	Clients     int  // connections at once; 0: any number
	One         bool // it takes all clients for one

	Late  time.Duration // each packet is sent so much later
	Queue time.Duration // each message that came while a client was away is sent so much later

	lost   atomic.Int32 // messages, with Unrepeated
	passed atomic.Int32 // messages that are being passed on, with Unrepeated
	there  atomic.Int32 // connections
	mu     sync.Mutex
	topics map[string]bool // of those that it keeps, if Most is set
}

func (l *Lacking) ID() string { return "lacking" }

func (l *Lacking) Provides(b byte) bool {
	switch b {
	case mochi.OnSelectSubscribers, mochi.OnSubscribe, mochi.OnPublish, mochi.OnConnect, mochi.OnDisconnect:
		return true
	case mochi.OnPublished, mochi.OnSessionEstablish:
		return l.Unrepeated
	case mochi.OnPacketEncode:
		return l.Unrepeated || l.Unmarked || l.Late > 0 || l.Queue > 0
	}
	return false
}

// OnConnect ends a connection without an answer, as mosquitto does upon one too many.
func (l *Lacking) OnConnect(c *mochi.Client, _ packets.Packet) error {
	if l.One {
		c.ID = "one"
	}
	if l.there.Add(1); l.Clients > 0 && int(l.there.Load()) > l.Clients {
		l.there.Add(-1)
		return packets.ErrServerBusy
	}
	return nil
}

func (l *Lacking) OnDisconnect(c *mochi.Client, _ error, _ bool) {
	if l.there.Add(-1); !l.Unrepeated {
		return
	}
	for _, p := range c.State.Inflight.GetAll(false) {
		c.State.Inflight.Delete(p.PacketID)
		l.lost.Add(1)
	}
}

func (l *Lacking) OnPacketEncode(_ *mochi.Client, p packets.Packet) packets.Packet {
	time.Sleep(l.Late)
	if p.FixedHeader.Type == packets.Publish && p.FixedHeader.Dup { // it came while the client was away
		time.Sleep(l.Queue)
		if l.Unrepeated {
			p.PacketID -= uint16(l.lost.Load())
		}
	}
	if l.Unmarked {
		p.FixedHeader.Retain = false
	}
	return p
}

// OnSessionEstablish waits for the messages that are being passed on: mochi acknowledges a
// message before it passes it on, and could send it to this client before CONNACK.
func (l *Lacking) OnSessionEstablish(*mochi.Client, packets.Packet) {
	for range 1000 {
		if l.passed.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (l *Lacking) OnPublished(*mochi.Client, packets.Packet) { l.passed.Add(-1) }

func (l *Lacking) OnPublish(_ *mochi.Client, p packets.Packet) (packets.Packet, error) {
	if l.Unrepeated {
		l.passed.Add(1)
	}
	if l.Most == 0 || !p.FixedHeader.Retain {
		return p, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(p.Payload) == 0:
		delete(l.topics, p.TopicName)
	case !l.topics[p.TopicName] && len(l.topics) >= l.Most: // it is passed on only, as EMQX does
		p.FixedHeader.Retain = false
	case l.topics == nil:
		l.topics = map[string]bool{p.TopicName: true}
	default:
		l.topics[p.TopicName] = true
	}
	return p, nil
}

func (l *Lacking) OnSelectSubscribers(subs *mochi.Subscribers, _ packets.Packet) *mochi.Subscribers {
	if l.Everybody {
		for _, members := range subs.Shared {
			maps.Copy(subs.Subscriptions, members)
		}
	}
	if l.Everybody || l.Undelivered {
		subs.Shared = nil
	}
	return subs
}

func (l *Lacking) OnSubscribe(_ *mochi.Client, p packets.Packet) packets.Packet {
	const never = 2
	for i := range p.Filters {
		if l.Unretained && strings.ContainsAny(p.Filters[i].Filter, "+#") {
			p.Filters[i].RetainHandling = never
		}
	}
	return p
}

// Start is a broker that lacks something.
func (l *Lacking) Start(t *testing.T, addr string) (stop func()) {
	t.Helper()
	b, err := embedded.Start(addr, embedded.Options{Hooks: []mochi.Hook{new(auth.AllowHook), l}})
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { b.Close() })
}
