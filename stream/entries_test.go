package stream

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

// gatewayConfig is a node with a stream of rows whose payloads name the device.
func gatewayConfig(set func(*codec.Stream)) (Config, ModelConfig) {
	cfg, m := testConfig()
	s := codec.DefaultStream()
	s.Topics, s.ID, s.Stage.Signals = []string{"rtl/+/events"}, "", []string{"x", "y"}
	s.TopicTemplate, s.Entries.Device = "rtl/{site}/events", codec.Device{Path: "id"}
	set(&s)
	cfg.Streams = map[string]codec.Stream{"gateway": s}
	l := codec.DefaultLabels()
	l.Topics, l.TopicTemplate, l.Sticky = []string{"state/+/+"}, "state/{site}/{device}", true
	cfg.Labels = []codec.Labels{l}
	m.Streams = []string{"gateway"}
	return cfg, m
}

// Long: cases with their messages.
func TestDevicesInPayloads(t *testing.T) {
	in("each device of a topic has values and a state of its own", t, func(t *testing.T) {
		cfg, m := gatewayConfig(func(s *codec.Stream) {
			s.Stage.Hold = signal.Hold{On: []string{"any"}}
			s.OnMissing = codec.OnMissingMarginalise
		})
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.send("state/hut/183", "ok")
		r.send("rtl/hut/events", `{"id":183,"x":1}`, `{"id":"a/b","x":2}`, `{"id":183,"y":3}`)
		r.send("rtl/hut/events", `{"batch":[{"id":"a/b","y":4},{"id":183,"y":5},{"id":"a/b","y":6}]}`)
		time.Sleep(time.Second)
		labels := r.models[m.Name].learnt()
		r.stop()
		equal(t, "samples", *seen, []string{"hut/183 [1 NaN]", "hut/a%2Fb [2 NaN]", "hut/183 [1 3]", "hut/a%2Fb [2 4]", "hut/a%2Fb [2 6]", "hut/183 [1 5]"})
		equal(t, "learnt", labels, []string{"ok 1", "ok 1", "ok 1"})
	})
	in("a label that is refused ends that of its device", t, func(t *testing.T) {
		cfg, m := gatewayConfig(func(s *codec.Stream) {
			s.Stage.Hold, s.LabelMap = signal.Hold{Every: time.Second}, map[string]string{"ok": "ok"}
		})
		cfg.Labels = nil
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.send("rtl/hut/events", `[{"id":1,"x":1,"y":0,"label":"ok"},{"id":2,"x":2,"y":0,"label":"ok"}]`, `{"id":1,"x":3,"y":0,"label":"none"}`)
		time.Sleep(3 * time.Second)
		r.stop()
		equal(t, "samples", *seen, []string{"hut/1 [1 0]", "hut/2 [2 0]", "hut/1 [1 0]", "hut/2 [2 0]", "hut/1 [1 0]", "hut/2 [2 0]"})
		equal(t, "learnt", r.models[m.Name].learnt(), []string{"ok 1", "ok 2", "ok 2", "ok 2"}) // the first row came before
	})
	in("a label that is refused in a batch of CBOR ends that of its device", t, func(t *testing.T) {
		cfg, m := gatewayConfig(func(s *codec.Stream) {
			s.Format = codec.FormatCBOR
			s.Stage.Hold, s.LabelMap = signal.Hold{Every: time.Second}, map[string]string{"ok": "ok"}
		})
		cfg.Labels = nil
		r, _ := watched(cfg, m, t, newFakeJournal())
		r.send("rtl/hut/events", "\x82\xa4\x62id\x01\x61x\x01\x61y\x00\x65label\x62ok\xa4\x62id\x02\x61x\x02\x61y\x00\x65label\x62ok")
		time.Sleep(500 * time.Millisecond)
		r.send("rtl/hut/events", "\x82\xa4\x62id\x02\x61x\x03\x61y\x00\x65label\x62ok\xa4\x62id\x01\x61x\x04\x61y\x00\x65label\x64none")
		time.Sleep(2 * time.Second)
		r.stop()
		equal(t, "learnt", r.models[m.Name].learnt(), []string{"ok 1", "ok 2", "ok 2"})
	})
	in("a topic of labels may name the device in the payload", t, func(t *testing.T) {
		cfg, m := gatewayConfig(func(s *codec.Stream) { s.Topics, s.TopicTemplate = []string{"rtl/events"}, "" })
		state, late := cfg.Labels[0], codec.DefaultLabels()
		state.Topics, state.TopicTemplate, state.Device = []string{"states"}, "", codec.Device{Path: "machine"}
		late.Topics, late.Device, late.Last = []string{"labels"}, codec.Device{Levels: codec.Paths{{Name: "device", Path: "of.id"}}}, true
		cfg.Labels = []codec.Labels{state, late}
		journal := newFakeJournal()
		r, _ := watched(cfg, m, t, journal)
		r.send("states", `{"machine":"1","label":"ok"}`, `{"label":"worn"}`, "worn")
		r.send("rtl/events", `[{"id":1,"x":1,"y":0},{"id":2,"x":2,"y":0}]`)
		r.send("labels", `{"of":{"id":1},"label":"bad"}`, `{"of":{"id":"2"},"label":"worn"}`, `broken`)
		r.send("states", `{"machine":"1","label":null}`, `{"machine":"2","label":"ok"}`)
		r.send("rtl/events", `[{"id":1,"x":3,"y":0},{"id":2,"x":4,"y":0}]`)
		time.Sleep(time.Second)
		refused := r.node.Stats().Streams["labels"].Rejected
		r.stop()
		equal(t, "learnt", r.models[m.Name].learnt(), []string{"ok 1", "worn 2", "ok 4"})
		equal(t, "refused", []string{fmt.Sprint(refused)}, []string{"map[bad_id:3 unknown_id:1]"})
	})
	in("a message that where does not take is neither refused nor a device", t, func(t *testing.T) {
		cfg, m := gatewayConfig(func(s *codec.Stream) { s.Entries.Where = map[string]field.Words{"model": {"TH"}} })
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.send("rtl/hut/events", `{"model":"rain","id":1,"x":"none"}`, `{"model":"TH","id":2,"x":1,"y":2}`, `{"model":"TH","x":1,"y":2}`)
		time.Sleep(time.Second)
		s := r.node.Stats().Streams["gateway"]
		r.stop()
		equal(t, "samples", *seen, []string{"hut/2 [1 2]"})
		got := fmt.Sprintf("%d acknowledged, %d left out, refused %v, %d devices", len(r.acks()), s.LeftOut, s.Rejected, s.Signals.Devices)
		equal(t, "messages", []string{got}, []string{"3 acknowledged, 1 left out, refused map[bad_id:1], 1 devices"})
	})
	in("a message with a bad time is refused as a whole", t, func(t *testing.T) {
		cfg, m := gatewayConfig(func(*codec.Stream) {})
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.send("rtl/hut/events", `[{"id":1,"x":1,"y":2,"ts":1700000000},{"id":2,"x":1,"y":2,"ts":"never"}]`)
		time.Sleep(time.Second)
		r.stop()
		equal(t, "samples", *seen, nil)
	})
	in("the log has the beginning of a long topic", t, func(t *testing.T) {
		var log bytes.Buffer
		cfg, m := gatewayConfig(func(s *codec.Stream) { s.Topics, s.TopicTemplate, s.Time = []string{"rtl/#"}, "", "t" })
		cfg.Labels = nil
		r := &rig{t: t, journal: newFakeJournal(), models: map[string]*fakeModel{m.Name: m.Model.(*fakeModel)}}
		r.node = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: r.journal, Log: slog.New(slog.NewTextHandler(&log, nil))})
		r.reconnect(nil)
		r.start()
		r.send("rtl/"+strings.Repeat("l", 60000), `{"id":1,"x":1,"y":2}`, `{"id":1,"x":1,"y":2,"t":"Sat Nov 28"}`, `{"id":1,"x":1,"y":2,"t":"2199-01-01T00:00:00Z"}`, `{"x":1}`)
		time.Sleep(time.Second)
		r.stop()
		if text := log.String(); strings.Count(text, "topic=rtl/lll") != 4 || strings.Count(text, "takes that of the arrival") != 1 || len(text) > 5000 {
			t.Errorf("the log has %d bytes: %.5000s", len(text), text)
		}
	})
	in("two inputs on one topic take their rows, also when the broker repeats it", t, func(t *testing.T) {
		cfg, m := gatewayConfig(func(s *codec.Stream) {
			s.Topics, s.TopicTemplate, s.Stage.Signals, s.Entries = nil, "", nil, codec.DefaultEntries()
			for _, name := range []string{"x", "y"} {
				of := codec.DefaultInput()
				of.Name, of.Topics, of.Fields = name, []string{"rtl/+/events"}, codec.Paths{{Name: name, Path: "v"}}
				of.Entries.Where = map[string]field.Words{"n": {name}}
				s.Raw.Inputs = append(s.Raw.Inputs, of)
			}
			s.Stage.Hold, s.OnMissing = signal.Hold{On: []string{"y"}}, codec.OnMissingMarginalise
		})
		cfg.Labels = nil
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.send("rtl/hut/events", `[{"n":"y","v":2},{"n":"z","v":0},{"n":"x","v":1}]`)
		r.sendMessage(&mqtt.Message{Topic: "rtl/hut/events", Payload: []byte(`[{"n":"x","v":3},{"n":"y","v":4}]`), QoS: 1, Dup: true})
		time.Sleep(time.Second)
		r.stop()
		equal(t, "samples", *seen, []string{" [1 2]", " [3 4]"})
	})
	in("samples of one id are those of their devices", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := cfg.Streams["vibration"]
		s.Topics, s.TopicTemplate, s.Entries.Device = []string{"factory/all"}, "", codec.Device{Path: "dev"}
		cfg.Streams["vibration"] = s
		cfg.Labels = nil
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("factory/all", `{"batch":[{"dev":"p7","id":"1","features":[1,0]},{"dev":"p8","id":"1","features":[2,0]}]}`)
		r.send("edge/n1/bearing/label/p8", `{"id":"1","label":"worn"}`)
		r.send("factory/all", `{"dev":"p7","id":"1","label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2", "ok 1"})
	})
}
