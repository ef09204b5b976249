package stream

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/codec"
	"edge/stream/mqtt"
)

// A row and a state of a device with too long a name are refused with the same reason.
func TestStateOfALongDevice(t *testing.T) {
	in("", t, func(t *testing.T) {
		cfg, m := signalsConfig(rowSamples)
		l := codec.DefaultLabels()
		l.Topics, l.TopicTemplate, l.Sticky = []string{"plant/+/state"}, "plant/{device}/state", true
		cfg.Labels = []codec.Labels{l}
		r, name := newRig(t, newFakeJournal(), cfg, m), strings.Repeat("p", maxStageDevice+1)
		r.send(strings.Replace(accP7, "p7", name, 1), `{"x":1,"y":0}`)
		r.send("plant/"+name+"/state", "run")
		time.Sleep(time.Second)
		var errs []string
		for _, p := range r.published() {
			if p.Topic == "edge/n1/bearing/reject" {
				errs = append(errs, gjson.GetBytes(p.Payload, "error").Str)
			}
		}
		if len(errs) != 2 || errs[0] != errs[1] || !strings.Contains(errs[0], "has 97 bytes, at most 96 are possible") {
			t.Errorf("errors %q", errs)
		}
	})
}

// A word that is refused ends the state before it: rows after it would be learnt as the former
// one. A payload without a state leaves it as it is.
// Long: a list of independent cases.
func TestRefusedStateEndsTheOneBefore(t *testing.T) {
	config := func() (Config, ModelConfig) {
		cfg, m := signalsConfig(rowSamples)
		l := codec.DefaultLabels()
		l.Topics, l.TopicTemplate, l.Sticky, l.Map = []string{"plant/+/state"}, "plant/{device}/state", true, map[string]string{"1": "idle", "2": "run"}
		cfg.Labels = []codec.Labels{l}
		return cfg, m
	}
	const state, row = "plant/p7/state", `{"x":1,"y":0}`
	for _, word := range []string{"3", "stopped", `{"label":"stopped"}`, `{"label":3.5}`, `{"label":["run"]}`} {
		in("refused: "+word, t, func(t *testing.T) {
			cfg, m := config()
			r := newRig(t, newFakeJournal(), cfg, m)
			r.send(state, "run")
			r.send(accP7, row)
			r.sendMessage(&mqtt.Message{Topic: state, Payload: []byte(word), QoS: 1, Retained: true})
			r.send(accP7, row)
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"run 1"})
			equal(t, "rejects", r.rejects(), []string{"bad_label"})
			r = r.restart(cfg, m) // after which the former state stays ended
			r.send(accP7, row)
			r.send(state, "1")
			r.send(accP7, row)
			time.Sleep(time.Second)
			equal(t, "learnt after a restart", r.models["bearing"].learnt(), []string{"run 1", "idle 1"})
		})
	}
	for _, word := range []string{"0", `{"label":0}`} {
		in("no label: "+word, t, func(t *testing.T) {
			cfg, m := config()
			cfg.Labels[0].Map["0"] = ""
			r := newRig(t, newFakeJournal(), cfg, m)
			r.send(state, "run")
			r.send(accP7, row)
			r.send(state, word)
			r.send(accP7, row)
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"run 1"})
			equal(t, "rejects", r.rejects(), nil)
		})
	}
	for _, word := range []string{"", `""`, `{"label":""}`, `{"label":null}`, "7"} {
		in("ignored: "+word, t, func(t *testing.T) {
			cfg, m := config()
			cfg.Labels[0].Ignore = []string{"", "7.0"}
			cfg.Labels[0].MaxAge = time.Minute
			r := newRig(t, newFakeJournal(), cfg, m)
			r.send(state, "run")
			for range 4 { // the state does not get younger by it
				r.send(accP7, row)
				r.send(state, word)
				time.Sleep(25 * time.Second)
			}
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"run 1", "run 1", "run 1"})
			equal(t, "rejects", r.rejects(), nil)
			if len(r.acks()) != 9 {
				t.Errorf("acknowledged %q, want all", r.acks())
			}
		})
	}
	for _, nothing := range []string{`{"battery":3}`, `{"label":`, `{"label":"stopped","label":"run"}`, `["stopped"]`} {
		in("tells no state: "+nothing, t, func(t *testing.T) {
			cfg, m := config()
			r := newRig(t, newFakeJournal(), cfg, m)
			r.send(state, "run", nothing)
			r.send(accP7, row)
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"run 1"})
		})
	}
	in("a stored state ends with the message that is acknowledged", t, func(t *testing.T) {
		cfg, m := config()
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(accP7, row)
		r.send(state, "run")
		time.Sleep(time.Second)
		r = r.restart(cfg, m)
		r.send(state, "stopped")
		time.Sleep(time.Second)
		if len(r.acks()) != 1 || len(r.journal.windows()) > 0 {
			t.Errorf("acknowledged %q, with %d stored windows", r.acks(), len(r.journal.windows()))
		}
	})
}

// A label in a payload that is refused ends the one of the rows at fixed times.
func TestRefusedLabelEndsTheOneThatIsHeld(t *testing.T) {
	cfg, m := signalsConfig(func(s *codec.Stream) {
		rowSamples(s)
		s.Stage.Hold.Every = time.Second
		s.LabelMap = map[string]string{"2": "run"}
	})
	in("rows before and after", t, func(t *testing.T) {
		r := newRig(t, newFakeJournal(), cfg, m)
		time.Sleep(500 * time.Millisecond)
		r.send(accP7, `{"x":1,"y":0,"label":2}`)
		time.Sleep(2 * time.Second)
		r.send(accP7, `{"x":7,"y":0,"label":3}`)
		time.Sleep(2 * time.Second)
		r = r.restart(cfg, m)
		r.send(accP7, `{"x":2,"y":0}`)
		time.Sleep(3 * time.Second)
		r.send(accP7, `{"x":3,"y":0,"label":2}`)
		time.Sleep(2 * time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"run 1", "run 1", "run 3"})
	})
}
