package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"

	"edge/stream/codec"
)

// orderHook records the order of subscriptions and state messages at a broker.
type orderHook struct {
	auth.AllowHook
	mu   sync.Mutex
	told []string
}

func (h *orderHook) Provides(b byte) bool {
	return b == mochi.OnSubscribed || b == mochi.OnPublished || h.AllowHook.Provides(b)
}

func (h *orderHook) OnSubscribed(_ *mochi.Client, p packets.Packet, _ []byte) {
	h.tell(fmt.Sprintf("%d subscriptions", len(p.Filters)))
}

func (h *orderHook) OnPublished(_ *mochi.Client, p packets.Packet) {
	if p.TopicName == "edge/n1/state" {
		h.tell(string(p.Payload))
	}
}

func (h *orderHook) tell(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, what)
}

// Whoever waits for a node to be online may publish at once.
func TestOnlineMeansSubscribed(t *testing.T) {
	hook := &orderHook{}
	b := newMochi(t, nil, hook)
	b.start(t)
	d := startNode(t, b, newFakeJournal(), nil)
	told := func() []string {
		hook.mu.Lock()
		defer hook.mu.Unlock()
		return slices.Clone(hook.told)
	}
	eventually(t, "the node to be online", func() bool { return slices.Contains(told(), "online") })
	equal(t, "the broker was asked", told(), []string{fmt.Sprintf("%d subscriptions", len(d.client.Filters)+1), "online"}) // one is its own state
}

// fakeMemory remembers filters as a store does.
type fakeMemory struct {
	mu      sync.Mutex
	filters []string
	writes  int
}

func (m *fakeMemory) Filters() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.filters), nil
}

func (m *fakeMemory) RememberFilters(filters []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filters, m.writes = slices.Clone(filters), m.writes+1
	return nil
}

// Topics that a configuration no longer has do not come any more, although the
// session at the broker has outlived it. Without a memory they do.
func TestFormerTopicsAreGivenBack(t *testing.T) {
	for name, remembers := range map[string]bool{"with a memory": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			withBrokers(t, func(t *testing.T, b *broker) {
				journal, memory := newFakeJournal(), new(fakeMemory)
				start := func(topic string) *daemon {
					return startNode(t, b, journal, func(c *Config, _ *ModelConfig) {
						s := c.Streams["vibration"]
						s.Topics, s.TopicTemplate = []string{topic}, ""
						c.Streams["vibration"], c.Labels = s, nil
					}, func(n *Node) {
						if remembers {
							n.client.Memory = memory
						}
					}).ready(t)
				}
				p := newProbe(t, b, "edge/n1/state")
				await := func(state string) {
					t.Helper()
					eventually(t, state, func() bool { s := p.on("#"); return len(s) > 0 && s[len(s)-1] == state })
				}
				former := start("former/#")
				await("online")
				former.stop()
				await("offline")
				d := start("present/#")
				await("online")
				p.send("former/p7", withID(1))
				p.send("present/p7", withID(2))
				eventually(t, "the sample", func() bool { return d.Stats().Learned == 1 })
				want := uint64(0)
				if !remembers {
					want = 1
				}
				eventually(t, "what became of the former topic", func() bool { return d.Stats().Received == 1+want })
				if got := d.Stats().Rejected[codec.Unrouted]; got != want {
					t.Errorf("%d messages of the former topic came, want %d", got, want)
				}
				if !remembers {
					return
				}
				filters, _ := memory.Filters()
				if slices.Contains(filters, "former/#") || !slices.Contains(filters, "present/#") {
					t.Errorf("it remembers %q", filters)
				}
				writes := memory.writes
				d.cut()
				eventually(t, "another connection", func() bool { return d.Stats().Reconnects == 1 && d.Stats().Subscribed })
				if memory.writes != writes {
					t.Error("a connection without news writes")
				}
			})
		})
	}
}

func TestLastWill(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		p := newProbe(t, b, "edge/n1/state")
		d := startNode(t, b, newFakeJournal(), nil).ready(t)
		eventually(t, "online", func() bool { return slices.Contains(p.on("#"), "online") })
		d.cut()
		states := func() []string { return slices.Compact(p.on("#")) } // retained, so that it may come twice
		eventually(t, "the will, and online again", func() bool { return slices.Equal(states(), []string{"online", "offline", "online"}) })
		d.stop()
		eventually(t, "offline", func() bool { return slices.Equal(states(), []string{"online", "offline", "online", "offline"}) })
	})
}

// denyHook is a broker's access list that can be changed.
type denyHook struct {
	auth.AllowHook
	denied atomic.Value // string: a filter
}

func (h *denyHook) OnACLCheck(_ *mochi.Client, topic string, write bool) bool {
	return write || topic != h.denied.Load()
}

func TestSubscriptionRefused(t *testing.T) {
	t.Parallel()
	hook := new(denyHook)
	hook.denied.Store("factory/+/label")
	b := newMochi(t, nil, hook)
	b.start(t)
	d := startNode(t, b, newFakeJournal(), nil).ready(t)
	p := newProbe(t, b, "edge/n1/event")
	p.send("factory/p7/vibration", withID(0))
	eventually(t, "what is allowed", func() bool { return d.Stats().Learned == 1 })
	equal(t, "refused", d.Stats().Refused, []string{"factory/+/label"})
	eventually(t, "the refusal in the log", func() bool {
		log := string(d.log.tail(1 << 20))
		return strings.Contains(log, "refused a subscription") && strings.Contains(log, "factory/+/label")
	})
	hook.denied.Store("")
	eventually(t, "another attempt", func() bool { return len(d.Stats().Refused) == 0 })
	p.send("factory/p7/vibration", `{"id":"a","features":[1,0]}`)
	p.send("factory/p7/label", `{"id":"a","label":"ok"}`)
	eventually(t, "a label", func() bool { return d.Stats().Learned == 2 })
}

// endingHook is a broker that ends the connection of a client that subscribes, as RabbitMQ does where its
// access list forbids a topic.
type endingHook struct{ auth.AllowHook }

func (h *endingHook) Provides(b byte) bool {
	return b == mochi.OnSubscribe || h.AllowHook.Provides(b)
}

func (h *endingHook) OnSubscribe(client *mochi.Client, pk packets.Packet) packets.Packet {
	client.Stop(errors.New("forbidden"))
	return pk
}

func TestSubscriptionEndsTheConnection(t *testing.T) {
	t.Parallel()
	b := newMochi(t, nil, new(endingHook))
	b.start(t)
	d := startNode(t, b, newFakeJournal(), nil)
	eventually(t, "the cause in the log", func() bool {
		return strings.Contains(string(d.log.tail(1<<20)), "before it has granted the subscriptions; its log has the reason: does its access list forbid a topic?")
	})
	if log := string(d.log.tail(1 << 20)); strings.Contains(log, "same client_id?") {
		t.Errorf("a clash of clients is reported: %s", log)
	}
}

func TestClientIDClash(t *testing.T) {
	t.Parallel()
	b := newMochi(t, nil, nil)
	b.start(t)
	same := func(c *Config, _ *ModelConfig) { c.MQTT.ClientID = "twin" }
	one := startNode(t, b, newFakeJournal(), same).ready(t)
	two := startNode(t, b, newFakeJournal(), same)
	eventually(t, "the cause in the log", func() bool {
		log := string(one.log.tail(1<<20)) + string(two.log.tail(1<<20))
		return strings.Contains(log, "does another client use the same client_id?")
	})
}

// A broker whose limit is below messages of the node gets the others, and all labels are
// learnt, each once.
func TestPacketLimit(t *testing.T) {
	t.Run("qos 1", func(t *testing.T) { packetLimit(t, 1) })
	t.Run("qos 0", func(t *testing.T) { packetLimit(t, 0) }) // where the broker acknowledges nothing
}

func packetLimit(t *testing.T, qos int) {
	withMosquitto(t, "max_packet_size 300\n", func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) { c.MQTT.QoS = qos })
		eventually(t, "the message in the log", func() bool {
			log := string(d.log.tail(1 << 20))
			return strings.Contains(log, "upon a message, which is discarded") && strings.Contains(log, "topic=edge/n1/info") && strings.Contains(log, "max_packet_size")
		})
		d.ready(t)
		p := newProbe(t, b, "edge/n1/event")
		const n = 20
		send := func() {
			for _, message := range each(n, withID) {
				p.send("factory/p7/vibration", message)
			}
		}
		send()
		sent := time.Now()
		eventually(t, "all to be learnt", func() bool {
			if qos == 0 && time.Since(sent) > time.Second { // none is kept for a connection that has just ended
				send()
				sent = time.Now()
			}
			return len(d.model.learnt()) >= n
		})
		equal(t, "learnt", slices.Sorted(slices.Values(d.model.learnt())), slices.Sorted(slices.Values(upTo(n))))
		if s := d.Stats(); s.OutboxRefused == 0 {
			t.Error("no refused publication is counted")
		}
		if log := string(d.log.tail(1 << 20)); strings.Contains(log, "client_id?") {
			t.Errorf("the log tells of a clash of clients:\n%s", log)
		}
	})
}
