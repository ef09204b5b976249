package stream

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
)

// A message over which the program panics is refused: it would come again after
// every restart.
func TestPanicOverAMessage(t *testing.T) {
	const words = "an error of the program"
	hearing := func(d *Deps) {
		d.OnPrediction = func(p *Prediction) {
			if p.ID == "poison" {
				panic(words)
			}
		}
	}
	committing := func(d *Deps) {
		calls := 0
		d.Journal = askedJournal{d.Journal, func() {
			if calls++; calls == 2 {
				panic(words)
			}
		}}
	}
	in("when it is answered: is counted, acknowledged and does not stop the stream", t, func(t *testing.T) { panicOverAMessage(t, words, hearing) })
	in("when it is committed: the same", t, func(t *testing.T) { panicOverAMessage(t, words, committing) })
}

// askedJournal calls asked at the beginning of Seen.
type askedJournal struct {
	Journal
	asked func()
}

func (j askedJournal) Seen(model string, key uint64) bool {
	j.asked()
	return j.Journal.Seen(model, key)
}

// panicOverAMessage sends three messages, over the second of which poison panics.
func panicOverAMessage(t *testing.T, words string, poison func(*Deps)) {
	cfg, m := testConfig()
	var log bytes.Buffer
	r := &rig{t: t, journal: newFakeJournal(), models: map[string]*fakeModel{m.Name: m.Model.(*fakeModel)}}
	deps := Deps{Models: []ModelConfig{m}, Journal: r.journal, Log: slog.New(slog.NewTextHandler(&log, nil))}
	poison(&deps)
	r.node = newTestNode(t, cfg, deps)
	r.start()
	r.send(p7, `{"id":"a","features":[1,2],"label":"ok"}`, `{"id":"poison","features":[1,2],"label":"ok"}`, `{"id":"b","features":[3,4],"label":"ok"}`)
	time.Sleep(time.Second)
	r.stop()
	if s := r.node.Stats(); s.Rejected[codec.Fault] != 1 || s.Predictions != 3 || len(r.acks()) != 3 {
		t.Errorf("refused %v, %d predictions, acknowledged %q", s.Rejected, s.Predictions, r.acks())
	}
	equal(t, "learnt", r.models[m.Name].learnt(), []string{"ok 1", "ok 3"})
	if !strings.Contains(log.String(), words) || !strings.Contains(log.String(), "stack=") {
		t.Errorf("the log does not tell where:\n%s", &log)
	}
}

func TestPoison(t *testing.T) {
	in("is acknowledged, counted, sampled and does not stop the stream", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.MQTT.Ring.MaxBytes = 32 << 20 // holds the largest of them
		r := newRig(t, newFakeJournal(), cfg, m)
		want := map[codec.Reason]uint64{}
		var sent []string
		for _, c := range []struct {
			payload string
			reason  codec.Reason
		}{
			{"", codec.Empty}, {"{", codec.Malformed}, {"[1]", codec.WrongDimension}, {"[1,NaN]", codec.NotANumber}, {"[1,1e999]", codec.NotANumber}, {`{"f0":1}`, codec.MissingFeature},
			{`{"f0":1,"f1":2,"f2":3}`, codec.UnknownFeature}, {`{"f0":1,"f0":1,"f1":2}`, codec.Repeated}, {`{"features":[1,2],"label":3.5}`, codec.BadLabel},
			{`{"features":[1,2],"label":{}}`, codec.BadLabel}, {`{"features":[1,2],"id":[]}`, codec.BadID}, {strings.Repeat(" ", 10<<20), codec.TooLarge},
			{`{"id":"z","label":"ok"}`, codec.UnknownID},
		} {
			r.send(p7, c.payload)
			want[c.reason]++
			sent = append(sent, c.payload)
			r.send(p7, "[1,2]")
			sent = append(sent, "[1,2]")
		}
		r.send("elsewhere", "[1,2]")
		want[codec.Unrouted]++
		r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte("[1,2]"), QoS: 1, Retained: true})
		want[codec.Retained]++
		sent = append(sent, "[1,2]", "[1,2]")
		time.Sleep(time.Second)
		s := r.node.Stats()
		for _, reason := range codec.Reasons() {
			if s.Rejected[reason] != want[reason] {
				t.Errorf("%s: %d, want %d", reason, s.Rejected[reason], want[reason])
			}
		}
		if s.Predictions != 13 {
			t.Errorf("%d predictions, want 13", s.Predictions)
		}
		equal(t, "acknowledged", r.acks(), sent)
		if got := r.rejects(); len(got) != 14 || s.RejectsDropped != 0 {
			t.Errorf("%d rejects published and %d dropped, want every one of a kind: %v", len(got), s.RejectsDropped, got)
		}
		for range rejectBurst + 3 {
			r.send(p7, "x")
		}
		time.Sleep(time.Second)
		if got, dropped := len(r.rejects()), r.node.Stats().RejectsDropped; got < rejectBurst-1 || got > rejectBurst+1 || uint64(got)+dropped != rejectBurst+3 {
			t.Errorf("of %d of a kind %d published, %d dropped", rejectBurst+3, got, dropped)
		}
		time.Sleep(10 * time.Second)
		r.send(p7, "x")
		time.Sleep(time.Second)
		equal(t, "rejects after a while", r.rejects(), []string{"malformed"})
	})
}

func TestQoS0(t *testing.T) {
	in("is answered while the journal is stuck; as many examples as a quarter of the ring wait, and the others are counted as lost", t, func(t *testing.T) {
		cfg, m := testConfig()
		r, quarter := newRig(t, newFakeJournal(), cfg, m), uint64(cfg.MQTT.Ring.MaxMessages/4)
		block := make(chan struct{})
		r.journal.set(nil, block)
		const n = 1000
		for i := range n {
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(labelled(i)), QoS: 0})
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(time.Minute)
		if got := r.node.Stats().Predictions; got != n {
			t.Errorf("%d predictions, want %d", got, n)
		}
		close(block)
		time.Sleep(time.Minute)
		s := r.node.Stats()
		if s.Learned+s.ExamplesDropped != n || s.ExamplesDropped == 0 || s.Learned < maxQueued+quarter || s.Learned > maxQueued+quarter+10 {
			t.Errorf("learnt %d, dropped %d, want both, together %d, and a few more than %d learnt", s.Learned, s.ExamplesDropped, n, maxQueued+quarter)
		}
	})
	in("those that wait neither drop nor delay messages of QoS 1", t, func(t *testing.T) {
		r := one(t)
		block := make(chan struct{})
		r.journal.set(nil, block)
		const n = 1000
		for i := range n {
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(labelled(i)), QoS: byte(i % 10 / 9)})
			if i%50 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(time.Minute)
		if got := r.node.Stats().Predictions; got != n {
			t.Errorf("%d predictions, want %d", got, n)
		}
		close(block)
		time.Sleep(time.Minute)
		if s := r.node.Stats(); s.Learned+s.ExamplesDropped != n || s.ExamplesDropped == 0 {
			t.Errorf("learnt %d, dropped %d, want both and together %d", s.Learned, s.ExamplesDropped, n)
		}
		acked := r.acks()
		for i := 9; i < n; i += 10 {
			if !slices.Contains(acked, labelled(i)) {
				t.Errorf("the message %d of QoS 1 is not acknowledged", i)
			}
		}
	})
}

// TestNewestOfQoS0 holds labels with the id last against samples of QoS 0 that teach nothing, without ids,
// which came while the journal was stuck.
func TestNewestOfQoS0(t *testing.T) {
	stuck := func(t *testing.T, labelledToo int) *rig {
		r := one(t)
		block := make(chan struct{})
		r.journal.set(nil, block)
		send := func(payload string) {
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(payload), QoS: 0})
			if r.sent%50 == 0 {
				time.Sleep(time.Second)
			}
		}
		r.send(p7, labelled(0))
		time.Sleep(time.Second)
		for i := range labelledToo {
			send(labelled(i + 1))
		}
		for i := range 300 {
			send(fmt.Sprintf("[%d,0]", 1000+i))
		}
		time.Sleep(time.Second)
		if held := r.node.counts.held.Load(); labelledToo == 0 && held > 1 {
			t.Errorf("%d samples are held, want the newest alone", held)
		}
		r.send("edge/n1/bearing/label", `{"id":"last","label":"worn"}`)
		time.Sleep(time.Second)
		close(block)
		time.Sleep(time.Minute)
		return r
	}
	in("it is for the newest", t, func(t *testing.T) {
		equal(t, "learnt", stuck(t, 0).models["bearing"].learnt(), []string{"ok 0", "worn 1299"})
	})
	in("it is refused where the newest was dropped", t, func(t *testing.T) {
		r := stuck(t, 1000)
		if s := r.node.Stats(); s.ExamplesDropped == 0 || s.Rejected[codec.UnknownID] != 1 {
			t.Errorf("%d labels were dropped and %d refused, want some and 1", s.ExamplesDropped, s.Rejected[codec.UnknownID])
		}
		if learnt := r.models["bearing"].learnt(); slices.ContainsFunc(learnt, func(s string) bool { return strings.HasPrefix(s, "worn") }) {
			t.Errorf("the label taught an older sample: %v", learnt[len(learnt)-1])
		}
	})
}

// The one held sample that knows of newer ones which were dropped, of another stream, is not replaced: a
// label for the newest of that stream would teach an older one.
func TestNewestOfAnotherStream(t *testing.T) {
	cfg, m := testConfig()
	r := newRig(t, newFakeJournal(), cfg, m)
	r.stop()
	w, from := r.node.worker, &source{}
	sample := func() *item {
		return &item{msg: &mqtt.Message{Payload: []byte("[1,2]")}, examples: []example{{from: from}}, idle: true}
	}
	knows := sample()
	knows.stale = true
	w.held = []*item{knows}
	for range 3 {
		w.forward(sample())
	}
	if len(w.held) != 2 || !w.held[0].stale || w.held[1].stale {
		t.Errorf("%d are held, want the one that knows of dropped samples, and the newest", len(w.held))
	}
}

// A message on a topic that MQTT forbids, which some brokers forward, is refused and
// acknowledged: without the acknowledgement it would come again on every connection.
func TestForbiddenTopics(t *testing.T) {
	cfg, m := testConfig()
	r := newRig(t, newFakeJournal(), cfg, m)
	topics := []string{"", "factory/+/vibration", "factory/#/vibration", "factory/\xff/vibration", "factory/\x00/vibration"}
	for i, topic := range topics {
		r.sendMessage(&mqtt.Message{Topic: topic, Payload: fmt.Appendf(nil, `{"id":"%d","features":[1,2],"label":"ok"}`, i), QoS: 1})
	}
	r.send("factory/p7/vibration", `{"id":"last","features":[1,2],"label":"ok"}`)
	eventually(t, "all to be acknowledged, and one to be learnt", func() bool { return len(r.acks()) == len(topics)+1 && r.node.Stats().Learned == 1 })
	if s := r.node.Stats(); s.Rejected[codec.BadTopic] != uint64(len(topics)) || s.Learned != 1 {
		t.Errorf("%d refused, %d learnt, want %d and 1", s.Rejected[codec.BadTopic], s.Learned, len(topics))
	}
}

// A cache of names ignores names that are longer than those of any device.
func TestLongNamesAreNotRemembered(t *testing.T) {
	var in map[string]int
	long := strings.Repeat("x", maxCachedName)
	putBounded(&in, long, 1)
	putBounded(&in, long+"x", 2)
	if len(in) != 1 || in[long] != 1 {
		t.Errorf("%d are remembered, want the first", len(in))
	}
}
