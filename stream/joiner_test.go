package stream

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
)

// values is a stream of three features, each with a topic of its own; that of c
// is another one.
func values() codec.Stream {
	s := codec.DefaultStream()
	s.Topics, s.TopicTemplate = []string{"plant/+/+", "plant/+/+/max"}, ""
	s.Format, s.Features, s.Fields = codec.FormatValue, []string{"a", "b", "c"}, map[string]string{"c": "plant/+/c/max"}
	s.TopicTemplate, s.Topics = "plant/{device}/{feature}/#", []string{"plant/+/+/#"}
	return s
}

func TestJoiner(t *testing.T) {
	s := values()
	s.Join = codec.Join{Window: time.Second, Devices: 2}
	unused := new(atomic.Uint64)
	g := newJoiner(s, unused)
	start := time.Now()
	for i, step := range []struct {
		at     time.Duration
		topic  string
		value  float64
		want   string
		unused uint64 // so far
	}{
		{0, "plant/p1/a", 1, "[]", 0},
		{900 * time.Millisecond, "plant/p1/b", 2, "[]", 0},
		{time.Second, "plant/p1/c/max", 3, "[1 2 3]", 0},                          // the window's end belongs to it
		{1100 * time.Millisecond, "plant/p1/c/max", 4, "[]", 0},                   // no value is used twice
		{1200 * time.Millisecond, "plant/p1/a", 5, "[]", 0},                       //
		{1300 * time.Millisecond, "plant/p1/a", 6, "[]", 1},                       // the newest value counts
		{1400 * time.Millisecond, "plant/p2/b", 7, "[]", 1},                       // of another device
		{2200 * time.Millisecond, "plant/p1/b", 8, "[]", 1},                       // c is too old now
		{2250 * time.Millisecond, "plant/p1/c/max", 9, "[6 8 9]", 2},              //
		{2300 * time.Millisecond, "plant/p2/c/max", 1, "[]", 2},                   //
		{2350 * time.Millisecond, "plant/p3/c/max", 1, "[]", 2},                   // the second device
		{2380 * time.Millisecond, "plant/p4/c/max", 1, "[]", 4},                   // one too many: p2 goes, with two values
		{2390 * time.Millisecond, "plant/p2/a", 1, "[]", 5},                       // begins anew, p3 goes
		{2400 * time.Millisecond, "plant/p2/b", 2, "[]", 5},                       //
		{2400 * time.Millisecond, "plant/p2/c/max", 3, "[1 2 3]", 5},              //
		{2400 * time.Millisecond, "plant/p2/c", 3, "refused: unknown_feature", 5}, // c has another topic
		{2400 * time.Millisecond, "plant/p2/d", 3, "refused: unknown_feature", 5}, //
	} {
		device := step.topic[len("plant/"):len("plant/p1")]
		x, err := g.add(step.topic, device, step.value, start.Add(step.at))
		got := fmt.Sprint(x)
		var r *codec.Refusal
		if errors.As(err, &r) {
			got = "refused: " + string(r.Reason)
		}
		if got != step.want || unused.Load() != step.unused {
			t.Errorf("step %d, %s = %v: %s and %d unused, want %s and %d", i, step.topic, step.value, got, unused.Load(), step.want, step.unused)
		}
		if len(g.devices) > 2 || len(g.devices) != g.order.Len() {
			t.Fatalf("step %d: %d devices, %d in order", i, len(g.devices), g.order.Len())
		}
	}
}

func TestJoinerOfOneFeature(t *testing.T) {
	s := codec.DefaultStream()
	s.Topics, s.Format, s.Features = []string{"t/#"}, codec.FormatValue, []string{"temperature"}
	g := newJoiner(s, new(atomic.Uint64))
	for i := range 3 {
		if x, err := g.add("t/x", "", float64(i), time.Now()); err != nil || len(x) != 1 || x[0] != float64(i) || len(g.devices) > 0 {
			t.Errorf("add = %v, %v, want a sample at once", x, err)
		}
	}
}

// A value that the broker repeats after a lost connection is of the sample that it completed, or of
// the one that waits, and not of the next one.
func TestJoinerOfRepetitions(t *testing.T) {
	in("after a lost connection", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := codec.DefaultStream()
		s.Topics, s.TopicTemplate, s.Format, s.Features = []string{"plant/+/+"}, "plant/{device}/{feature}", codec.FormatValue, []string{"a", "b"}
		cfg.Streams, cfg.Labels = map[string]codec.Stream{"vibration": s}, nil
		r, seen := watched(cfg, m, t, newFakeJournal())
		value := func(topic, payload string, dup bool) {
			r.sendMessage(&mqtt.Message{Topic: "plant/p7/" + topic, Payload: []byte(payload), QoS: 1, Dup: dup})
		}
		value("a", "1", false)
		value("b", "10", false)
		value("a", "2", false)
		time.Sleep(100 * time.Millisecond)
		r.reconnect(nil)
		value("b", "10", true) // its acknowledgement was lost
		value("a", "2", true)
		value("b", "20", true) // was lost
		value("a", "3", false)
		value("b", "30", false)
		value("a", "3", false) // the same values again are another sample
		value("b", "30", false)
		time.Sleep(time.Second)
		redelivered := r.node.Stats().Redelivered
		r.stop()
		equal(t, "samples", *seen, []string{"p7 [1 10]", "p7 [2 20]", "p7 [3 30]", "p7 [3 30]"})
		if redelivered != 2 {
			t.Errorf("%d repetitions are counted, want 2", redelivered)
		}
	})
}

// A value that is answered before its turn is joined again when its message comes again, and to no
// other values meanwhile: the samples that are learnt are those of a queue that was never full.
func TestJoinerOfValuesAnsweredEarly(t *testing.T) {
	in("values that found the queue full", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := codec.DefaultStream()
		s.Topics, s.TopicTemplate, s.Format, s.Features = []string{"plant/+/+"}, "plant/{device}/{feature}", codec.FormatValue, []string{"a", "b"}
		cfg.Streams, cfg.Labels = map[string]codec.Stream{"vibration": s}, nil
		r, seen := watched(cfg, m, t, newFakeJournal())
		value := func(topic, payload string, dup bool) *mqtt.Message {
			return &mqtt.Message{Topic: "plant/p7/" + topic, Payload: []byte(payload), QoS: 1, Dup: dup, Arrived: time.Now()}
		}
		early := func(all ...*mqtt.Message) {
			for _, msg := range all {
				r.node.deferred.Push(msg, nil)
			}
			time.Sleep(s.Join.Window / 4)
		}
		r.sendMessage(value("a", "1", false))
		early(value("a", "2", false), value("b", "20", false), value("a", "3", false))
		r.reconnect(nil)
		r.sendMessage(value("b", "10", false))
		r.sendMessage(value("a", "2", true))
		r.sendMessage(value("b", "20", true))
		r.sendMessage(value("a", "3", true))
		r.sendMessage(value("b", "30", false))
		time.Sleep(time.Second)
		stats := r.node.Stats()
		r.stop()
		equal(t, "samples", *seen, []string{"p7 [2 20]", "p7 [1 10]", "p7 [2 20]", "p7 [3 30]"})
		if stats.Redelivered != 0 || stats.ValuesUnused != 0 {
			t.Errorf("%d repetitions and %d unused values are counted, want none", stats.Redelivered, stats.ValuesUnused)
		}
	})
}

// A message on a topic of no feature is refused for its topic, whatever it has.
func TestJoinerOfOtherTopics(t *testing.T) {
	in("a time beside the values", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := codec.DefaultStream()
		s.Topics, s.TopicTemplate, s.Format, s.Features = []string{"plant/+/+"}, "plant/{device}/{feature}", codec.FormatValue, []string{"a", "b"}
		cfg.Streams, cfg.Labels = map[string]codec.Stream{"vibration": s}, nil
		r, _ := watched(cfg, m, t, newFakeJournal())
		r.send("plant/p7/time", "2026-11-22T16:05:00Z")
		r.send("plant/p7/a", "closed")
		time.Sleep(time.Second)
		rejected := r.node.Stats().Streams["vibration"].Rejected
		r.stop()
		equal(t, "refused", []string{fmt.Sprint(rejected)}, []string{"map[not_a_number:1 unknown_feature:1]"})
	})
}
