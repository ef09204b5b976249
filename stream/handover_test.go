package stream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/online/conformal"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// handOver stops a rig's node and starts one that inherits its state.
func (r *rig) handOver(cfg Config, models ...ModelConfig) *rig {
	r.t.Helper()
	next := &rig{t: r.t, journal: r.journal, models: r.models}
	next.node = newTestNode(r.t, cfg, Deps{Models: models, Journal: r.journal, After: r.node})
	r.stop()
	next.node.Inherit()
	next.start()
	return next
}

// Long: one sequence of messages.
func TestHandover(t *testing.T) {
	in("samples wait on, predictions are counted on", t, func(t *testing.T) {
		cfg, m := testConfig()
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("factory/a/vibration", `{"id":"1","features":[1,0]}`, `{"id":"2","features":[2,0]}`)
		time.Sleep(time.Second)
		cfg.Streams = map[string]codec.Stream{"shaking": cfg.Streams["vibration"]} // the same under another name
		m.Streams = []string{"shaking"}
		r = r.handOver(cfg, m)
		r.send("factory/a/label", `{"id":"2","label":"worn"}`)
		r.sendMessage(&mqtt.Message{Topic: "factory/a/vibration", Payload: []byte(`{"id":"2","features":[2,0]}`), QoS: 1, Dup: true})
		r.send("factory/a/vibration", `{"id":"3","features":[3,0],"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2", "ok 3"})
		var last string
		for _, p := range r.published() {
			if strings.HasPrefix(p.Topic, "edge/n1/bearing/prediction") {
				last = string(p.Payload)
			}
		}
		if seq := gjson.Get(last, "seq").Int(); seq != 4 {
			t.Errorf("the last prediction is %s, want seq 4", last)
		}
		s := r.node.Stats()
		if s.Predictions != 4 || s.Models["bearing"].Learned != 2 || s.Streams["shaking"].Received != 2 || s.Streams["vibration"].Received != 2 {
			t.Errorf("the counters do not go on: %+v", s)
		}
		if s.Streams["shaking"].Ended || !s.Streams["vibration"].Ended {
			t.Errorf("stream vibration has ended, and shaking has not: %+v", s.Streams)
		}
	})
	in("what was not committed is as if it had not come", t, func(t *testing.T) {
		cfg, m := testConfig()
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("factory/a/vibration", `{"id":"1","features":[1,0]}`)
		time.Sleep(time.Second)
		r.journal.set(errors.New("the disk is gone"), nil)
		r.send("factory/a/label", `{"id":"1","label":"worn"}`)
		r.send("factory/a/vibration", `{"id":"2","features":[2,0]}`)
		time.Sleep(time.Second)
		next := r.handOver(cfg, m)
		equal(t, "acknowledged", r.acks(), []string{`{"id":"1","features":[1,0]}`})
		r.journal.set(nil, nil)
		next.send("factory/a/label", `{"id":"1","label":"worn"}`) // the broker sends both again
		next.send("factory/a/vibration", `{"id":"2","features":[2,0]}`)
		time.Sleep(time.Second)
		equal(t, "learnt", next.models["bearing"].learnt(), []string{"worn 1"})
		equal(t, "events", next.events(), []string{"store_degraded: the disk is gone", "store_recovered: "})
		if n := next.node.Stats().Models["bearing"].Pending; n != 1 {
			t.Errorf("%d samples wait, want the second", n)
		}
	})
	in("what the model could not take is handed over", t, func(t *testing.T) {
		cfg, m := testConfig()
		model := m.Model.(*fakeModel)
		model.block = make(chan struct{})
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("factory/a/vibration", labelled(1))
		time.Sleep(time.Second)
		next := r.handOver(cfg, m)
		equal(t, "learnt", model.learnt(), nil)
		close(model.block)
		next.send("factory/a/vibration", labelled(2))
		time.Sleep(time.Second)
		equal(t, "learnt", model.learnt(), []string{"ok 1", "ok 2"})
	})
	in("learning that was switched off stays off", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("edge/n1/request/freeze", `{}`)
		time.Sleep(time.Second)
		r = r.handOver(cfg, m)
		r.send("factory/a/vibration", labelled(1))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), nil)
		if r.node.Stats().Models["bearing"].Learning {
			t.Error("it says that it learns")
		}
		r.send("edge/n1/request/unfreeze", `{}`)
		r.send("factory/a/vibration", labelled(2))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2"})
	})
	in("values wait on for others", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := codec.DefaultStream()
		s.Topics, s.TopicTemplate, s.Format, s.Features = []string{"plant/+"}, "plant/"+codec.FeatureLevel, codec.FormatValue, []string{"a", "b"}
		cfg.Streams, cfg.Labels = map[string]codec.Stream{"plant": s}, nil
		m.Streams = []string{"plant"}
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("plant/a", "1")
		time.Sleep(time.Second)
		cfg.Metrics.Samples++
		r = r.handOver(cfg, m)
		r.send("plant/b", "2")
		time.Sleep(time.Second)
		if n := r.node.Stats().Predictions; n != 1 {
			t.Errorf("%d predictions, want 1", n)
		}
	})
}

// TestHandoverWhileTheModelIsSlow ends two nodes, one after the other, before a model has taken the labels
// of the first.
func TestHandoverWhileTheModelIsSlow(t *testing.T) {
	in("the model gets every record, in order", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Batch.MaxWait = 50 * time.Millisecond
		slow, ready := m.Model.(*fakeModel), make(chan struct{})
		slow.block = ready
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, labelled(1))
		time.Sleep(time.Second)
		r = r.handOver(cfg, m)
		time.Sleep(time.Second)
		go func() { // when the second node has given up handing them over, and still runs
			time.Sleep(drainWithin - time.Millisecond)
			slow.mu.Lock()
			defer slow.mu.Unlock()
			slow.block = nil
		}()
		r.handOver(cfg, m)
		time.Sleep(time.Second)
		equal(t, "learnt", slow.learnt()[:2], []string{"ok 1", "|"})
		for i := range slow.learnt() {
			if seq := slow.record(i).Seq; seq != uint64(i+1) {
				t.Fatalf("record %d of the journal is learnt after %d others", seq, i)
			}
		}
	})
}

// Records that a model is owed come before later ones, and are owed again if it does not take them.
func TestOwedRecordsComeFirst(t *testing.T) {
	cfg, m := testConfig()
	r := newRig(t, newFakeJournal(), cfg, m)
	r.stop()
	c, to := r.node.committer, r.node.models[0]
	record := func(seq uint64) []online.Record {
		return []online.Record{{Model: m.Name, Seq: seq, Event: online.Event{Kind: online.Observe, X: []float64{float64(seq), 0}, Label: "ok"}}}
	}
	slow := m.Model.(*fakeModel)
	slow.block = make(chan struct{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.serving = ended
	for seq := range uint64(2) {
		c.learn(to, record(seq+1))
	}
	slow.block = nil
	c.serving = t.Context()
	c.learn(to, record(3))
	equal(t, "learnt", slow.learnt(), []string{"ok 1", "ok 2", "ok 3"})
	if len(to.owed) > 0 {
		t.Errorf("%d records are owed", len(to.owed))
	}
}

func TestHandoverClears(t *testing.T) {
	cfg, m := testConfig()
	cfg.HomeAssistant.Enabled = true
	other := m
	other.Name, other.Model = "pump", newFakeModel(2)
	old := newTestNode(t, cfg, Deps{Models: []ModelConfig{m, other}, Journal: newFakeJournal()})
	cfg.Labels = nil
	next := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), After: old})
	next.Inherit()
	var cleared []string
	for _, p := range drainOutbox(next.outbox) {
		if len(p.Payload) == 0 && p.Retained {
			cleared = append(cleared, p.Topic)
		}
	}
	slices.Sort(cleared)
	equal(t, "cleared", cleared, []string{"edge/n1/pump/latest", "edge/n1/pump/metrics", "homeassistant/device/edge_n1_pump/config"})
}

// The published prediction sets are counted on, and their threshold goes on.
func TestHandoverOfPublishedSets(t *testing.T) {
	cfg, m := testConfig()
	old := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	u := conformal.Uncertainty{Coverage: 0.9, Quantile: 0.5, Threshold: 0.5}
	aim := &old.model("bearing").aim
	aim.Threshold(u)
	aim.JudgeNow(false, 1)
	want := aim.Threshold(u).Threshold
	next := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), After: old})
	next.Inherit()
	if n := next.Stats().Models["bearing"].Sets.N; n != 1 {
		t.Errorf("%d sets were judged, want 1", n)
	}
	if got := next.model("bearing").aim.Threshold(u).Threshold; got != want || got == u.Threshold {
		t.Errorf("the threshold is %v, want %v, which is not %v", got, want, u.Threshold)
	}
}

// Names that streams had before are not taken by others.
func TestIdentities(t *testing.T) {
	stream := func(topic string) codec.Stream {
		s := codec.DefaultStream()
		s.Topics, s.Dimension = []string{topic}, 2
		return s
	}
	node := func(after *Node, streams map[string]codec.Stream) *Node {
		cfg, m := testConfig()
		cfg.Streams, cfg.Labels, m.Streams = streams, nil, nil
		for name := range streams {
			m.Streams = append(m.Streams, name)
		}
		m.Classes = online.Classes{Open: true, Max: 4}
		return newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), After: after})
	}
	first := node(nil, map[string]codec.Stream{"a": stream("x"), "b": stream("y")})
	second := node(first, map[string]codec.Stream{"c": stream("x"), "b": stream("z")})
	third := node(second, map[string]codec.Stream{"c": stream("x"), "b": stream("z"), "a": stream("v")})
	for name, want := range map[string]string{"c": "a", "b": "b", "a": "a'"} {
		for _, s := range third.sources {
			if s.name == name && s.identity != want {
				t.Errorf("stream %s has identity %s, want %s", name, s.identity, want)
			}
		}
	}
}
