package stream

import (
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
)

// twoLevels are devices that two levels name, of rows that are samples.
func twoLevels() (Config, ModelConfig) {
	return signalsConfig(func(s *codec.Stream) {
		rowSamples(s)
		s.Topics, s.TopicTemplate = []string{"a/+/d/+/up"}, "a/{app}/d/{device}/up"
	})
}

// A label whose topic names a device is that of a sample of this device, or refused.
func TestDevicesOfLabels(t *testing.T) {
	const own = "edge/n1/bearing/label"
	some := codec.DefaultLabels()
	some.Topics, some.TopicTemplate, some.Last = []string{"lab/+"}, "lab/{device}", true
	byID := some
	byID.Topics, byID.TopicTemplate, byID.Last = []string{"id/+"}, "id/{device}", false
	for name, c := range map[string]struct {
		topic, payload string
		want           []string // of the samples 1 of 1/x, 2 of 2/y, 3 of 2/x
		refused        uint64
	}{
		"newest, by the device":            {own + "/2/x", `{"id":"last","label":"ok"}`, []string{"ok 3"}, 0},
		"newest, of all":                   {own, `{"id":"last","label":"ok"}`, []string{"ok 3"}, 0},
		"newest, of another device":        {own + "/1/x", `{"id":"last","label":"ok"}`, nil, 1},
		"newest, by a level too few":       {own + "/x", `{"id":"last","label":"ok"}`, nil, 1},
		"newest, by a level too many":      {own + "/2/x/z", `{"id":"last","label":"ok"}`, nil, 1},
		"newest, by one level of two":      {"lab/x", "ok", []string{"ok 3"}, 0},
		"newest, by another level":         {"lab/y", "ok", nil, 1},
		"by id":                            {own, `{"id":"2/y#1002000","label":"ok"}`, []string{"ok 2"}, 0},
		"by id, by a level too few":        {own + "/zzz", `{"id":"2/y#1002000","label":"ok"}`, nil, 1},
		"by id, by one level":              {"id/y", `{"id":"2/y#1002000","label":"ok"}`, []string{"ok 2"}, 0},
		"by id, by a level of another one": {"id/x", `{"id":"2/y#1002000","label":"ok"}`, nil, 1},
		"by ids, by one level":             {"id/x", `{"ids":["1/x#1001000","2/y#1002000"],"label":"ok"}`, []string{"ok 1"}, 0},
		"a range, of all":                  {own, `{"from":1000,"label":"ok"}`, []string{"ok 1", "ok 2", "ok 3"}, 0},
		"a range, by the device":           {own + "/2/x", `{"from":1000,"label":"ok"}`, []string{"ok 3"}, 0},
		"a range, by a level too many":     {own + "/2/x/z", `{"from":1000,"label":"ok"}`, nil, 1},
		"a range, by one level":            {"id/x", `{"from":1000,"label":"ok"}`, []string{"ok 1", "ok 3"}, 0},
	} {
		in(name, t, func(t *testing.T) {
			cfg, m := twoLevels()
			cfg.Labels = []codec.Labels{some, byID}
			r := newRig(t, newFakeJournal(), cfg, m)
			for i, device := range []string{"a/1/d/x/up", "a/2/d/y/up", "a/2/d/x/up"} {
				r.send(device, rowAt(1+i, 1+i, ""))
			}
			r.send(c.topic, c.payload)
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), c.want)
			if n := r.node.Stats().Rejected[codec.UnknownID]; n != c.refused {
				t.Errorf("%d labels refused, want %d", n, c.refused)
			}
		})
	}
	in("a stream of one device has none of another name", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := codec.DefaultStream()
		s.Topics, s.Dimension = []string{"plain"}, 2
		cfg.Streams, m.Streams = map[string]codec.Stream{"plain": s}, []string{"plain"}
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("plain", `{"id":"a","features":[1,0]}`)
		r.send(own+"/zzz", `{"id":"a","label":"worn"}`, `{"id":"last","label":"worn"}`)
		r.send(own, `{"id":"a","label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		if why := misnamed(own+"/zzz", own, r.node.sources[:1]).Error(); !strings.Contains(why, `no device is named "zzz", as no topic_template names one (over HTTP leave device out): send the label to …/label`) {
			t.Errorf("the refusal is %s", why)
		}
	})
}

func TestStatesOfSomeLevels(t *testing.T) {
	cfg, m := twoLevels()
	l := codec.DefaultLabels()
	l.Topics, l.TopicTemplate, l.Sticky = []string{"state/+"}, "state/{app}", true
	cfg.Labels = []codec.Labels{l}
	if _, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()}); err == nil || !strings.Contains(err.Error(), "labels[0].topics: the states are of some levels (app)") {
		t.Errorf("states of one level of two: %v", err)
	}
}
