package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/online"
	"edge/stream/codec"
)

// withID returns a labelled sample with an id.
func withID(n int) string {
	return fmt.Sprintf(`{"id":"s%d","features":[%d,0],"label":"ok"}`, n, n)
}

// upTo returns the observations of withID(0) to withID(n−1).
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
		d.model.hasLearnt(t, upTo(n))
		eventually(t, "all to be acknowledged", func() bool { return d.Stats().Unacked == 0 })

		// A later client receives the retained messages.
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

// A broker sends unacknowledged messages again, and these are the uncommitted ones.
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
		d.model.hasLearnt(t, upTo(n))
		s := d.Stats()
		if s.Redelivered == 0 || s.Redelivered+n != s.Received {
			t.Errorf("received %d, redelivered %d: want each of %d learnt once", s.Received, s.Redelivered, n)
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

// A stop is clean although the model has not yet learnt all committed records.
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

// A stop is clean although the model takes no records any more: the journal has them, and the next
// run begins with them. Nothing is lost or learnt twice.
func TestStopBehind(t *testing.T) {
	b := newMochi(t, nil, nil)
	b.start(t)
	journal := newFakeJournal()
	d := startNode(t, b, journal, nil).ready(t)
	d.model.mu.Lock()
	d.model.block = make(chan struct{})
	d.model.mu.Unlock()
	const n = 100
	newProbe(t, b).send("factory/p7/vibration", each(n, withID)...)
	eventually(t, "messages to wait for the model", func() bool { return d.Stats().Commit > 0 })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if !d.committer.clean {
		t.Error("messages that had been received are left, and the windows in progress are not stored")
	}
	_, kept := journal.committed()
	if owed := len(d.models[0].owed); owed != kept || len(d.model.learnt()) > 0 {
		t.Errorf("the journal has %d records, of which the model is owed %d", kept, owed)
	}
	if text := d.log.tail(3000); !strings.Contains(string(text), "the model is still learning committed records; its last metrics are without them") {
		t.Errorf("the log does not say that the model is behind, and its metrics with it:\n%s", text)
	}
	again := startNode(t, b, journal, nil)
	eventually(t, "all to be committed", func() bool { _, now := journal.committed(); return now == n })
	eventually(t, "the rest to be learnt", func() bool { return len(again.model.learnt()) >= n-kept })
	learnt, want := again.model.learnt(), upTo(n)[kept:]
	slices.Sort(learnt) // the order in which the broker repeats what was in flight is its own
	slices.Sort(want)
	equal(t, "learnt", learnt, want)
}

// A node that another one replaces does not wait for a model that is behind: it goes on under the next.
func TestReplacedBehind(t *testing.T) {
	b := newMochi(t, nil, nil)
	b.start(t)
	d := startNode(t, b, newFakeJournal(), nil).ready(t)
	d.model.mu.Lock()
	d.model.busy = true
	d.model.mu.Unlock()
	d.end(ErrReplaced)
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if text := string(d.log.tail(3000)); strings.Contains(text, "the model is still learning") {
		t.Errorf("the log tells of a next start:\n%s", text)
	}
}

// A stop that leaves messages is clean where the journal works: the disk is slow, or the broker has not told its cursor.
func TestStopThatLeavesMessages(t *testing.T) {
	cfg, m := testConfig()
	log := &lockedBuffer{}
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Log: slog.New(slog.NewTextHandler(log, nil))})
	node.committer.told = slow
	if err := node.unfinished(3); err != nil {
		t.Error(err)
	}
	if text := string(log.tail(1000)); !strings.Contains(text, "come again") || !strings.Contains(text, "messages=3") {
		t.Errorf("logged: %s", text)
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
		eventually(t, "all to be learnt", func() bool { return len(first)+len(again.model.learnt()) == n })
		equal(t, "learnt", append(first, again.model.learnt()...), upTo(n))
		// A broker that is slower than closeFlush reads the last acknowledgements no
		// more: those few messages come again and are not learnt.
		if got := again.Stats().Redelivered + d.Stats().Redelivered; got > 20 {
			t.Errorf("%d came twice, more than are ever in flight: a clean stop acknowledges what it has learnt", got)
		}
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
		d.model.hasLearnt(t, upTo(1))
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
		eventually(t, "all to be learnt", func() bool { return len(d.model.learnt()) == 4 && d.Stats().Unacked == 0 })
		learnt := d.model.learnt()
		slices.Sort(learnt) // the order between topics is the broker's
		equal(t, "learnt", learnt, []string{"ok 1", "ok 3", "worn 2", "worn 4"})
		if got := d.Stats().Rejected; got[codec.UnknownID] != 1 || len(got) != 1 {
			t.Errorf("refused %v, want the label for z", got)
		}
	})
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

// The node does not change the stream: its model is, byte for byte, that of a learner
// with the same samples.
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
		eventually(t, "all to be committed", func() bool { return d.Stats().Learned == n && d.Stats().Unacked == 0 })
		eventually(t, "all to be learnt", func() bool { return loop.Status().Scores.N == n }) // a stop leaves to the next start what the loop has no room for
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
