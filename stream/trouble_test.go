package stream

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"

	"edge/stream/mqtt"
)

// reports waits until a disconnected node reports the reason, in its log and in its
// Stats.
func (d *daemon) reports(t *testing.T, why string) {
	t.Helper()
	eventually(t, "the node to report "+why, func() bool {
		s := d.Stats()
		return !s.Connected && strings.Contains(s.Failure, why) && strings.Contains(string(d.log.tail(1<<20)), why)
	})
}

// A node's certificate, and then the broker's, expire while they are connected.
// Their connection stays. The next one is refused, which both log; with renewed files
// the node connects by itself.
func TestCertificateExpires(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	sign := func(end time.Time) {
		a.sign("edge", end)
		a.sign("broker", end)
	}
	sign(time.Now())
	clients := x509.NewCertPool()
	clients.AddCert(a.Leaf)
	b := newMochi(t, &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(a.file("broker.pem"), a.file("broker.key"))
			return &pair, err
		},
		ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil)
	b.start(t)
	var (
		d     *daemon
		soon  time.Time
		ready bool
	)
	for life := 2 * time.Second; !ready; life *= 4 { // until they live long enough for this machine to connect
		soon = time.Now().Add(life)
		sign(soon)
		d = startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) {
			c.MQTT.Servers = []string{"mqtts://" + b.addr}
			c.MQTT.TLS = mqtt.TLS{CA: a.file("ca.pem"), Cert: a.file("edge.pem"), Key: a.file("edge.key"), ServerName: "broker.lan", MinVersion: "1.2"}
		})
		for !ready && time.Now().Before(soon) {
			ready = d.Stats().Subscribed
			time.Sleep(2 * time.Millisecond)
		}
		if !ready {
			d.stop()
		}
	}
	time.Sleep(time.Until(soon.Add(1100 * time.Millisecond))) // certificates know whole seconds
	if s := d.Stats(); !s.Connected || s.Reconnects > 0 {
		t.Errorf("the connection ended with the certificate: %+v", s)
	}
	d.cut()
	d.reports(t, "certificate has expired")
	d.reports(t, "check the clock of this machine")
	a.sign("broker", time.Time{})
	d.reports(t, "expired certificate") // the broker's word about the node's, which is still the old one
	a.sign("edge", time.Time{})
	eventually(t, "a new connection", func() bool { s := d.Stats(); return s.Connected && s.Failure == "" })
}

// changingHook admits one password, which can be changed.
type changingHook struct {
	auth.AllowHook
	password atomic.Value // string
}

func (h *changingHook) OnConnectAuthenticate(_ *mochi.Client, pk packets.Packet) bool {
	return len(pk.Connect.Password) == 0 || string(pk.Connect.Password) == h.password.Load() // the test's own client
}

// A password that is revoked while a node is connected is refused at the next
// connection; once the file holds the new one the node connects by itself, and
// receives the messages that were published meanwhile.
func TestPasswordRevoked(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/password"
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hook := new(changingHook)
	hook.password.Store("swordfish-1")
	write("swordfish-1")
	b := newMochi(t, nil, hook)
	b.start(t)
	d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) {
		c.MQTT.Username, c.MQTT.Password = "edge", mqtt.Secret{File: file}
	}).ready(t)
	hook.password.Store("swordfish-2")
	d.cut()
	d.reports(t, "check mqtt.username and mqtt.password")
	newProbe(t, b).send("factory/p7/vibration", each(20, withID)...)
	write("swordfish-2")
	eventually(t, "all to be learnt", func() bool { return len(d.model.learnt()) == 20 })
	equal(t, "learnt", slices.Sorted(slices.Values(d.model.learnt())), slices.Sorted(slices.Values(upTo(20)))) // the embedded broker repeats in another order
	if log := string(d.log.tail(1 << 20)); strings.Contains(log, "swordfish") {
		t.Errorf("a password is in the log:\n%s", log)
	}
}

// A network that takes a twentieth of a second for each kilobyte, in both
// directions, and longer than that for a while, costs time and nothing else.
func TestSlowBroker(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		r := newRelay(t, b.addr)
		r.slow.Store(int64(50 * time.Millisecond))
		d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) { c.MQTT.Servers = []string{"tcp://" + r.addr} }).ready(t)
		const n = 60
		p := newProbe(t, b, "edge/n1/bearing/prediction/#")
		p.send("factory/p7/vibration", each(n, withID)...)
		r.slow.Store(int64(500 * time.Millisecond))
		eventually(t, "some to be learnt", func() bool { return d.Stats().Learned >= 10 })
		r.slow.Store(0)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == n })
		d.model.hasLearnt(t, upTo(n))
		eventually(t, "all predictions", func() bool { return len(p.on("#")) == n })
		if s := d.Stats(); s.Reconnects > 0 || s.OutboxDropped > 0 {
			t.Errorf("%d reconnects, %d predictions dropped", s.Reconnects, s.OutboxDropped)
		}
	})
}

// Messages that overflow the broker's queue while the node is away are lost; those in
// the queue are learnt in order, and so are later ones.
func TestQueueOverflowWhileAway(t *testing.T) {
	withMosquitto(t, "max_queued_messages 30\n", func(t *testing.T, b *broker) {
		startNode(t, b, newFakeJournal(), nil).ready(t).stop()
		p := newProbe(t, b)
		p.send("factory/p7/vibration", each(200, withID)...)
		d := startNode(t, b, newFakeJournal(), nil).ready(t)
		p.send("factory/p7/vibration", each(201, withID)[200:]...)
		eventually(t, "the last to be learnt", func() bool {
			learnt := d.model.learnt()
			return len(learnt) > 0 && learnt[len(learnt)-1] == upTo(201)[200]
		})
		learnt := d.model.learnt()
		equal(t, "learnt", learnt[:len(learnt)-1], upTo(len(learnt)-1))
		if n := len(learnt); n < 20 || n > 60 {
			t.Errorf("%d were learnt, the broker's queue and window hold about 50", n)
		}
	})
}

// A broker that lets only one message be on its way is served one by one, each
// after its commit; nothing waits for the flush for ever.
func TestWindowOfOne(t *testing.T) {
	withMosquitto(t, "max_inflight_messages 1\n", func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) { c.JournalFlush = 5 * time.Millisecond }).ready(t)
		newProbe(t, b).send("factory/p7/vibration", each(50, withID)...)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == 50 })
		d.model.hasLearnt(t, upTo(50))
		if commits, _ := d.journal.committed(); commits != 50 {
			t.Errorf("%d commits, want one for each message", commits)
		}
	})
}

// However far learning is behind, every message of the broker is answered: no answer
// waits for a blocked learner, and no message is lost.
func TestAnswersDoNotWaitForLearning(t *testing.T) {
	withMosquitto(t, "max_inflight_messages 0\n", func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), nil).ready(t)
		block := make(chan struct{})
		d.model.mu.Lock()
		d.model.block = block
		d.model.mu.Unlock()
		const n = 800
		p := newProbe(t, b, "edge/n1/bearing/prediction/#")
		p.send("factory/p7/vibration", each(n, withID)...)
		eventually(t, "all predictions", func() bool { return len(p.on("#")) == n })
		if s := d.Stats(); s.Commit < n/2 || s.Ring > 0 || s.Unacked < n/2 {
			t.Errorf("%d wait for their commit, %d for their prediction, %d are not acknowledged", s.Commit, s.Ring, s.Unacked)
		}
		close(block)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Unacked == 0 && len(d.model.learnt()) == n })
		d.model.hasLearnt(t, upTo(n))
	})
}

// Held messages, between answer and commit, take up half of the ring. The same number
// waits in the ring; further messages wait at the broker, and are answered later.
func TestHeldIsBounded(t *testing.T) {
	withMosquitto(t, "max_inflight_messages 0\n", func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) { c.MQTT.Ring.MaxMessages = 20 }).ready(t)
		block := make(chan struct{})
		d.model.mu.Lock()
		d.model.block = block
		d.model.mu.Unlock()
		const n = 800
		p := newProbe(t, b, "edge/n1/bearing/prediction/#")
		for _, message := range each(n, withID) { // so that the answers keep pace
			p.send("factory/p7/vibration", message)
		}
		eventually(t, "the predictions", func() bool { return len(p.on("#")) >= n-20 })
		if s := d.Stats(); s.Commit > maxQueued+20+1 || s.Ring > 20 || d.overloads.Load() != 1 || s.Observed < n-maxQueued-100 {
			t.Errorf("%d wait for their commit, %d for their prediction; the ring was full %d times, %d were answered before their turn", s.Commit, s.Ring, d.overloads.Load(), s.Observed)
		}
		close(block)
		eventually(t, "all to be learnt", func() bool { return len(d.model.learnt()) == n })
		d.model.hasLearnt(t, upTo(n))
	})
}

// A consumer of predictions that is slower than they come loses the oldest of
// them, which is counted; the newest come.
func TestSlowConsumer(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		r := newRelay(t, b.addr)
		d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) {
			c.MQTT.Servers = []string{"tcp://" + r.addr}
			c.Outbox.MaxMessages = 40
		}).ready(t)
		r.slow.Store(int64(100 * time.Millisecond))
		p := newProbe(t, b, "edge/n1/bearing/prediction/#")
		entry := make([]string, 100)
		for i := range 8 {
			for k := range entry {
				entry[k] = fmt.Sprintf(`{"id":"s%d","features":[1,2]}`, 100*i+k)
			}
			p.send("factory/p7/vibration", `{"batch":[`+strings.Join(entry, ",")+`]}`)
		}
		eventually(t, "the outbox to overflow", func() bool { s := d.Stats(); return s.Predictions == 800 && s.OutboxDropped > 0 })
		r.slow.Store(0)
		eventually(t, "the newest", func() bool {
			got := p.on("#")
			return len(got) > 0 && strings.Contains(got[len(got)-1], `"id":"s799"`)
		})
		eventually(t, "the outbox to be empty", func() bool { return d.Stats().Outbox == 0 })
		if s, got := d.Stats(), len(p.on("#")); uint64(got)+s.OutboxDropped < 800 || got > 800 {
			t.Errorf("%d predictions came, %d are counted as dropped, of 800", got, s.OutboxDropped)
		}
	})
}
