package mqtt

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// limitedLink is a connection that its broker ends upon a publication larger than limit, or
// on a forbidden topic.
type limitedLink struct {
	*fakeLink
	of *limitedBroker
}

func (l limitedLink) publish(m *Publication, proven bool) *receipt {
	d := l.fakeLink.publish(m, proven)
	done := m.QoS == 0 && !proven
	switch {
	case l.broken():
	case m.size() > l.of.limit, m.Topic == l.of.forbidden:
		l.fail(nil)
	default:
		l.of.passed = append(l.of.passed, strings.TrimRight(string(m.Payload), "."))
		done = true
	}
	if done {
		d.done <- struct{}{}
	}
	return d
}

type limitedBroker struct {
	limit     int // bytes
	forbidden string
	passed    []string
	ends      int
	said      []string
}

// limitedOutbox returns an outbox whose refusals the broker notes.
func limitedOutbox(b *limitedBroker) *Outbox {
	o := newTestOutbox(4)
	o.OnRefused(func(topic string, bytes int, limit bool) {
		b.said = append(b.said, fmt.Sprint(topic, " ", bytes, " ", limit))
	})
	return o
}

// serve lets an outbox publish over one connection after the other until one lasts, and
// ends that by the network.
func (b *limitedBroker) serve(t *testing.T, o *Outbox) {
	t.Helper()
	for range 50 {
		l := limitedLink{newFakeLink(false), b}
		done := make(chan struct{})
		go func() { defer close(done); o.Serve(t.Context(), l) }()
		synctest.Wait()
		lasted := !l.broken()
		if lasted {
			l.fail(nil)
		}
		<-done
		if lasted {
			return
		}
		b.ends++
	}
	t.Fatalf("the outbox ends each connection; %d publications are left", o.Len())
}

func sized(topic, name string, n int) *Publication {
	return &Publication{Topic: topic, QoS: 1, Payload: []byte(name + strings.Repeat(".", n-len(name)-len(topic)))}
}

// Long: a list of independent cases.
func TestPacketLimit(t *testing.T) {
	bubble("those that are as large are discarded, the others come once", t, func(t *testing.T) {
		b := &limitedBroker{limit: 300}
		o := limitedOutbox(b)
		for i, size := range []int{100, 400, 100, 500, 300, 400} {
			o.Push(sized("t", fmt.Sprint(i), size))
		}
		b.serve(t, o)
		equalTexts(t, "passed", b.passed, []string{"0", "2", "4"})
		equalTexts(t, "said", b.said, []string{"t 400 true"})
		if got := o.counters.OutboxRefused.Load(); got != 3 || b.ends > 2+maxEnds {
			t.Errorf("%d refused after %d ends, want 3 after at most %d", got, b.ends, 2+maxEnds)
		}
	})
	bubble("of QoS 0, after the connection that the first one has ended", t, func(t *testing.T) {
		b := &limitedBroker{limit: 300}
		o := limitedOutbox(b)
		push := func() {
			for i, size := range []int{100, 400, 100, 500, 300, 400} {
				m := sized("t", fmt.Sprint(i), size)
				m.QoS = 0
				o.Push(m)
			}
		}
		push()
		o.Serve(t.Context(), limitedLink{newFakeLink(false), b})
		push()
		b.serve(t, o)
		equalTexts(t, "passed", b.passed, []string{"0", "0", "2", "4"})
		equalTexts(t, "said", b.said, []string{"t 400 true"})
		if got := o.counters.OutboxRefused.Load(); got != 3 || b.ends != 1+maxEnds {
			t.Errorf("%d refused after %d more ends, want 3 after %d", got, b.ends, 1+maxEnds)
		}
	})
	for qos, again := range [][]string{{"4", "5", "6", "7"}, {"0", "1", "2", "3"}} {
		bubble(fmt.Sprint("after a lost connection the next ones do not wait for each other: QoS ", qos), t, func(t *testing.T) {
			o := newTestOutbox(4)
			push := func(from int) {
				for i := range 4 {
					o.Push(&Publication{Topic: "t", QoS: byte(qos), Payload: fmt.Append(nil, from+i)})
				}
			}
			push(0)
			lost := newFakeLink(qos == 0)
			stop := startOutbox(t, o, lost)
			synctest.Wait()
			lost.fail(nil)
			stop()
			push(4)
			l := newFakeLink(false)
			stop = startOutbox(t, o, l)
			synctest.Wait()
			equalTexts(t, "sent before an answer", l.all(), again)
			stop()
		})
	}
	bubble("a retained one that is replaced before each connection", t, func(t *testing.T) {
		b := &limitedBroker{limit: 300}
		o := limitedOutbox(b)
		for i := range maxEnds + 1 {
			m := sized("info", fmt.Sprint(i), 400-i)
			m.Retained = true
			o.Push(m)
			if i == maxEnds {
				b.serve(t, o)
				break
			}
			l := limitedLink{newFakeLink(false), b}
			o.Serve(t.Context(), l)
		}
		equalTexts(t, "said", b.said, []string{"info 398 true"})
	})
	bubble("a forbidden topic does not stop what is as large", t, func(t *testing.T) {
		b := &limitedBroker{limit: 1000, forbidden: "no"}
		o := limitedOutbox(b)
		o.Push(sized("t", "a", 500))
		b.serve(t, o)
		o.Push(sized("no", "b", 400))
		o.Push(sized("t", "c", 450))
		b.serve(t, o)
		equalTexts(t, "passed", b.passed, []string{"a", "c"})
		equalTexts(t, "said", b.said, []string{"no 400 false"})
	})
	bubble("the limit is tried again, each time after twice as long", t, func(t *testing.T) {
		b := &limitedBroker{limit: 300}
		o := limitedOutbox(b)
		ends := func(name string, size int) int {
			before := b.ends
			o.Push(sized("t", name, size))
			b.serve(t, o)
			return b.ends - before
		}
		ends("a", 400)
		limit := o.culprit.limit
		for i, want := range []int{0, 1, 0, 1, 0} {
			if i > 0 {
				time.Sleep(limitHolds)
			}
			if got := ends("b", 400+i); got != want || o.culprit.limit != limit {
				t.Errorf("%d minutes later: %d ends and a limit of %d, want %d and %d", i, got, o.culprit.limit, want, limit)
			}
		}
		b.limit = 1000
		time.Sleep(4 * limitHolds)
		if got := ends("c", 400) + ends("d", 500); got != 0 {
			t.Errorf("%d ends without a limit", got)
		}
		equalTexts(t, "passed", b.passed, []string{"c", "d"})
	})
	bubble("a broker that does not answer has no limit", t, func(t *testing.T) {
		o := newTestOutbox(1)
		o.Push(sized("t", "a", 400))
		o.Push(sized("t", "b", 400))
		for i := range slowEnds {
			if got := o.counters.OutboxRefused.Load(); got != 0 {
				t.Fatalf("%d refused after %d ends", got, i)
			}
			l := newFakeLink(false)
			o.Serve(t.Context(), l) // which gives up after ackedWithin
			equalTexts(t, "sent", []string{strings.TrimRight(l.all()[0], ".")}, []string{"a"})
		}
		if got := o.counters.OutboxRefused.Load(); got != 1 || o.culprit.limit != 0 || o.Len() != 1 {
			t.Errorf("%d refused, a limit of %d, %d left, want 1, none and 1", got, o.culprit.limit, o.Len())
		}
	})
	bubble("ends by the network discard nothing that passes in between", t, func(t *testing.T) {
		b := &limitedBroker{limit: 300}
		o := limitedOutbox(b)
		for i := range 3 * maxEnds {
			o.Push(sized("t", fmt.Sprint(i), 200))
			l := newFakeLink(false) // without an answer
			l.lost = make(chan struct{})
			stop := startOutbox(t, o, l)
			synctest.Wait()
			l.fail(nil)
			stop()
			b.serve(t, o)
		}
		if got := o.counters.OutboxRefused.Load(); got != 0 || len(b.passed) != 3*maxEnds {
			t.Errorf("%d refused, %d passed, want none and %d", got, len(b.passed), 3*maxEnds)
		}
	})
}

// A broker that breaks the protocol at each connection does not make the node discard its publications:
// all of them arrive once the broker behaves.
func TestProtocolErrorAccusesNone(t *testing.T) {
	bubble("a broken packet in place of each acknowledgement", t, func(t *testing.T) {
		const broken, sent = 2 * slowEnds, 5
		var all sync.WaitGroup
		var arrived []string
		connections := 0
		dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
			client, broker := net.Pipe()
			connections++
			behaves := connections > broken
			all.Go(func() {
				defer broker.Close()
				for {
					switch p, err := packets.ReadPacket(broker); p := p.(type) {
					case *packets.ConnectPacket:
						io.WriteString(broker, "\x20\x02\x00\x00")
					case *packets.PublishPacket:
						if !behaves {
							io.WriteString(broker, "\xf0\x00")
							continue
						}
						arrived = append(arrived, string(p.Payload))
						broker.Write([]byte{0x40, 2, byte(p.MessageID >> 8), byte(p.MessageID)})
					default:
						if err != nil {
							return
						}
					}
				}
			})
			return client, nil
		}
		o := newTestOutbox(4)
		cfg := DefaultConfig()
		cfg.Servers = []string{"mqtt://broker"}
		c := NewClient(Options{
			Config: cfg, Dial: dial, Counters: o.counters, Log: slog.New(slog.DiscardHandler),
			Event: func(string, string) {}, Serve: func(ctx context.Context, conn *Conn) { o.Serve(ctx, conn) },
		})
		for i := range sent {
			o.Push(&Publication{Topic: "t", QoS: 1, Payload: fmt.Append(nil, i)})
		}
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() { c.Run(ctx) })
		time.Sleep(time.Hour)
		stop()
		all.Wait()
		equalTexts(t, "arrived", arrived, []string{"0", "1", "2", "3", "4"})
		if refused, limit := o.counters.OutboxRefused.Load(), o.culprit.limit; refused != 0 || limit != 0 {
			t.Errorf("%d publications are refused with a limit of %d, want none, after %d connections", refused, limit, connections)
		}
	})
}
