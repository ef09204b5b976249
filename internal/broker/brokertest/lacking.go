package brokertest

import (
	"maps"
	"strings"
	"sync"
	"testing"

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
}

func (h *Lacking) ID() string { return "lacking" }

func (h *Lacking) Provides(b byte) bool {
	return b == mochi.OnSelectSubscribers || b == mochi.OnSubscribe
}

func (h *Lacking) OnSelectSubscribers(subs *mochi.Subscribers, _ packets.Packet) *mochi.Subscribers {
	if h.Everybody {
		for _, members := range subs.Shared {
			maps.Copy(subs.Subscriptions, members)
		}
	}
	if h.Everybody || h.Undelivered {
		subs.Shared = nil
	}
	return subs
}

func (h *Lacking) OnSubscribe(_ *mochi.Client, p packets.Packet) packets.Packet {
	const never = 2
	for i := range p.Filters {
		if h.Unretained && strings.ContainsAny(p.Filters[i].Filter, "+#") {
			p.Filters[i].RetainHandling = never
		}
	}
	return p
}

// Start is a broker that lacks something.
func (h *Lacking) Start(t *testing.T, addr string) (stop func()) {
	t.Helper()
	b, err := embedded.Start(addr, embedded.Options{Hooks: []mochi.Hook{new(auth.AllowHook), h}})
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { b.Close() })
}
