package mqtt

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/stream/field"
)

// denier is a broker at which another client publishes ten times a second that the node is offline.
type denier struct {
	mu     sync.Mutex
	states []string // that the node has published
	filter map[string]byte
	refuse bool     // the subscription to the state
	says   string   // the packet of the other client, in place of that
	heard  []string // that went to the client's Aside
	all    sync.WaitGroup
}

func (b *denier) dial(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
	client, broker := net.Pipe()
	b.all.Go(func() { b.serve(broker) })
	return client, nil
}

func (b *denier) serve(nc net.Conn) {
	serveClient(nc, func(p packets.ControlPacket) bool {
		switch p := p.(type) {
		case *packets.SubscribePacket:
			b.subscribed(nc, p)
		case *packets.PublishPacket:
			answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			answer.MessageID = p.MessageID
			answer.Write(nc)
			b.mu.Lock()
			b.states = append(b.states, string(p.Payload))
			b.mu.Unlock()
		case *packets.PingreqPacket:
			io.WriteString(nc, "\xd0\x00")
		}
		return true
	})
}

// subscribed answers a subscription and begins to send.
func (b *denier) subscribed(nc net.Conn, p *packets.SubscribePacket) {
	answer := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
	answer.MessageID, answer.ReturnCodes = p.MessageID, slices.Clone(p.Qoss)
	b.filter = map[string]byte{}
	for i, f := range p.Topics {
		b.filter[f] = p.Qoss[i]
		if f == "n/state" && b.refuse {
			answer.ReturnCodes[i] = 0x80
		}
	}
	io.WriteString(nc, "\x31\x10\x00\x07n/stateoffline") // kept before the subscription
	answer.Write(nc)
	b.all.Go(func() {
		for !b.refuse {
			time.Sleep(100 * time.Millisecond)
			if _, err := io.WriteString(nc, cmp.Or(b.says, "\x30\x10\x00\x07n/stateoffline")); err != nil {
				return
			}
		}
	})
}

// deny lets a client connect to the broker for some time.
func (b *denier) deny(lasts time.Duration) (events []string) {
	cfg := DefaultConfig()
	cfg.Servers, cfg.Keepalive = []string{"mqtt://broker"}, time.Hour
	c := NewClient(Options{
		Config: cfg, StateTopic: "n/state", Filters: []string{"a"}, Dial: b.dial, Counters: new(Counters),
		Queue: NewQueue(10, field.MiB, MessageSize), Log: slog.New(slog.DiscardHandler),
		Event: func(kind, _ string) { events = append(events, kind) },
		Aside: func(msg *Message) bool {
			b.heard = append(b.heard, msg.Topic+" "+string(msg.Payload))
			return true
		},
		Serve: func(ctx context.Context, _ *Conn) { <-ctx.Done() },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	time.Sleep(lasts)
	cancel()
	running.Wait()
	b.all.Wait()
	return events
}

// A broker may not keep the first state, because it is still starting: a client publishes it once more.
func TestStateIsRepeated(t *testing.T) {
	bubble("unasked", t, func(t *testing.T) {
		b := &denier{refuse: true}
		b.deny(time.Hour)
		if want := []string{stateOnline, stateOnline, stateOffline}; !slices.Equal(b.states, want) {
			t.Errorf("the states are %q, want %q", b.states, want)
		}
	})
}

// A client contradicts another one that says the node is offline, at once, and so seldom that two of
// them do not fight.
func TestContradictsAnotherClient(t *testing.T) {
	bubble("ten times a second", t, func(t *testing.T) {
		b := &denier{}
		b.deny(10*time.Minute + time.Second)
		online := 0
		for _, s := range b.states {
			if s == stateOnline {
				online++
			}
		}
		if online < 2 || online > 62 || b.states[len(b.states)-1] != stateOffline {
			t.Errorf("%d times online, the last state is %s; want the birth message, one at once, and one in ten seconds", online, b.states[len(b.states)-1])
		}
		if len(b.heard) < 5000 || b.heard[0] != "n/state offline" {
			t.Errorf("%d messages of the state were heard: %.3q", len(b.heard), b.heard)
		}
		if b.filter["n/state"] != 0 || b.filter["a"] != 1 {
			t.Errorf("the filters have the quality of service %v, want 0 for the state", b.filter)
		}
	})
	bubble("a request for the state is answered, and no other process has ended", t, func(t *testing.T) {
		b := &denier{says: "\x30\x0d\x00\x07n/statewho?"}
		b.deny(time.Minute + time.Second)
		if n := len(b.states); n < 4 || n > 10 || b.states[1] != stateOnline {
			t.Errorf("states %q", b.states)
		}
		equalTexts(t, "heard", b.heard, nil)
	})
	bubble("what the broker had kept is no news, and the subscription is not necessary", t, func(t *testing.T) {
		b := &denier{refuse: true}
		if events := b.deny(RepeatAfter - time.Second); len(events) > 0 {
			t.Errorf("events %q", events)
		}
		equalTexts(t, "states", b.states, []string{stateOnline, stateOffline})
		equalTexts(t, "heard", b.heard, nil)
	})
}
