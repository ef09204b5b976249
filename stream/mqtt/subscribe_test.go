package mqtt

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// AWS IoT Core ends the connection when a packet has more than 8 filters.
func TestFewFiltersInAPacket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	subscribed, unsubscribed := make(chan string, 100), make(chan string, 100)
	go serveFewFilters(l, func(filter string) byte {
		subscribed <- filter
		if filter == "s03" || filter == "s17" {
			return 0x80
		}
		if filter == "s05" {
			return 0
		}
		return 1
	}, func(filter string) { unsubscribed <- filter })
	cfg := DefaultConfig()
	cfg.Servers = []string{"mqtt://" + l.Addr().String()}
	var events []string
	c := NewClient(Options{Config: cfg, ConnectTimeout: longWait, Counters: new(Counters), Log: slog.New(slog.DiscardHandler), Event: func(kind, detail string) { events = append(events, kind+" "+detail) }})
	conn, err := c.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	c.current.Store(conn)
	names := func(kind string) (filters []string) {
		for i := range 20 {
			filters = append(filters, fmt.Sprintf("%s%02d", kind, i))
		}
		return filters
	}
	read := func(from <-chan string, n int) (filters []string) {
		for range n {
			select {
			case f := <-from:
				filters = append(filters, f)
			case <-conn.lost:
				t.Fatalf("the connection ends after %d of %d filters: %v", len(filters), n, conn.err)
			}
		}
		slices.Sort(filters)
		return filters
	}
	equalTexts(t, "refused", c.subscribe(t.Context(), conn, names("s")), []string{"s03", "s17"})
	equalTexts(t, "events", events, []string{"subscription_lowered s05", "subscription_refused s03, s17"})
	equalTexts(t, "subscribed", read(subscribed, 20), names("s"))
	c.unsubscribe(t.Context(), conn, names("s"))
	equalTexts(t, "unsubscribed", read(unsubscribed, 20), names("s"))
	c.Also(names("a")...)
	equalTexts(t, "subscribed as well", read(subscribed, 20), names("a"))
	c.Drop(names("a")...)
	equalTexts(t, "dropped", read(unsubscribed, 20), names("a"))
}

// slowMemory stores filters; without "a" it waits for the disk.
type slowMemory struct {
	reached chan struct{}
	disk    chan struct{}
	stored  atomic.Bool // without "a"
}

func (m *slowMemory) Filters() ([]string, error) { return nil, nil }

func (m *slowMemory) RememberFilters(filters []string) error {
	if !slices.Contains(filters, "a") {
		close(m.reached)
		<-m.disk
		m.stored.Store(true)
	}
	return nil
}

// A connection ends once the filters that Drop has ended are removed from the store: the next node
// may store its own then.
func TestDropEndsWithTheConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	subscribed := make(chan string, 10)
	go serveFewFilters(l, func(filter string) byte { subscribed <- filter; return 0 }, func(string) {})
	cfg := DefaultConfig()
	cfg.Servers = []string{"mqtt://" + l.Addr().String()}
	memory := &slowMemory{reached: make(chan struct{}), disk: make(chan struct{})}
	c := NewClient(Options{
		Config: cfg, Filters: []string{"s"}, StateTopic: "edge/n/state", ConnectTimeout: longWait, Counters: new(Counters), Log: slog.New(slog.DiscardHandler), Event: func(string, string) {},
		Memory: memory, Serve: func(ctx context.Context, _ *Conn) { <-ctx.Done() },
	})
	c.further.add([]string{"a"})
	conn, err := c.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	c.current.Store(conn)
	served := make(chan bool)
	go func() {
		c.serveConn(t.Context(), conn)
		served <- memory.stored.Load()
	}()
	<-subscribed
	c.Drop("a")
	<-memory.reached
	conn.fail(io.EOF)
	time.AfterFunc(50*time.Millisecond, func() { close(memory.disk) })
	if !<-served {
		t.Error("the connection has ended before the filters are stored")
	}
}

// With qos: 0 nothing of the client has QoS 1, which a broker of QoS 0 alone ends the connection for.
func TestOwnMessagesHaveTheConfiguredQoS(t *testing.T) {
	for qos := range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan byte, 2)
		go func() {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			for {
				p, err := packets.ReadPacket(nc)
				if err != nil {
					return
				}
				switch p := p.(type) {
				case *packets.ConnectPacket:
					seen <- p.WillQos
					io.WriteString(nc, "\x20\x02\x00\x00")
				case *packets.PublishPacket:
					seen <- p.Qos
				}
			}
		}()
		cfg := DefaultConfig()
		cfg.Servers, cfg.QoS = []string{"mqtt://" + l.Addr().String()}, qos
		c := NewClient(Options{Config: cfg, StateTopic: "edge/n/state", ConnectTimeout: longWait, Counters: new(Counters), Log: slog.New(slog.DiscardHandler), Event: func(string, string) {}})
		conn, err := c.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn.publishState("online")
		if will, birth := <-seen, <-seen; will != byte(qos) || birth != byte(qos) {
			t.Errorf("qos %d: Last Will and birth message have %d and %d", qos, will, birth)
		}
		conn.close()
		l.Close()
	}
}

// serveFewFilters is a broker for one client, which it leaves at a packet with more than 8 filters.
func serveFewFilters(l net.Listener, subscribe func(filter string) byte, unsubscribe func(filter string)) {
	nc, err := l.Accept()
	if err != nil {
		return
	}
	serveClient(nc, func(p packets.ControlPacket) bool {
		switch p := p.(type) {
		case *packets.SubscribePacket:
			if len(p.Topics) > 8 {
				return false
			}
			answer := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
			answer.MessageID = p.MessageID
			for _, f := range p.Topics {
				answer.ReturnCodes = append(answer.ReturnCodes, subscribe(f))
			}
			answer.Write(nc)
		case *packets.UnsubscribePacket:
			if len(p.Topics) > 8 {
				return false
			}
			answer := packets.NewControlPacket(packets.Unsuback).(*packets.UnsubackPacket)
			answer.MessageID = p.MessageID
			for _, f := range p.Topics {
				unsubscribe(f)
			}
			answer.Write(nc)
		}
		return true
	})
}

// serveClient accepts a client and passes its further packets to answer, until the connection ends
// or answer returns false; then it closes the connection.
func serveClient(nc net.Conn, answer func(packets.ControlPacket) bool) {
	defer nc.Close()
	for {
		p, err := packets.ReadPacket(nc)
		if err != nil {
			return
		}
		if _, connect := p.(*packets.ConnectPacket); connect {
			io.WriteString(nc, "\x20\x02\x00\x00")
		} else if !answer(p) {
			return
		}
	}
}

// A stop does not wait for a broker that never answers the subscription.
func TestStopWithoutSuback(t *testing.T) {
	bubble("", t, func(t *testing.T) {
		client, broker := net.Pipe()
		var all sync.WaitGroup
		all.Go(func() {
			for p, err := packets.ReadPacket(broker); err == nil; p, err = packets.ReadPacket(broker) {
				if _, ok := p.(*packets.ConnectPacket); ok {
					io.WriteString(broker, "\x20\x02\x00\x00")
				}
			}
		})
		cfg := DefaultConfig()
		cfg.Servers = []string{"mqtt://broker"}
		dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) { return client, nil }
		c := NewClient(Options{Config: cfg, Filters: []string{"a"}, Dial: dial, Counters: new(Counters), Log: slog.New(slog.DiscardHandler),
			Event: func(string, string) {}, Serve: func(context.Context, *Conn) {}})
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() {
			c.Run(ctx)
			broker.Close()
		})
		time.Sleep(time.Second)
		stop()
		stopped := time.Now()
		all.Wait()
		if took := time.Since(stopped); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
	})
}

// leftMemory has the filter of an earlier configuration.
type leftMemory struct{}

func (leftMemory) Filters() ([]string, error)     { return []string{"left"}, nil }
func (leftMemory) RememberFilters([]string) error { return nil }

// The reason for a connection that the broker ends upon the subscription, or the end of a former one, is that of
// the network.
func TestLossInPlaceOfSuback(t *testing.T) {
	for name, o := range map[string]Options{"subscribe": {Filters: []string{"a"}}, "unsubscribe": {Memory: leftMemory{}}} {
		bubble(name, t, func(t *testing.T) { testLossInPlaceOfSuback(t, o) })
	}
}

func testLossInPlaceOfSuback(t *testing.T, o Options) {
	var log bytes.Buffer
	var all sync.WaitGroup
	cfg := DefaultConfig()
	cfg.Servers = []string{"mqtt://broker"}
	dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
		client, broker := net.Pipe()
		all.Go(func() {
			defer broker.Close()
			if _, err := packets.ReadPacket(broker); err == nil {
				io.WriteString(broker, "\x20\x02\x00\x00")
				packets.ReadPacket(broker)
			}
		})
		return client, nil
	}
	o.Config, o.Dial, o.Counters, o.Log = cfg, dial, new(Counters), slog.New(slog.NewTextHandler(&log, nil))
	o.Event, o.Serve = func(string, string) {}, func(context.Context, *Conn) {}
	c := NewClient(o)
	ctx, stop := context.WithCancel(t.Context())
	all.Go(func() { c.Run(ctx) })
	time.Sleep(time.Minute)
	stop()
	all.Wait()
	if lost := o.Counters.Reconnects.Load(); lost < 3 || strings.Count(log.String(), "reason=EOF") != 1 || strings.Contains(log.String(), "completed") {
		t.Errorf("%d connections were lost; it logs\n%s", lost, &log)
	}
}

// A topic that a broker refuses may have a character that only some brokers take.
func TestWordsAdvice(t *testing.T) {
	for topic, want := range map[string]bool{"edge/pi1/m/prediction/pump 3": true, "edge/pi1/m/prediction/10.0.0.7": true, "edge/pi1/m/prediction/pump-3": false} {
		if got := WordsAdvice("edge/pi1/state", topic); (got != "") != want {
			t.Errorf("%s: %q", topic, got)
		}
	}
}
