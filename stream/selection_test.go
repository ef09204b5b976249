package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

// answers returns "labelled already expired" of the answers to labels in the outbox.
func (r *rig) answers() (all []string) {
	for _, m := range r.published() {
		if m.Topic == "edge/n1/response/label" {
			p := gjson.ParseBytes(m.Payload)
			if p.Get("status").Str != "ok" {
				all = append(all, p.Get("error").Str)
				continue
			}
			d := p.Get("data")
			all = append(all, fmt.Sprint(d.Get("labelled"), d.Get("already"), d.Get("expired")))
		}
	}
	return all
}

// rowSamples is a stream whose rows are samples.
func rowSamples(s *codec.Stream) {
	s.Stage.Window.Length, s.Stage.Window.Hop, s.Stage.Window.Of = signal.Span{}, signal.Span{}, nil
	s.Stage.Window.Features = signal.Choice{All: []string{"default"}}
	s.Features = []string{"x", "y"}
}

// Long: cases with their messages.
func TestLabelsWithoutID(t *testing.T) {
	const own = "edge/n1/bearing/label"
	in("a range labels what waits in it, counts what has gone, and twice changes nothing", t, func(t *testing.T) {
		cfg, m := signalsConfig(rowSamples)
		m.Pending.Max = 6
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 8 {
			r.send(accP7, rowAt(i, i, ""))
		}
		r.send("plant/p8/acc", rowAt(4, 100, ""))
		time.Sleep(time.Second)
		r.published()
		payload := `{"from":"1970-01-01T00:16:41Z","to":1005,"device":"p7","label":"worn"}`
		r.send(own, payload)
		time.Sleep(time.Second)
		equal(t, "answer", r.answers(), []string{"3 0 2"}) // 1 and 2 made room for 7 and that of p8
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 3", "worn 4", "worn 5"})
		r.send(own, payload)
		time.Sleep(time.Second)
		equal(t, "second answer", r.answers(), []string{"0 3 2"})
		r.send(own+"/p8", payload)
		r.send("plant/p8/label", payload)
		time.Sleep(time.Second)
		equal(t, "another device in the topic", r.answers(), []string{"0 0 0", "0 0 0"})
		r = r.restart(cfg, m)
		r.send("plant/p7/label", strings.Replace(payload, `"device":"p7",`, "", 1)) // the topic has it
		r.send(own+"/p8", `{"from":1000,"label":"new"}`)                            // until now
		time.Sleep(time.Second)
		equal(t, "after a restart", r.answers(), []string{"0 3 0", "1 0 0"})
		commits, _ := r.journal.committed()
		r.send(own, `{"from":1000,"to":1006,"label":"ok"}`) // corrects, in one commit
		time.Sleep(time.Second)
		equal(t, "correction", r.answers(), []string{"5 0 0"})
		if after, _ := r.journal.committed(); after != commits+1 {
			t.Errorf("%d commits", after-commits)
		}
		r.send("plant/183/acc", rowAt(4, 100, ""), rowAt(5, 100, ""))
		r.send(own, `{"from":1000,"device":183,"label":"old"}`) // its name, as a number
		time.Sleep(time.Second)
		equal(t, "of the device with a number", r.answers(), []string{"2 0 0"})
	})
	in("one of seq, ids and last", t, func(t *testing.T) {
		cfg, m := signalsConfig(rowSamples)
		l := codec.DefaultLabels()
		l.Topics, l.Last = []string{"home/label"}, true
		cfg.Labels = append(cfg.Labels, l)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 6 {
			r.send(accP7, rowAt(i, i, ""))
		}
		time.Sleep(time.Second)
		r.published()
		r.send(own, `{"seq":2,"label":"b"}`, `{"seq":99,"label":"b"}`, `{"ids":["p7#1003000","p7#1004000","p7#1","p7#1003000"],"label":"c"}`)
		r.send("plant/p7/label", `{"ids":["p7#1000000"],"label":"a"}`)
		r.send("plant/p8/label", `{"seq":1,"label":"e"}`, `{"seq":6,"label":"e"}`) // of p7, the last one the newest of all
		r.send("home/label", "d", `{"label":"d"}`, `{"from":"alice","label":"d"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"b 1", "c 3", "c 4", "a 0", "d 5"})
		if got := r.answers(); len(got) != 6 || got[0] != "1 0 0" || !strings.Contains(got[1], "no sample") || got[2] != "2 0 1" || got[3] != "1 0 0" ||
			!strings.Contains(got[4], "no sample") || !strings.Contains(got[5], "no sample") {
			t.Errorf("answers %q", got)
		}
	})
	in("ids that two devices share", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, `{"id":"a","features":[1,0]}`, `{"id":"b","features":[2,0]}`)
		r.send("factory/p8/vibration", `{"id":"a","features":[3,0]}`)
		time.Sleep(time.Second)
		r.published()
		r.send(own, `{"ids":["a"],"label":"ok"}`, `{"ids":["none","a","b"],"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2"})
		equal(t, "answers", answers(r.published(), "edge/n1/response/label"), []string{
			`{"data":{"already":0,"ambiguous":1,"expired":0,"labelled":0,"model":"bearing"},"error":"samples of several devices wait under id \"a\": send the label to …/label/<device>","status":"error"}`,
			`{"data":{"already":0,"ambiguous":1,"expired":1,"labelled":1,"model":"bearing"},"status":"ok"}`})
		if s := r.node.Stats(); s.Rejected[codec.AmbiguousID] != 1 || s.Rejected[codec.UnknownID] > 0 {
			t.Errorf("refused %v", s.Rejected)
		}
		r.send("factory/p8/label", `{"ids":["a"],"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "by the topic", r.models["bearing"].learnt()[1:], []string{"ok 3"})
	})
	in("what is no range is refused", t, func(t *testing.T) {
		cfg, m := signalsConfig(rowSamples)
		r := newRig(t, newFakeJournal(), cfg, m)
		for _, payload := range []string{
			`{"from":"yesterday","label":"a"}`, `{"from":2000,"to":1000,"label":"a"}`, `{"from":1000,"to":{},"label":"a"}`, `{"from":1000}`,
			`{"seq":-1,"label":"a"}`, `{"seq":1.5,"label":"a"}`, `{"ids":[],"label":"a"}`, `{"ids":[{}],"label":"a"}`, `{"ids":["a"],"ids":["b"],"label":"a"}`,
			`{"from":1000,"device":["p7"],"label":"a"}`, `{"from":1000,"device":true,"label":"a"}`, `{"from":1000,"device":"` + strings.Repeat("p", 129) + `","label":"a"}`,
		} {
			r.send(own, payload)
		}
		time.Sleep(time.Minute)
		if got := r.node.Stats().Rejected; got[codec.BadID] != 9 || got[codec.BadLabel] != 1 || got[codec.Empty] != 1 || got[codec.Repeated] != 1 {
			t.Errorf("refused %v", got)
		}
	})
	in("closed classes refuse a range once, learning that is off ignores it", t, func(t *testing.T) {
		cfg, m := signalsConfig(rowSamples)
		cfg.Control.Enabled = true
		m.Classes.Open = false
		m.Classes.Names = []string{"ok"}
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 3 {
			r.send(accP7, rowAt(i, i, ""))
		}
		r.send(own, `{"from":1000,"label":"worn"}`)
		r.send("edge/n1/request/freeze", "{}")
		r.send(own, `{"from":1000,"label":"ok"}`)
		time.Sleep(time.Second)
		if got := r.node.Stats(); got.Rejected[codec.UnknownClass] != 1 || got.Frozen != 3 {
			t.Errorf("refused %v, ignored %d", got.Rejected, got.Frozen)
		}
	})
	in("a repetition by the broker does not undo a correction", t, func(t *testing.T) {
		cfg, m := signalsConfig(rowSamples)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(accP7, rowAt(1, 1, ""))
		payload := `{"from":1000,"label":"worn"}`
		r.send(own, payload, `{"id":"p7#1001000","label":"ok"}`)
		time.Sleep(time.Second)
		r.reconnect(&mqtt.Cursor{})
		r.sendMessage(&mqtt.Message{ID: 2, Topic: own, Payload: []byte(payload), QoS: 1, Dup: true})
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 1", "ok, not worn 1"})
	})
}

// Long: cases with their messages.
func TestStickyLabels(t *testing.T) {
	config := func(set func(*codec.Labels)) (Config, ModelConfig) {
		cfg, m := signalsConfig(rowSamples)
		l := codec.DefaultLabels()
		l.Topics, l.TopicTemplate, l.Sticky, l.Map = []string{"plant/+/state"}, "plant/{device}/state", true, map[string]string{"1": "idle", "2": "run"}
		if set != nil {
			set(&l)
		}
		cfg.Labels = []codec.Labels{l}
		return cfg, m
	}
	row := func(i int) string { return fmt.Sprintf(`{"x":%d,"y":0}`, i) }
	in("the last word is the label, without the order of labels", t, func(t *testing.T) {
		cfg, m := config(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(accP7, row(0))
		r.sendMessage(&mqtt.Message{Topic: "plant/p7/state", Payload: []byte("1"), QoS: 1, Retained: true})
		r.send(accP7, row(1))
		r.send("plant/p8/acc", row(100))
		r.send("plant/p7/state", `"unavailable"`)
		r.send(accP7, row(2))
		r.send("plant/p7/state", `{"label":2}`)
		r.send(accP7, row(3))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"idle 1", "run 3"})
		for i := range 2 {
			if !r.models["bearing"].record(i).Known {
				t.Errorf("record %d has a place in the order", i)
			}
		}
		r.stop()
		if got := r.node.models[0].inFlight; got != 0 {
			t.Errorf("%d labels are expected in the order", got)
		}
	})
	for _, unknown := range []string{`{"label":"unknown"}`, `{"label":" Unavailable "}`, `{"label":null}`, `{"label":""}`, `{"label": "none", "battery": 90}`} {
		in("an object tells that the state is not known: "+unknown, t, func(t *testing.T) {
			for _, words := range []map[string]string{nil, {"run": "run"}} {
				cfg, m := config(func(l *codec.Labels) { l.Map = words })
				r := newRig(t, newFakeJournal(), cfg, m)
				r.send("plant/p7/state", `{"label":"run"}`)
				r.send(accP7, row(1))
				r.send("plant/p7/state", unknown)
				r.send(accP7, row(2))
				r.send("plant/p7/state", `{"battery":90}`) // says nothing about the state
				time.Sleep(time.Second)
				equal(t, "learnt", r.models["bearing"].learnt(), []string{"run 1"})
				if got := r.node.Stats().Rejected[codec.BadLabel]; got != 1 {
					t.Errorf("%d labels refused, want that of the object without one", got)
				}
				r.stop()
			}
		})
	}
	in("words that are not known are labels where the map has them", t, func(t *testing.T) {
		cfg, m := config(func(l *codec.Labels) { l.Map = map[string]string{"unknown": "idle"} })
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("plant/p7/state", `{"label":"unknown"}`)
		r.send(accP7, row(1))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"idle 1"})
	})
	in("a state without a device is that of all; it gets old, and settles", t, func(t *testing.T) {
		cfg, m := config(func(l *codec.Labels) {
			l.Topics, l.TopicTemplate, l.MaxAge, l.Settle = []string{"line/state"}, "", time.Minute, 2*time.Second
		})
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("line/state", "1")
		for i := range 5 {
			r.send(accP7, row(i))
			time.Sleep(time.Second)
		}
		r.send("plant/p8/acc", row(8))
		time.Sleep(time.Hour)
		r.send(accP7, row(9))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"idle 2", "idle 3", "idle 4", "idle 8"})
	})
	in("a state that the broker sends again at a connection is as old as before", t, func(t *testing.T) {
		cfg, m := config(func(l *codec.Labels) { l.MaxAge = time.Minute })
		r := newRig(t, newFakeJournal(), cfg, m)
		again := func() {
			r.sendMessage(&mqtt.Message{Topic: "plant/p7/state", Payload: []byte("1"), QoS: 1, Retained: true})
		}
		again()
		r.send(accP7, row(0))
		time.Sleep(50 * time.Second)
		again()
		r.send(accP7, row(1))
		time.Sleep(20 * time.Second)
		r.send(accP7, row(2))
		r.send("plant/p7/state", "1")
		r.send(accP7, row(3))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"idle 0", "idle 1", "idle 3"})
	})
	in("teach.every thins what is learnt of each device", t, func(t *testing.T) {
		cfg, m := config(func(l *codec.Labels) { l.Teach.Every = 10 * time.Second })
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("plant/p7/state", "1")
		r.send("plant/p8/state", "2")
		for i := range 25 {
			r.send(accP7, row(i))
			r.send("plant/p8/acc", row(100+i))
			time.Sleep(time.Second)
		}
		got := r.models["bearing"].learnt()
		slices.Sort(got)
		equal(t, "learnt", got, []string{"idle 0", "idle 10", "idle 20", "run 100", "run 110", "run 120"})
		if n := r.node.Stats().Models["bearing"].Pending; n != 0 {
			t.Errorf("%d samples wait for a label", n)
		}
	})
	in("the state goes on over an orderly stop", t, func(t *testing.T) {
		cfg, m := config(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("plant/p7/state", "1")
		r.send(accP7, row(0))
		time.Sleep(time.Second)
		r = r.restart(cfg, m)
		r.send(accP7, row(1))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"idle 0", "idle 1"})
	})
}

// As many devices as a stage remembers are thinned.
func TestTeachingOfManyDevices(t *testing.T) {
	teach := teaching{every: int64(time.Hour), most: 2000}
	learnt := 0
	for _, minute := range []int64{0, 1, 10, 60, 61} {
		for device := range 2000 {
			if !teach.skips(fmt.Sprint(device), minute*int64(time.Minute)) {
				learnt++
			}
		}
	}
	if learnt != 4000 {
		t.Errorf("%d samples of 2000 devices are learnt in two hours, want one of each in each hour", learnt)
	}
	for device := range 5000 {
		teach.skips(fmt.Sprint("other ", device), 0)
	}
	if n := len(teach.latest); n > 2000 {
		t.Errorf("%d devices are remembered", n)
	}
}

func TestStickyConfiguration(t *testing.T) {
	cfg, m := testConfig()
	l := codec.DefaultLabels()
	l.Topics, l.Sticky = []string{"line/state"}, true
	cfg.Labels = []codec.Labels{l}
	if _, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()}); err == nil || !strings.Contains(err.Error(), "no stream of these models has signals") {
		t.Errorf("without signals: %v", err)
	}
	cfg, m = signalsConfig(nil)
	other := l
	other.Topics, other.Settle = []string{"line/other"}, time.Second
	cfg.Labels = []codec.Labels{l, other}
	if _, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()}); err == nil || !strings.Contains(err.Error(), "labels[1].topics: stream vibration") {
		t.Errorf("two settings: %v", err)
	}
}
