package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/online/conformal"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/mqtt"
)

// modelWithSets is a fakeModel whose sets have no class of themselves, once they have begun.
// A reset or a rollback leaves it with no sample.
type modelWithSets struct {
	*fakeModel
	began atomic.Bool
}

func (m *modelWithSets) Uncertainty() *conformal.Uncertainty {
	if m.began.Load() {
		return &conformal.Uncertainty{Coverage: 0.9}
	}
	return m.fakeModel.Uncertainty()
}

func (m *modelWithSets) Learn(ctx context.Context, records []online.Record) error {
	err := m.fakeModel.Learn(ctx, records)
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind := records[0].Kind; kind == online.Reset || kind == online.Replace {
		post := *m.post
		post.N, m.post = 0, &post
	}
	return err
}

// Long: a list of independent cases.
func TestLateLabels(t *testing.T) {
	sample := func(id string, x int) string { return fmt.Sprintf(`{"id":%q,"features":[%d,0]}`, id, x) }
	label := func(id, label string) string { return fmt.Sprintf(`{"id":%q,"label":%q}`, id, label) }
	const own = "edge/n1/bearing/label"

	for _, topic := range []string{own, own + "/p7", "factory/p7/label", p7} {
		in("by id on "+topic, t, func(t *testing.T) {
			r := one(t)
			r.send(p7, labelled(9)) // so that a class is known
			time.Sleep(time.Second)
			r.send(p7, sample("a", 1), sample("b", 2))
			time.Sleep(time.Second)
			if got := r.node.Stats().Models["bearing"].Pending; got != 2 {
				t.Errorf("%d wait, want 2", got)
			}
			r.send(topic, label("b", "worn"))
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 9", "worn 2"})
			ev := r.models["bearing"].record(1)
			if len(ev.Probs) != 1 || ev.Probs[0] != 1 {
				t.Errorf("judged by %v, want the prediction when the features arrived, [1]", ev.Probs)
			}
			if got := r.journal.unlabelled("bearing"); got != 1 {
				t.Errorf("%d wait in the journal, want 1", got)
			}
			if got := len(r.acks()); got != 4 {
				t.Errorf("acknowledged %d, want 4", got)
			}
		})
	}
	in("sample and label in one group", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1))
		r.send(own, label("a", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		if n, _ := r.journal.committed(); n != 1 || r.journal.unlabelled("bearing") != 0 {
			t.Errorf("%d commits, %d wait, want 1 and none", n, r.journal.unlabelled("bearing"))
		}
	})
	in("a label is learnt once", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1))
		r.send("factory/p7/label", label("a", "ok"), label("a", "ok"))
		time.Sleep(time.Second)
		r.send(p7, sample("a", 1)) // both are sent again after a crash
		r.send("factory/p7/label", label("a", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		if s := r.node.Stats(); s.Redelivered != 3 || s.Models["bearing"].Pending != 0 || len(s.Rejected) != 0 {
			t.Errorf("redelivered %d, %d wait, rejected %v, want 3, 0, none", s.Redelivered, s.Models["bearing"].Pending, s.Rejected)
		}
	})
	in("unknown and ambiguous ids are refused", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1))
		r.send("factory/p8/vibration", sample("a", 2))
		r.send(own, label("z", "ok"), label("a", "ok"))
		r.send("factory/p9/label", label("a", "ok"))
		r.send(own+"/p8", label("a", "worn"))
		r.send(own, label("a", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2", "ok 1"})
		equal(t, "rejects", r.rejects(), []string{"unknown_id", "ambiguous_id", "unknown_id"})
		if got := len(r.acks()); got != 7 {
			t.Errorf("acknowledged %d, want 7", got)
		}
	})
	in("the last sample", t, func(t *testing.T) {
		r := one(t)
		r.send(own, label("last", "ok"))
		r.send(p7, "[1,0]", sample("a", 2), "[3,0]")
		r.send(own, label("last", "ok"), label("last", "worn"))
		r.send(p7, sample("b", 4))
		r.send(own+"/p8", label("last", "ok"))
		r.send(own+"/p7", label("last", "worn"))
		time.Sleep(time.Second)
		r.send(own, label("b", "ok"))
		r.send(p7, "[6,0]", labelled(5)) // the last has its label
		r.send(own, label("last", "worn"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 3", "worn, not ok 3", "worn 4", "ok, not worn 4", "ok 5", "worn, not ok 5"})
		var errs []string
		for _, m := range r.published() {
			if m.Topic == "edge/n1/bearing/reject" {
				errs = append(errs, gjson.GetBytes(m.Payload, "error").String())
			}
		}
		equal(t, "refusals", errs, []string{
			`no sample with id "last" waits for a label: it never came, waited too long, or made room for others`,
			`the newest sample of model bearing is of device "p7", not of "p8": only an id finds an earlier one`,
		})
		if s := r.node.Stats(); s.Models["bearing"].Pending != 1 {
			t.Errorf("%d wait, want 1", s.Models["bearing"].Pending)
		}
	})
	in("the last sample, whose own label was ignored", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1))
		r.send("edge/n1/request/freeze/bearing", "")
		r.send(p7, labelled(2))
		r.send("edge/n1/request/unfreeze/bearing", "")
		r.send(own, label("last", "worn"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2"})
	})
	in("a sample waits for its time", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Pending = pendingFor(time.Hour, 2)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2), sample("c", 3))
		time.Sleep(time.Hour - time.Second)
		r.send(own, label("a", "ok"), label("b", "ok"))
		time.Sleep(time.Minute)
		r.send(own, label("c", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2"})
		if s := r.node.Stats(); s.PendingEvicted != 1 || s.PendingExpired != 1 || s.Rejected[codec.UnknownID] != 2 || r.journal.unlabelled("bearing") != 0 {
			t.Errorf("evicted %d, expired %d, refused %d, %d in the journal", s.PendingEvicted, s.PendingExpired, s.Rejected[codec.UnknownID], len(r.journal.waiting("bearing")))
		}
		time.Sleep(time.Hour)
		r.send("factory/p7/label", label("b", "worn"))
		r.send(own, label("b", "worn"), label("z", "worn")) // of any device
		time.Sleep(time.Second)
		equal(t, "rejects", r.rejects(), []string{"unknown_id", "unknown_id", "too_late", "too_late", "unknown_id"})
	})
	for request, does := range map[string]string{"reset": "7", "rollback": "8  earlier"} {
		in("a "+request+" forgets what was learnt, and keeps what waits", t, func(t *testing.T) {
			cfg, m := testConfig()
			cfg.Control.Enabled = true
			r := newProgrammedRig(t, newFakeJournal(), cfg, Program{Earlier: func(context.Context, string, string) (*Earlier, error) {
				return &Earlier{State: []byte("earlier"), About: map[string]any{}}, nil
			}}, m)
			r.send(p7, sample("a", 1), sample("b", 2), `{"id":"c","features":[3,0],"label":"ok"}`)
			r.send(own, label("b", "ok"))
			time.Sleep(time.Second)
			r.send("edge/n1/request/"+request+"/bearing", "")
			time.Sleep(time.Second)
			r.send("factory/p7/label", label("b", "worn"), label("c", "worn"), label("last", "worn"), label("a", "ok"), label("a", "worn"))
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 3", "ok 2", does, "ok 1", "worn, not ok 1"})
			equal(t, "rejects", r.rejects(), []string{"too_late", "too_late", "unknown_id"})
			if kept := r.journal.waiting("bearing"); len(kept) != 1 || kept[0].X[0] != 1 {
				t.Errorf("the journal keeps %+v", kept)
			}
		})
	}
	in("classes that follow a rollback stay, those before it go", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		ok := online.Record{Event: online.Event{Kind: online.ClassAdd, Label: "ok"}}
		r := newProgrammedRig(t, newFakeJournal(), cfg, Program{Earlier: func(context.Context, string, string) (*Earlier, error) {
			replace := online.Record{Event: online.Event{Kind: online.Replace}}
			return &Earlier{State: []byte("earlier"), Classes: []online.Record{replace, ok}}, nil
		}}, m)
		learner := r.models["bearing"]
		r.send(p7, `{"features":[1,0],"label":"ok"}`, `{"features":[2,0],"label":"before"}`)
		time.Sleep(time.Second)
		r.send("edge/n1/request/rollback/bearing", "")
		time.Sleep(time.Second)
		r.send(p7, `{"features":[3,0],"label":"after"}`)
		time.Sleep(time.Second)
		learner.say(3, "ok")
		r.node.Notify(online.Notice{Model: "bearing", Kind: online.NoticeRolledBack, Seq: 3})
		equal(t, "classes", r.node.models[0].classes.names(), []string{"after", "ok"})
		r.published()
		r.send("edge/n1/request/class_remove/bearing", `{"data":{"class":"before"}}`, `{"data":{"class":"after"}}`)
		time.Sleep(time.Second)
		equal(t, "answers", answers(r.published(), "edge/n1/response/class_remove/bearing"), []string{
			`{"error":"there is no class \"before\"","status":"error"}`, `{"data":{"class":"after"},"status":"ok"}`,
		})
	})
	for _, request := range []string{"reset", "rollback"} {
		in("after a "+request+" prediction sets follow them as before", t, func(t *testing.T) {
			cfg, m := testConfig()
			cfg.Control.Enabled = true
			sets := &modelWithSets{fakeModel: newFakeModel(2)}
			m.Model = sets
			r := newProgrammedRig(t, newFakeJournal(), cfg, Program{Earlier: func(context.Context, string, string) (*Earlier, error) {
				return &Earlier{About: map[string]any{"samples": uint64(0)}}, nil
			}}, m)
			for i := range 1000 {
				r.send(p7, fmt.Sprintf(`{"features":[%d,1],"label":"ok"}`, i))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Second)
			r.send("edge/n1/request/"+request+"/bearing", "")
			time.Sleep(time.Second)
			sets.began.Store(true)
			for i := range 200 {
				id := fmt.Sprint(i)
				r.send(p7, sample(id, i))
				time.Sleep(time.Second)
				r.send(own, label(id, "ok"))
				time.Sleep(time.Second)
			}
			if got := r.node.Stats().Models["bearing"].Sets; got.N != 200 || got.Covered < 0.5 {
				t.Errorf("%+v", got)
			}
		})
	}
	in("a sample that is larger than the bound is not kept", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := cfg.Streams["vibration"]
		s.Dimension = 9000
		cfg.Streams["vibration"] = s
		m.Model, m.Active = newFakeModel(9000), everything
		m.Pending.MaxBytes = 64 * field.KiB
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, `{"id":"a","features":[0`+strings.Repeat(",0", 8999)+`]}`)
		time.Sleep(time.Second)
		if s := r.node.Stats(); s.PendingEvicted != 1 || s.Models["bearing"].Pending != 0 || s.Models["bearing"].Asked != 0 || len(r.journal.waiting("bearing")) != 0 {
			t.Errorf("evicted %d, %+v, %d in the journal", s.PendingEvicted, s.Models["bearing"], len(r.journal.waiting("bearing")))
		}
	})
	in("off", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Pending.Max = 0
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2))
		r.send(own, label("a", "ok"), label("last", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2"})
	})
	in("after a restart", t, func(t *testing.T) {
		cfg, m := testConfig()
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2), sample("c", 3))
		r.send("factory/p8/vibration", sample("c", 4))
		time.Sleep(time.Second)
		r.stop()
		m.Waiting = r.journal.waiting("bearing")
		again := newRig(t, r.journal, cfg, m)
		again.send(own, label("a", "ok"), label("c", "ok")) // by id alone
		again.send("factory/p7/label", label("b", "worn"), label("c", "worn"))
		time.Sleep(time.Second)
		equal(t, "learnt", again.models["bearing"].learnt(), []string{"ok 1", "worn 2", "worn 3"})
		equal(t, "rejects", again.rejects(), []string{"ambiguous_id"})
	})
	in("a sample that is labelled after all no longer waits", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1), `{"id":"a","features":[1,0],"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		if got := r.journal.unlabelled("bearing"); got != 0 {
			t.Errorf("%d wait, want none", got)
		}
	})
	in("a second label corrects the first", t, func(t *testing.T) {
		journal := newFakeJournal()
		cfg, m := testConfig()
		r := newRig(t, journal, cfg, m)
		r.send(p7, labelled(9))
		time.Sleep(time.Second)
		r.send(p7, sample("a", 1), `{"id":"b","features":[2,0],"label":"ok"}`)
		time.Sleep(time.Minute)
		r.send(own, label("a", "ok"))
		time.Sleep(time.Second)
		r.send(own, label("a", "worn"))                        // by the id alone
		r.send("factory/p7/label", label("b", "worn"))         // of a sample that brought its label
		r.send(p7, `{"id":"b","features":[2,0],"label":"ok"}`) // the wrong label again
		time.Sleep(time.Second)
		want := []string{"ok 9", "ok 2", "ok 1", "worn, not ok 1", "worn, not ok 2", "ok, not worn 2"}
		equal(t, "learnt", r.models["bearing"].learnt(), want)
		if ev := r.models["bearing"].record(3); len(ev.Probs) == 0 || ev.Name != "ok" {
			t.Errorf("the correction %+v lacks the prediction that was judged", ev)
		}
		// Both labels are delivered again, because their acknowledgements were lost.
		for i, p := range []string{label("a", "ok"), label("a", "worn")} {
			r.sendMessage(&mqtt.Message{ID: uint16(4 + i), Topic: own, Payload: []byte(p), QoS: 1, Dup: true})
		}
		time.Sleep(time.Second)
		s := r.node.Stats()
		if got := r.models["bearing"].learnt(); len(got) != len(want) || s.Models["bearing"].Corrected != 3 {
			t.Errorf("%d corrections, learnt %q", s.Models["bearing"].Corrected, got)
		}
		if d := s.Models["bearing"].LabelDelay; d < time.Minute || d > time.Minute+time.Second {
			t.Errorf("the label was %v late, want a minute", d)
		}
		// What waits for a correction survives a restart, if its label came late.
		r.stop()
		m.Waiting = journal.waiting("bearing")
		again := newRig(t, journal, cfg, m)
		again.send(own, label("a", "broken"), label("b", "broken"))
		time.Sleep(time.Second)
		equal(t, "learnt after a restart", again.models["bearing"].learnt()[len(want):], []string{"broken, not worn 1"})
		equal(t, "rejects", again.rejects(), []string{"unknown_id"})
	})
	in("a second label that comes too late is refused", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Pending.Corrections = 1
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2))
		r.send("factory/p7/label", label("a", "ok"), label("b", "ok"), label("a", "worn"), label("b", "worn"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2", "worn, not ok 2"})
		equal(t, "rejects", r.rejects(), []string{"too_late"})
	})
	in("late labels say how far ahead a sample is", t, func(t *testing.T) {
		r := one(t)
		for i := range 6 {
			r.send(p7, sample(fmt.Sprint(i), i))
		}
		time.Sleep(time.Second)
		for i := range 3 {
			r.send("factory/p7/label", label(fmt.Sprint(i), "ok"))
			time.Sleep(time.Second)
		}
		m := r.node.model("bearing")
		if got := m.lag.Load().Ahead(m.seq+1, m.Model.Snapshot().Record); got != 4 {
			t.Errorf("the seventh sample is %d ahead of the third, want 4", got)
		}
	})
}

func TestClasses(t *testing.T) {
	in("closed", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Classes = online.Classes{Names: []string{"ok", "worn"}, Max: 64}
		m.Model.(*fakeModel).say(0, m.Classes.Names...)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, `{"features":[1,0],"label":"wron"}`, `{"features":[2,0],"label":"worn"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2"})
		if s := r.node.Stats(); s.Rejected[codec.UnknownClass] != 1 || s.Predictions != 2 || len(r.acks()) != 2 {
			t.Errorf("refused %v, predicted %d, acknowledged %d", s.Rejected, s.Predictions, len(r.acks()))
		}
		learned := []bool{}
		for _, m := range r.published() {
			var p struct{ Learned *bool }
			if json.Unmarshal(m.Payload, &p) == nil && p.Learned != nil {
				learned = append(learned, *p.Learned)
			}
		}
		if !slices.Equal(learned, []bool{false, true}) {
			t.Errorf("learned = %v, want false, true", learned)
		}
	})
	in("no more than max, in one group too", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Classes.Max = 3
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 5 {
			r.send(p7, fmt.Sprintf(`{"features":[%d,0],"label":"c%d"}`, i, i))
		}
		r.send(p7, `{"features":[9,0],"label":"c1"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"c0 0", "c1 1", "c2 2", "c1 9"})
		if got := r.node.Stats().Rejected[codec.TooManyClasses]; got != 2 {
			t.Errorf("refused %d, want 2", got)
		}
	})
	in("the same label under another name of its class has no effect", t, func(t *testing.T) {
		r := controlled(t, newFakeJournal(), 0)
		const own = "edge/n1/bearing/label"
		r.send(p7, `{"id":"a","features":[1,0]}`, `{"id":"b","features":[2,0],"label":"worn"}`)
		r.send(own, `{"id":"a","label":"worn"}`)
		r.send("edge/n1/request/class_rename", `{"data":{"from":"worn","to":"worn out"}}`)
		r.send(own, `{"id":"a","label":"worn out"}`, `{"ids":["a","b"],"label":"worn out"}`, `{"id":"a","label":"worn"}`)
		r.send(p7, `{"id":"b","features":[2,0],"label":"worn out"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2", "worn 1", "5 worn worn out"})
		if s := r.node.Stats(); s.Redelivered != 5 || s.Models["bearing"].Corrected != 0 {
			t.Errorf("%d repetitions, %d corrections, want 5 and none", s.Redelivered, s.Models["bearing"].Corrected)
		}
		r.send(own, `{"id":"a","label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "the last one", r.models["bearing"].learnt()[3:], []string{"ok, not worn 1"})
	})
	in("a label of the node's own is refused, the sample answered", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, `{"features":[1,0],"label":"ok","source":"n1"}`)
		time.Sleep(time.Second)
		if s := r.node.Stats(); s.Rejected[codec.BadLabel] != 1 || s.Predictions != 1 || s.Learned != 0 {
			t.Errorf("refused %v, predicted %d, learnt %d", s.Rejected, s.Predictions, s.Learned)
		}
	})
}
