package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
)

// Many devices send their own id with each sample: other features make another
// sample, the same features a repetition, another label a correction.
// Long: a list of independent cases.
func TestDeviceIDs(t *testing.T) {
	sample := func(x int, label string) string {
		return fmt.Sprintf(`{"id":"A4:C1","features":[%d,0],"label":%q}`, x, label)
	}
	in("other features are another sample", t, func(t *testing.T) {
		r := one(t)
		var want []string
		for i := range 20 {
			r.send(p7, sample(i, "ok"))
			want = append(want, fmt.Sprint("ok ", i))
		}
		r.send(p7, sample(19, "ok"), sample(19, "worn"), sample(3, "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), append(want, "worn, not ok 19"))
		if s := r.node.Stats(); s.IDReused != 20 || s.Redelivered != 2 {
			t.Errorf("%d ids reused, %d repetitions, want 20 and 2", s.IDReused, s.Redelivered)
		}
		var warned []string
		for _, e := range r.events() {
			if strings.HasPrefix(e, "id_reused: ") {
				warned = append(warned, e)
			}
		}
		if len(warned) != 1 || !strings.Contains(warned[0], `id: ""`) {
			t.Errorf("warned by %q, want once, with the way out", warned)
		}
	})
	in("devices that are not told apart", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := cfg.Streams["vibration"]
		s.TopicTemplate = ""
		cfg.Streams["vibration"] = s
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, `{"id":1,"features":[1,0],"label":"ok"}`)
		r.send("factory/p8/vibration", `{"id":1,"features":[2,0],"label":"ok"}`)
		time.Sleep(time.Second)
		if e := r.events(); !strings.Contains(strings.Join(e, "\n"), "if several devices number their samples, topic_template or device tells them apart") {
			t.Errorf("no advice to name the devices: %q", e)
		}
	})
	in("a label by the id is for the newest sample of the device", t, func(t *testing.T) {
		journal := newFakeJournal()
		cfg, m := testConfig()
		r := newRig(t, journal, cfg, m)
		r.send(p7, `{"id":"A4:C1","features":[1,0]}`, `{"id":"A4:C1","features":[2,0]}`, `{"id":"A4:C1","features":[2,0]}`)
		r.send("factory/p7/label", `{"id":"A4:C1","label":"ok"}`)
		r.send(p7, `{"id":"A4:C1","features":[2,0]}`, `{"id":"A4:C1","features":[3,0]}`)
		r.send("factory/p7/label", `{"id":"A4:C1","label":"worn"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2", "worn 3"})
		if n := journal.unlabelled("bearing"); n != 0 {
			t.Errorf("%d samples wait in the journal, want none", n)
		}
	})
	in("identity survives a restart", t, func(t *testing.T) {
		journal := newFakeJournal()
		cfg, m := testConfig()
		r := newRig(t, journal, cfg, m)
		r.send(p7, `{"id":"A4:C1","features":[1,0]}`)
		time.Sleep(time.Second)
		r.stop()
		m.Waiting, m.Model = journal.waiting("bearing"), newFakeModel(2)
		r = newRig(t, journal, cfg, m)
		r.send(p7, `{"id":"A4:C1","features":[1,0]}`, sample(2, "ok"), sample(1, "ok"), sample(2, "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2", "ok 1"})
		if s := r.node.Stats(); s.IDReused != 3 || s.Redelivered != 2 {
			t.Errorf("%d ids reused, %d repetitions, want 3 and 2", s.IDReused, s.Redelivered)
		}
	})
	in("missing values that are filled in do not make another sample", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := cfg.Streams["vibration"]
		s.OnMissing = codec.OnMissingImpute
		cfg.Streams["vibration"] = s
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample(1, "ok"), `{"id":"x","features":[null,5],"label":"ok"}`, sample(9, "ok"), `{"id":"x","features":[null,5],"label":"ok"}`)
		time.Sleep(time.Second)
		if s := r.node.Stats(); s.Learned != 3 || s.Redelivered != 1 {
			t.Errorf("%d learnt, %d repetitions, want 3 and 1", s.Learned, s.Redelivered)
		}
	})
	for format, payload := range map[string]string{
		"as an array":  `{"id":"A4:C1","features":[1,0],"label":"ok"}`,
		"as an object": `{"id":"A4:C1","features":{"f0":1,"f1":0},"label":"ok"}`,
		"flat":         `{"id":"A4:C1","f0":1,"f1":0,"label":"ok"}`,
		"a number":     `{"id":1234,"f0":1,"f1":0,"label":"ok"}`,
	} {
		in("identity is off, "+format, t, func(t *testing.T) {
			cfg, m := testConfig()
			s := cfg.Streams["vibration"]
			s.ID = ""
			cfg.Streams["vibration"] = s
			r := newRig(t, newFakeJournal(), cfg, m)
			r.send(p7, payload, payload)
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 1"})
			equal(t, "rejects", r.rejects(), nil)
		})
	}
}
