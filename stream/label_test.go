package stream

import (
	"context"
	"errors"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
)

// A label that is given in the process goes the way of one on the label topic.
func TestLabel(t *testing.T) {
	label := func(id, class string) LateLabel {
		return LateLabel{Model: "bearing", Device: "p7", ID: id, Label: class, Source: "page"}
	}
	in("is learnt when it is durable", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, `{"id":"a","features":[1,0]}`, `{"id":7,"features":[2,0]}`, `{"features":[3,0]}`)
		time.Sleep(time.Second)
		for _, l := range []LateLabel{label("7", "worn"), label("a", "ok"), label("last", "ok")} {
			if err := r.node.Label(t.Context(), l); err != nil {
				t.Errorf("label %s: %v", l.ID, err)
			}
		}
		if commits, records := r.journal.committed(); records != 3 {
			t.Errorf("%d records in %d commits once the labels are durable, want 3", records, commits)
		}
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2", "ok 1", "ok 3"})
	})
	in("reports why it is refused", t, func(t *testing.T) {
		r := one(t)
		for l, want := range map[LateLabel]codec.Reason{
			label("unknown", "ok"):              codec.UnknownID,
			label("", "ok"):                     codec.BadID,
			label("a", ""):                      codec.BadLabel,
			{Model: "bearing", ID: "a"}:         codec.BadLabel,
			{Model: "pump", ID: "a"}:            "",
			{Model: "bearing", Device: "#"}:     "",
			{Model: "bearing", Device: "a\x00"}: "",
		} {
			err := r.node.Label(t.Context(), l)
			var why *codec.Refusal
			if errors.As(err, &why); err == nil || why == nil && want != "" || why != nil && why.Reason != want {
				t.Errorf("%+v: %v, want %q", l, err, want)
			}
		}
	})
	in("waits no longer than it may", t, func(t *testing.T) {
		r := one(t)
		r.journal.set(errDiskFull, nil)
		r.send(p7, `{"id":"a","features":[1,0]}`)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := r.node.Label(ctx, label("a", "ok")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("on a full disk: %v", err)
		}
		r.journal.set(nil, nil)
		time.Sleep(10 * time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
	})
	in("is refused by a full queue", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.MQTT.Ring.MaxMessages = 1
		node, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
		if err != nil {
			t.Fatal(err)
		}
		node.ring.Push(&mqtt.Message{Topic: p7, QoS: 1}, nil)
		if err := node.Label(t.Context(), label("a", "ok")); !errors.Is(err, ErrBusy) {
			t.Errorf("with a full queue: %v", err)
		}
	})
}

// A topic under labels may be that of a model's labels: what its entry reads, the model's own rule does not refuse.
func TestLabelsOnOwnTopic(t *testing.T) {
	in("a word, and an object", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Labels[0].Topics, cfg.Labels[0].TopicTemplate, cfg.Labels[0].Last = []string{"edge/n1/bearing/label"}, "", true
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, `{"features":[1,0]}`)
		r.send("edge/n1/bearing/label", "worn")
		r.send(p7, `{"features":[2,0]}`)
		r.send("edge/n1/bearing/label", `{"id":"last","label":"ok"}`, `{"label":[]}`)
		r.send("edge/n1/bearing/label/p7", "worn")
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 1", "ok 2"})
		equal(t, "rejects", r.rejects(), []string{"bad_label", "bad_label", "malformed"})
	})
	in("of a device, which the entry does not know", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Labels[0].Topics, cfg.Labels[0].TopicTemplate, cfg.Labels[0].Last = []string{"edge/n1/bearing/label/#"}, "", true
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("factory/p8/vibration", `{"id":"a","features":[2,0]}`)
		r.send(p7, `{"id":"a","features":[1,0]}`)
		r.send("edge/n1/bearing/label/p8", `{"id":"a","label":"worn"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2"})
	})
	in("of another model", t, func(t *testing.T) {
		cfg, m := testConfig()
		other := m
		other.Name, other.Model = "motor", newFakeModel(2)
		cfg.Labels[0].Topics, cfg.Labels[0].TopicTemplate, cfg.Labels[0].Last = []string{"edge/n1/bearing/label"}, "", true
		cfg.Labels[0].Model = "motor"
		r := newRig(t, newFakeJournal(), cfg, m, other)
		r.send(p7, `{"features":[1,0]}`)
		r.send("edge/n1/bearing/label", `{"id":"last","label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		equal(t, "learnt by motor", r.models["motor"].learnt(), []string{"ok 1"})
	})
}

// A label by number reaches no sample that came later.
func TestLabelByNumber(t *testing.T) {
	in("alone, followed, with an id", t, func(t *testing.T) {
		r := one(t)
		number := func(seq uint64) LateLabel {
			return LateLabel{Model: "bearing", Device: "p7", Seq: seq, Label: "ok", Source: "page"}
		}
		r.send(p7, `{"features":[1,0]}`)
		time.Sleep(time.Second)
		if err := r.node.Label(t.Context(), number(1)); err != nil {
			t.Errorf("the newest sample: %v", err)
		}
		r.send(p7, `{"features":[2,0]}`)
		time.Sleep(time.Second)
		r.send(p7, `{"features":[3,0]}`) // is before the label
		var why *codec.Refusal
		if err := r.node.Label(t.Context(), number(2)); !errors.As(err, &why) || why.Reason != codec.UnknownID {
			t.Errorf("a sample that another has followed: %v", err)
		}
		r.send(p7, `{"id":"a","features":[4,0]}`, `{"features":[5,0]}`)
		if err := r.node.Label(t.Context(), number(4)); err != nil {
			t.Errorf("a sample with an id: %v", err)
		}
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 4"})
	})
}
