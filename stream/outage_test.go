package stream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/stream/mqtt"
)

// Killed before the commit, the next run gets everything.
func TestKilledBeforeCommit(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		stuck := newFakeJournal()
		stuck.set(errDiskFull, nil)
		d := startNode(t, b, stuck, nil).ready(t)
		const n = 30
		newProbe(t, b).send("factory/p7/vibration", each(n, withID)...)
		eventually(t, "a commit to fail", func() bool { return d.Stats().Degraded })
		if err := d.stop(); !errors.Is(err, ErrUnfinished) {
			t.Errorf("Run says %v about what was left", err)
		}
		again := startNode(t, b, newFakeJournal(), nil)
		eventually(t, "all to be learnt", func() bool { return again.Stats().Learned == n })
		again.model.hasLearnt(t, upTo(n))
	})
}

func TestCommitFailureAndRecovery(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		journal := newFakeJournal()
		d := startNode(t, b, journal, nil).ready(t)
		p := newProbe(t, b, "edge/n1/event")
		journal.set(errDiskFull, nil)
		p.send("factory/p7/vibration", each(100, withID)...)
		eventually(t, "the alarm", func() bool { return len(p.on("edge/n1/event")) == 1 })
		if s := d.Stats(); s.Learned != 0 || s.Predictions == 0 {
			t.Errorf("learnt %d, predicted %d", s.Learned, s.Predictions)
		}
		journal.set(nil, nil)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == 100 })
		d.model.hasLearnt(t, upTo(100))
		eventually(t, "the all-clear", func() bool {
			e := p.on("edge/n1/event")
			return len(e) == 2 && strings.Contains(e[0], "store_degraded") && strings.Contains(e[1], "store_recovered")
		})
	})
}

// While the journal cannot be written the broker's window fills. Later messages are
// answered over the fallback subscription, and learnt once, in order, when the journal
// works again.
func TestAnsweredWhileTheJournalFails(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		journal := newFakeJournal()
		d := startNode(t, b, journal, nil).ready(t)
		journal.set(errDiskFull, nil)
		p := newProbe(t, b)
		p.send("factory/p7/vibration", each(100, withID)...) // the window is full
		eventually(t, "the second connection", func() bool {
			c := d.fallback.client.Conn()
			return c != nil && c.Subscribed()
		})
		const sent = 200
		window := time.Now()
		p.send("factory/p7/vibration", each(sent, withID)[100:]...)
		eventually(t, "answers over it", func() bool { return d.Stats().Observed == 100 })
		s := d.Stats()
		if s.Learned != 0 || s.Predictions < s.Observed {
			t.Errorf("learnt %d, predicted %d, observed %d", s.Learned, s.Predictions, s.Observed)
		}
		if of := s.Streams["vibration"].SinceMessage; max(s.SinceMessage, of) > time.Since(window) {
			t.Errorf("the last message came %v ago, that of the stream %v, want no longer than since the window was full", s.SinceMessage, of)
		}
		journal.set(nil, nil)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == sent })
		d.model.hasLearnt(t, upTo(sent))
		if s := d.Stats(); s.Redelivered != 0 || len(s.Rejected) != 0 {
			t.Errorf("redelivered %d, rejected %v", s.Redelivered, s.Rejected)
		}
		eventually(t, "the second connection to end", func() bool { return d.fallback.client.Conn() == nil })
		p.send("factory/p7/vibration", each(sent+10, withID)[sent:]...)
		eventually(t, "more", func() bool { return d.Stats().Learned == sent+10 })
		if now := d.Stats().Observed; now != 100 {
			t.Errorf("%d messages came over the second connection, want none after the end of the outage", now)
		}
	})
}

// On a disk that is slow with each label, the log has one second connection, and one more
// once none was needed for calmAfter.
func TestSecondConnectionIsLoggedOnce(t *testing.T) {
	in("", t, func(t *testing.T) {
		var log bytes.Buffer
		cfg, m := testConfig()
		dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
			return nil, net.ErrClosed
		}
		n := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Dial: dial, Log: slog.New(slog.NewTextHandler(&log, nil))})
		turned := make(chan struct{}, 1)
		f := n.newFallback(turned)
		turn := func(degraded bool, pause time.Duration) {
			f.degraded.Store(degraded)
			turned <- struct{}{}
			time.Sleep(pause)
		}
		ctx, stop := context.WithCancel(t.Context())
		var life sync.WaitGroup
		life.Go(func() { f.run(ctx) })
		for range 5 {
			turn(true, 4*time.Second)
			turn(false, time.Minute)
		}
		first := strings.Count(log.String(), "a second connection")
		time.Sleep(calmAfter)
		turn(true, 4*time.Second)
		stop()
		life.Wait()
		if all := strings.Count(log.String(), "a second connection"); first != 1 || all != 2 {
			t.Errorf("%d lines, then %d, want 1 and 2:\n%s", first, all, log.String())
		}
	})
}

func TestBrokerStartedLater(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*broker{"mochi": newMochi(t, nil, nil), "mosquitto": newMosquitto(t, "")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startNode(t, b, newFakeJournal(), nil)
			eventually(t, "attempts to connect", func() bool { return d.Stats().ConnectFailures > 2 })
			b.start(t)
			d.ready(t)
			newProbe(t, b).send("factory/p7/vibration", withID(0))
			eventually(t, "a sample to be learnt", func() bool { return d.Stats().Learned == 1 })
			if got := strings.Count(string(d.log.tail(1<<20)), "cannot connect"); got != 1 {
				t.Errorf("%d log lines about %d failures, want 1", got, d.Stats().ConnectFailures)
			}
		})
	}
}

func TestBrokerRestarted(t *testing.T) {
	t.Parallel()
	persistent := fmt.Sprintf("persistence true\npersistence_location %s/\n", t.TempDir())
	for name, b := range map[string]*broker{
		"mochi":                      newMochi(t, nil, nil), // forgets sessions and retained messages
		"mosquitto":                  newMosquitto(t, ""),   // does too
		"mosquitto with persistence": newMosquitto(t, persistent),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.start(t)
			d := startNode(t, b, newFakeJournal(), nil).ready(t)
			for i := range 3 {
				newProbe(t, b).send("factory/p7/vibration", withID(i))
				eventually(t, "a sample to be learnt", func() bool { return d.Stats().Learned == uint64(i+1) })
				b.stop()
				eventually(t, "the loss to be seen", func() bool { return !d.Stats().Connected })
				d.outbox.Push(&mqtt.Publication{Topic: "t", Payload: []byte("published while the broker is away"), QoS: 1})
				b.start(t)
				eventually(t, "the node to subscribe again", func() bool { return d.Stats().Subscribed })
				p := newProbe(t, b, "edge/n1/#")
				eventually(t, "retained messages to be there again", func() bool {
					return slices.Contains(p.on("edge/n1/state"), "online") && len(p.on("edge/n1/info")) > 0
				})
				eventually(t, "the outbox to be sent", func() bool { return d.Stats().Outbox == 0 })
			}
			d.model.hasLearnt(t, upTo(3))
		})
	}
}

// Messages that a broker kept while the node was away come before any
// subscription.
func TestMessagesWhileAway(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), nil).ready(t)
		d.stop()
		newProbe(t, b).send("factory/p7/vibration", each(50, withID)...)
		again := startNode(t, b, newFakeJournal(), nil)
		eventually(t, "all to be learnt", func() bool { return again.Stats().Learned == 50 })
		again.model.hasLearnt(t, upTo(50))
	})
}

// A ring that is too small for the broker's window costs a reconnect, but no
// message and no order.
func TestRingOverflow(t *testing.T) {
	withMosquitto(t, "max_inflight_messages 0\n", func(t *testing.T, b *broker) {
		journal := newFakeJournal()
		block := make(chan struct{})
		journal.set(nil, block)
		d := startNode(t, b, journal, func(c *Config, _ *ModelConfig) { c.MQTT.Ring.MaxMessages = 5 }).ready(t)
		const n = 400
		newProbe(t, b).send("factory/p7/vibration", each(n, withID)...)
		eventually(t, "the ring to overflow", func() bool { return d.overloads.Load() > 0 })
		journal.set(nil, nil)
		close(block)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == n })
		d.model.hasLearnt(t, upTo(n))
		if s := d.Stats(); s.Reconnects == 0 || s.RingDropped != 0 {
			t.Errorf("%d reconnects, %d dropped", s.Reconnects, s.RingDropped)
		}
	})
}

// A connection that is dead without a word is found by its silence.
func TestHalfOpenConnection(t *testing.T) {
	t.Parallel()
	b := newMochi(t, nil, nil)
	b.start(t)
	r := newRelay(t, b.addr)
	d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) {
		c.MQTT.Servers, c.MQTT.Keepalive = []string{"tcp://" + r.addr, "tcp://" + b.addr}, time.Second
	}, func(n *Node) { n.client.PingTimeout, n.client.ConnectTimeout = time.Second, time.Second }).ready(t)
	before := d.Stats().Reconnects // a machine that is slow enough takes longer than a second to answer
	close(r.mute)
	eventually(t, "a new connection", func() bool { return d.Stats().Reconnects > before && d.Stats().Connected })
	newProbe(t, b).send("factory/p7/vibration", withID(0))
	eventually(t, "a sample", func() bool { return d.Stats().Learned == 1 })
}

func TestStopWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	d := startNode(t, &broker{addr: freePort(t)}, newFakeJournal(), nil)
	eventually(t, "an attempt", func() bool { return d.Stats().ConnectFailures > 0 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	// A broker that accepts and stays silent.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d = startNode(t, &broker{addr: l.Addr().String()}, newFakeJournal(), nil, func(n *Node) { n.client.ConnectTimeout = time.Hour })
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stopped := make(chan error)
	go func() { stopped <- d.stop() }()
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Error("the stop waits for a broker that says nothing")
	}
}

// A second process with the name of a node leaves "offline" as the state of both when it ends. The one
// that goes on says that the node is online.
func TestStateOfTwoProcesses(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		startNode(t, b, newFakeJournal(), nil).ready(t)
		second := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) { c.MQTT.ClientID = "second" }).ready(t)
		watch := newProbe(t, b, "edge/n1/state")
		eventually(t, "the state", func() bool { return len(watch.on("#")) > 0 })
		second.stop()
		eventually(t, "the node to be online again", func() bool {
			got := watch.on("#")
			return slices.Contains(got, "offline") && got[len(got)-1] == "online"
		})
		late := newProbe(t, b, "edge/n1/state")
		eventually(t, "the retained state", func() bool { return len(late.on("#")) > 0 })
		if got := late.on("#"); got[0] != "online" {
			t.Errorf("the broker keeps the state %q", got)
		}
	})
}

// A node that ends alone is offline.
func TestStateOfTheLastProcess(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		startNode(t, b, newFakeJournal(), nil).ready(t).stop()
		late := newProbe(t, b, "edge/n1/state")
		eventually(t, "the retained state", func() bool { return len(late.on("#")) > 0 })
		// A broker may keep a message, and then send it to a subscription that came in between as well.
		equal(t, "states", slices.Compact(late.on("#")), []string{"offline"})
	})
}
