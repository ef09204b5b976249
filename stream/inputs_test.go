package stream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

// roomConfig is a node with a stream of three inputs, of which two have a room level.
func roomConfig(hold signal.Hold) (Config, ModelConfig) {
	cfg, m := testConfig()
	s := codec.DefaultStream()
	s.ID, s.OnMissing, s.Stage.Hold = "", codec.OnMissingMarginalise, hold
	input := func(name, topics, template string, set func(*codec.Input)) {
		in := codec.DefaultInput()
		in.Name, in.Topics, in.TopicTemplate = name, []string{topics}, template
		if set != nil {
			set(&in)
		}
		s.Raw.Inputs = append(s.Raw.Inputs, in)
	}
	input("motion", "z/+/motion", "z/{room}/motion", func(in *codec.Input) {
		in.Fields = codec.Paths{{Name: "motion", Path: "occupancy"}}
		in.MaxAge = codec.Age{Set: true, Time: time.Minute}
	})
	input("door", "z/+/door/+", "z/{room}/door/{side}", func(in *codec.Input) { in.Format = codec.FormatValue })
	cfg.Streams = map[string]codec.Stream{"room": s}
	l := codec.DefaultLabels()
	l.Topics, l.TopicTemplate = []string{"z/+/label"}, "z/{room}/label"
	cfg.Labels = []codec.Labels{l}
	m.Streams = []string{"room"}
	return cfg, m
}

// watched returns a rig that notes "device features" of the predictions.
func watched(cfg Config, m ModelConfig, t *testing.T, journal *fakeJournal) (*rig, *[]string) {
	var seen []string
	r := &rig{t: t, journal: journal, models: map[string]*fakeModel{m.Name: m.Model.(*fakeModel)}}
	r.node = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: journal, OnPrediction: func(p *Prediction) {
		seen = append(seen, fmt.Sprint(p.Device, " ", p.X))
	}})
	r.reconnect(nil)
	r.start()
	return r, &seen
}

// Long: cases with their messages.
func TestInputs(t *testing.T) {
	in("values of several topics are held, by their common levels", t, func(t *testing.T) {
		cfg, m := roomConfig(signal.Hold{On: []string{"any"}})
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.send("z/hall/motion", `{"occupancy":true,"linkquality":7}`)
		r.send("z/hall/door/front", "OFF")
		r.send("z/attic/motion", `{"occupancy":false}`)
		r.send("z/hall/door/back", "open")
		time.Sleep(2 * time.Minute)
		r.send("z/hall/door/back", "closed") // the motion is too old
		time.Sleep(time.Second)
		r.stop()
		equal(t, "samples", *seen, []string{"hall [1 NaN]", "hall [1 0]", "attic [0 NaN]", "hall [1 1]", "hall [NaN 0]"})
		if n := len(r.acks()); n != 5 {
			t.Errorf("%d acknowledgements", n)
		}
	})
	in("a retained value is held and makes no sample; where values get old it is refused", t, func(t *testing.T) {
		cfg, m := roomConfig(signal.Hold{On: []string{"any"}})
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.sendMessage(&mqtt.Message{Topic: "z/hall/door/front", Payload: []byte("ON"), QoS: 1, Retained: true})
		r.sendMessage(&mqtt.Message{Topic: "z/hall/motion", Payload: []byte(`{"occupancy":true}`), QoS: 1, Retained: true})
		r.send("z/hall/motion", `{"occupancy":false}`)
		time.Sleep(time.Second)
		r.stop()
		equal(t, "samples", *seen, []string{"hall [0 1]"})
		if n := r.node.Stats().Rejected[codec.Retained]; n != 1 {
			t.Errorf("%d refused", n)
		}
	})
	in("so it is on the topics of a stream itself", t, func(t *testing.T) {
		for maxAge, want := range map[time.Duration][]string{0: {" [1 0]"}, time.Hour: {" [NaN 0]"}} {
			cfg, m := testConfig()
			s := codec.DefaultStream()
			s.Topics, s.TopicTemplate, s.Format, s.OnMissing = []string{"hv/+"}, "hv/{signal}", codec.FormatValue, codec.OnMissingMarginalise
			s.Stage.Signals, s.Stage.Hold = []string{"motion", "door"}, signal.Hold{On: []string{"any"}, MaxAge: maxAge}
			cfg.Streams, m.Streams = map[string]codec.Stream{"room": s}, []string{"room"}
			r, seen := watched(cfg, m, t, newFakeJournal())
			r.sendMessage(&mqtt.Message{Topic: "hv/motion", Payload: []byte("ON"), QoS: 1, Retained: true})
			r.send("hv/door", "OFF")
			time.Sleep(time.Second)
			r.stop()
			equal(t, fmt.Sprint("samples with max_age ", maxAge), *seen, want)
		}
	})
	in("without held values a retained message makes no sample at each connection", t, func(t *testing.T) {
		for allow, want := range map[codec.Switch]int{"auto": 0, "true": 1} {
			cfg, m := roomConfig(signal.Hold{})
			cfg.Streams["room"].Raw.Inputs[1].AllowRetained = allow
			r, seen := watched(cfg, m, t, newFakeJournal())
			r.sendMessage(&mqtt.Message{Topic: "z/hall/door/front", Payload: []byte("ON"), QoS: 1, Retained: true})
			r.send("z/hall/door/front", "OFF")
			time.Sleep(time.Second)
			r.stop()
			if n := r.node.Stats().Rejected[codec.Retained]; len(*seen) != 1+want || n != uint64(1-want) {
				t.Errorf("allow_retained %s: %d samples, %d refused", allow, len(*seen), n)
			}
		}
	})
	in("rows at fixed times go on in silence, without a message, and end with the last value", t, func(t *testing.T) {
		cfg, m := roomConfig(signal.Hold{Every: 30 * time.Second})
		r, seen := watched(cfg, m, t, newFakeJournal())
		r.send("z/hall/motion", `{"occupancy":true}`)
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		if n := len(*seen); n != 3 { // motion is known for a minute
			t.Errorf("%d samples: %q", n, *seen)
		}
		if s := r.node.Stats().Streams["room"].Signals; s.Unvalued == 0 || s.Unvalued > 1000 {
			t.Errorf("counters %+v", s)
		}
		r.send("z/hall/label", `{"from":0,"label":"somebody"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"somebody 1", "somebody 1", "somebody 1"})
	})
	in("inputs have their own quality of service and filters", t, func(t *testing.T) {
		cfg, m := roomConfig(signal.Hold{On: []string{"any"}})
		s := cfg.Streams["room"]
		s.Raw.Inputs[1].QoS = "0"
		cfg.Streams["room"] = s
		r := newRig(t, newFakeJournal(), cfg, m)
		if q := r.node.qualities(); len(q) != 1 || q["z/+/door/+"] != 0 {
			t.Errorf("qualities %v", q)
		}
	})
	in("a window over held values, labelled by its id", t, func(t *testing.T) {
		cfg, m := roomConfig(signal.Hold{Every: time.Second})
		s := cfg.Streams["room"]
		s.Stage.Window.Length, s.Stage.Window.MinRows, s.Stage.Window.Features = signal.Span{Time: 10 * time.Second}, 1, signal.Choice{All: []string{"mean"}}
		s.Features = []string{"motion.mean", "door.mean"}
		cfg.Streams["room"] = s
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("z/hall/motion", `{"occupancy":true}`)
		r.send("z/hall/door/front", "ON")
		time.Sleep(30 * time.Second)
		var id string
		for _, p := range r.published() {
			if p.Topic == "edge/n1/bearing/prediction/hall" && id == "" {
				id = gjson.GetBytes(p.Payload, "id").Str
			}
		}
		r.send("z/hall/label", fmt.Sprintf(`{"id":%q,"label":"somebody"}`, id))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"somebody 1"})
	})
}
