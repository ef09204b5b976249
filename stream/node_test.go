package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// withID returns a labelled sample with an id.
func withID(n int) string {
	return fmt.Sprintf(`{"id":"s%d","features":[%d,0],"label":"ok"}`, n, n)
}

// upTo returns what the model learns from withID(0) to withID(n−1).
func upTo(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("ok %d", i))
	}
	return all
}

func each(n int, payload func(int) string) (all []string) {
	for i := range n {
		all = append(all, payload(i))
	}
	return all
}

func TestFlow(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), nil).ready(t)
		p := newProbe(t, b, "edge/#")
		const n = 300
		p.send("factory/p7/vibration", each(n, withID)...)
		eventually(t, "all predictions", func() bool { return len(p.on("edge/n1/bearing/prediction/p7")) == n })
		for i, s := range p.on("edge/n1/bearing/prediction/p7") {
			var got struct {
				ID, Node, Model, Device string
				Seq                     int
				Probs                   map[string]float64
				Learned                 bool
			}
			if err := json.Unmarshal([]byte(s), &got); err != nil {
				t.Fatal(err)
			}
			if got.ID != fmt.Sprintf("s%d", i) || got.Seq != i+1 || !got.Learned || got.Node != "n1" || got.Model != "bearing" || got.Device != "p7" {
				t.Fatalf("prediction %d = %s", i, s)
			}
		}
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == n })
		equal(t, "learnt", d.model.learnt(), upTo(n))
		eventually(t, "all to be acknowledged", func() bool { return d.Stats().Unacked == 0 })

		// What is retained is there for whoever comes later.
		eventually(t, "latest", func() bool { return len(p.on("edge/n1/bearing/latest")) > 0 })
		late := newProbe(t, b, "edge/#")
		eventually(t, "retained messages", func() bool {
			return len(late.on("edge/n1/state")) > 0 && len(late.on("edge/n1/info")) > 0 && len(late.on("edge/n1/bearing/latest")) > 0 && len(late.on("edge/n1/bearing/metrics")) > 0
		})
		if got := late.on("edge/n1/state")[0]; got != "online" {
			t.Errorf("state = %q", got)
		}
		var info struct {
			Version string
			Models  []struct {
				Name              string
				Features, Streams []string
			}
		}
		if err := json.Unmarshal([]byte(late.on("edge/n1/info")[0]), &info); err != nil || info.Version != "test" || len(info.Models) != 1 || info.Models[0].Name != "bearing" || len(info.Models[0].Features) != 2 {
			t.Errorf("info = %s, %v", late.on("edge/n1/info")[0], err)
		}

		// A clean stop ends with the final metrics and offline.
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		eventually(t, "offline", func() bool { return slices.Contains(p.on("edge/n1/state"), "offline") })
		metrics := p.on("edge/n1/bearing/metrics")
		var m struct {
			N        int
			Accuracy float64
			PerClass map[string]struct{ N, Recall float64 } `json:"per_class"`
		}
		if err := json.Unmarshal([]byte(metrics[len(metrics)-1]), &m); err != nil || m.N != n || m.Accuracy != 0.75 || m.PerClass["ok"].Recall != 1 {
			t.Errorf("final metrics = %s, %v", metrics[len(metrics)-1], err)
		}
	})
}

// A burst of labelled messages is not held up by the broker's window, which is
// 20 messages for mosquitto: all of it goes by in groups, not one a flush.
func TestWindow(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) { c.JournalFlush = 10 * time.Second }).ready(t)
		const n = 320 // twenty groups: none has to wait for the flush
		newProbe(t, b).send("factory/p7/vibration", each(n, withID)...)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == n })
		if commits, _ := d.journal.committed(); commits != n/16 {
			t.Errorf("%d commits, want %d", commits, n/16)
		}
	})
}

// A broker sends again what was not acknowledged, and that is all that was not
// committed.
func TestAckOnlyAfterCommit(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		journal := newFakeJournal()
		block := make(chan struct{})
		journal.set(nil, block)
		d := startNode(t, b, journal, nil).ready(t)
		const n = 40
		newProbe(t, b).send("factory/p7/vibration", each(n, withID)...)
		<-journal.entered
		d.cut() // nothing is acknowledged yet
		eventually(t, "another connection", func() bool { return d.Stats().Reconnects == 1 && d.Stats().Connected })
		eventually(t, "messages to come again", func() bool { return d.Stats().Received > 20 })
		journal.set(nil, nil)
		close(block)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == n && d.Stats().Unacked == 0 })
		equal(t, "learnt", d.model.learnt(), upTo(n))
		s := d.Stats()
		if s.Redelivered == 0 || s.StaleAcks == 0 || s.Redelivered+n != s.Received {
			t.Errorf("received %d, redelivered %d, stale acknowledgements %d: want each of %d learnt once", s.Received, s.Redelivered, s.StaleAcks, n)
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		// Another run of the node gets nothing more.
		again := startNode(t, b, journal, nil).ready(t)
		newProbe(t, b).send("factory/p7/vibration", withID(n))
		eventually(t, "one more", func() bool { return again.Stats().Learned == 1 })
		if got := again.Stats().Received; got != 1 {
			t.Errorf("received %d after a restart, want 1", got)
		}
	})
}

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
		equal(t, "learnt", again.model.learnt(), upTo(n))
	})
}

// A stop is clean although the model has not learnt yet what is committed.
func TestStopWhileLearning(t *testing.T) {
	b := newMochi(t, nil, nil)
	b.start(t)
	d := startNode(t, b, newFakeJournal(), nil).ready(t)
	d.model.mu.Lock()
	d.model.busy = true
	d.model.mu.Unlock()
	newProbe(t, b).send("factory/p7/vibration", each(5, withID)...)
	eventually(t, "all to be handed over", func() bool { return d.Stats().Learned == 5 && d.Stats().Unacked == 0 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// A stop in mid-stream ends although messages keep coming, and the next run
// carries on with the next message.
func TestStopInMidStream(t *testing.T) {
	withMosquitto(t, "max_queued_messages 0\n", func(t *testing.T, b *broker) {
		journal, stopped, sent := newFakeJournal(), make(chan struct{}), make(chan int)
		d := startNode(t, b, journal, nil).ready(t)
		p := newProbe(t, b)
		go func() {
			n := 0
			for running := true; running; n += 20 {
				for i := range 20 {
					p.client.Publish("factory/p7/vibration", 1, false, withID(n+i)).WaitTimeout(patience)
				}
				select {
				case <-stopped:
					running = false
				default:
				}
			}
			sent <- n
		}()
		eventually(t, "some to be learnt", func() bool { return d.Stats().Learned > 100 })
		err := d.stop()
		close(stopped)
		n := <-sent
		if err != nil {
			t.Error(err)
		}
		first := d.model.learnt()
		again := startNode(t, b, journal, nil)
		eventually(t, "all to be learnt", func() bool { return len(first)+int(again.Stats().Learned) == n })
		equal(t, "learnt", append(first, again.model.learnt()...), upTo(n))
		// A broker that is slower than closeFlush reads the last acknowledgements no
		// more: those few messages come again and teach nothing.
		if got := again.Stats().Redelivered + d.Stats().Redelivered; got > 20 {
			t.Errorf("%d came twice, more than are ever in flight: a clean stop acknowledges what it has learnt", got)
		}
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
		equal(t, "learnt", d.model.learnt(), upTo(100))
		eventually(t, "the all-clear", func() bool {
			e := p.on("edge/n1/event")
			return len(e) == 2 && strings.Contains(e[0], "store_degraded") && strings.Contains(e[1], "store_recovered")
		})
	})
}

// While the journal cannot be written the broker's window fills, and no more
// comes over it; what is published is answered all the same, and learnt once,
// in order, when the journal works again.
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
		p.send("factory/p7/vibration", each(sent, withID)[100:]...)
		eventually(t, "answers over it", func() bool { return d.Stats().Observed == 100 })
		if s := d.Stats(); s.Learned != 0 || s.Predictions < s.Observed {
			t.Errorf("learnt %d, predicted %d, observed %d", s.Learned, s.Predictions, s.Observed)
		}
		journal.set(nil, nil)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == sent })
		equal(t, "learnt", d.model.learnt(), upTo(sent))
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
			equal(t, "learnt", d.model.learnt(), upTo(3))
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
		equal(t, "learnt", again.model.learnt(), upTo(50))
	})
}

func TestPoisonOverTheWire(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), func(c *Config, m *ModelConfig) {
			c.Streams["vibration"] = threeFeatures()
			m.Model = newFakeModel(3)
		}).ready(t)
		p := newProbe(t, b, "edge/n1/bearing/reject")
		want := map[codec.Reason]uint64{}
		for payload, reason := range map[string]codec.Reason{
			"": codec.Empty, `{"features":[1,2`: codec.Malformed, `[1,2,3][1,2,3]`: codec.Malformed, "{\"id\":\"\xff\"}": codec.Malformed,
			strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000): codec.Malformed, strings.Repeat("[", 60000): codec.Malformed,
			`[1,2,3` + strings.Repeat(" ", 70000) + `]`: codec.TooLarge, `{"id":"` + strings.Repeat("a", 10<<20) + `"}`: codec.TooLarge,
			`[1,2,-Infinity]`: codec.NotANumber, `[1,2]`: codec.WrongDimension, `{"rms":1,"kurtosis":2}`: codec.MissingFeature,
			`{"features":[1,2,3],"lable":"ok"}`: codec.UnknownFeature, `{"features":[1,2,3],"label":"ok","label":"worn"}`: codec.Repeated,
			`{"features":[1,2,3],"label":""}`: codec.BadLabel, `{"features":[1,2,3],"label":"ok","weight":0}`: codec.BadWeight, `{"label":"ok"}`: codec.BadID,
		} {
			p.send("factory/p7/vibration", payload)
			want[reason]++
		}
		p.send("factory/p7/vibration", strings.Repeat("[", 10<<20), `{"features":[1,2,3],"label":"ok"}`)
		want[codec.TooLarge]++
		eventually(t, "the sample after them", func() bool { return d.Stats().Learned == 1 && d.Stats().Unacked == 0 })
		s := d.Stats()
		if !maps.Equal(s.Rejected, want) {
			t.Errorf("refused %v, want %v", s.Rejected, want)
		}
		if s.Reconnects != 0 {
			t.Errorf("%d reconnects, want none", s.Reconnects)
		}
		eventually(t, "samples of them", func() bool { return len(p.on("#")) >= rejectBurst })
		var reject struct{ Reason, Topic, Stream, Error string }
		if err := json.Unmarshal([]byte(p.on("#")[0]), &reject); err != nil || reject.Reason == "" || reject.Topic != "factory/p7/vibration" || reject.Stream != "vibration" || reject.Error == "" {
			t.Errorf("reject = %s, %v", p.on("#")[0], err)
		}
	})
}

func TestRetainedIsIgnored(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		p := newProbe(t, b, "factory/#")
		p.wait(p.client.Publish("factory/p7/vibration", 1, true, withID(7)))
		eventually(t, "the broker to have sent it to whom it concerns now", func() bool { return len(p.on("#")) == 1 })
		d := startNode(t, b, newFakeJournal(), nil)
		eventually(t, "the retained message", func() bool { return d.Stats().Rejected[codec.Retained] == 1 })
		p.send("factory/p7/vibration", withID(0))
		eventually(t, "a sample", func() bool { return d.Stats().Learned == 1 })
		equal(t, "learnt", d.model.learnt(), upTo(1))
	})
}

func TestLabelsAndBatchesOverTheWire(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), nil).ready(t)
		p := newProbe(t, b)
		p.send("factory/p1/vibration", `{"batch":[{"id":"a","features":[1,0]},{"id":"b","f0":2,"f1":0},{"features":[3,0],"label":"ok"}]}`)
		p.send("factory/p2/vibration", `{"id":"a","features":[4,0]}`)
		p.send("factory/p2/label", `{"id":"a","label":"worn"}`)
		p.send("edge/n1/bearing/label", `{"id":"a","label":"ok"}`, `{"id":"z","label":"ok"}`)
		p.send("edge/n1/bearing/label/p1", `{"id":"b","label":"worn"}`)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == 4 && d.Stats().Unacked == 0 })
		learnt := d.model.learnt()
		slices.Sort(learnt) // the order between topics is the broker's
		equal(t, "learnt", learnt, []string{"ok 1", "ok 3", "worn 2", "worn 4"})
		if got := d.Stats().Rejected; got[codec.UnknownID] != 1 || len(got) != 1 {
			t.Errorf("refused %v, want the label for z", got)
		}
	})
}

// orderHook remembers in which order a broker was asked what.
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
	equal(t, "the broker was asked", told(), []string{fmt.Sprintf("%d subscriptions", len(d.client.Filters)), "online"})
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
		eventually(t, "the ring to overflow", func() bool { return d.Stats().Redeliveries > 0 })
		journal.set(nil, nil)
		close(block)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == n })
		equal(t, "learnt", d.model.learnt(), upTo(n))
		if s := d.Stats(); s.Reconnects == 0 || s.RingDropped != 0 {
			t.Errorf("%d reconnects, %d dropped", s.Reconnects, s.RingDropped)
		}
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

func TestQoS0OverTheWire(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) { c.MQTT.QoS, c.MQTT.PersistentSession = 0, false }).ready(t)
		p := newProbe(t, b, "edge/n1/bearing/prediction/#")
		for i := range 50 {
			p.wait(p.client.Publish("factory/p7/vibration", 0, false, withID(i)))
		}
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == 50 })
		eventually(t, "all predictions", func() bool { return len(p.on("#")) == 50 })
	})
}

func TestStopWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	d := startNode(t, &broker{addr: freePort(t)}, newFakeJournal(), nil)
	eventually(t, "an attempt", func() bool { return d.Stats().ConnectFailures > 0 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	// One that accepts and says nothing.
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

// The node adds nothing to what it is sent: after a stream its model is, byte
// for byte, the one that a learner makes of the same samples.
func TestLearnsTheStreamExactly(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		cfg := online.DefaultConfig()
		cfg.Features, cfg.Inducing, cfg.Batch.MaxWait = []string{"f0", "f1"}, 10, 0
		direct, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		learner, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		loop := online.NewLoop(learner, online.LoopOptions{Model: "bearing", Queue: 4})
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { loop.Run(ctx) })
		d := startNode(t, b, newFakeJournal(), func(_ *Config, m *ModelConfig) {
			m.Model, m.Batch, m.Classes = loop, cfg.Batch, cfg.Classes
		}).ready(t)
		rnd := rand.New(rand.NewPCG(1, 1))
		const n = 300
		payloads := each(n, func(i int) string {
			label := i % 2
			x := []float64{rnd.NormFloat64() + 3*float64(label), rnd.NormFloat64()}
			direct.Add(&online.Event{Kind: online.Observe, X: x, Label: fmt.Sprint("c", label)})
			text, _ := json.Marshal(map[string]any{"id": i, "features": x, "label": fmt.Sprint("c", label)})
			return string(text)
		})
		p := newProbe(t, b)
		p.send("factory/p7/vibration", payloads[:150]...)
		d.cut()
		p.send("factory/p7/vibration", payloads[150:]...)
		eventually(t, "all to be learnt", func() bool { return d.Stats().Learned == n && d.Stats().Unacked == 0 })
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		cancel()
		wg.Wait()
		if got, want := learner.Digest(), direct.Digest(); got != want {
			t.Errorf("digest %s, want %s", got, want)
		}
		if s := loop.Status().Scores; s.N != n || s.Error > 0.3 {
			t.Errorf("judged %d with an error of %v", s.N, s.Error)
		}
	})
}
