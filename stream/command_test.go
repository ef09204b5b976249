package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

const learningTopic = "edge/n1/request/learning/bearing"

// controlled returns a rig that carries out requests, with a mark of an earlier run.
func controlled(t *testing.T, journal *fakeJournal, mark uint64) *rig {
	cfg, m := testConfig()
	cfg.Control.Enabled = true
	m.Mark = mark
	return newRig(t, journal, cfg, m)
}

// answers returns the payloads that were published on a topic.
func answers(all []*mqtt.Publication, topic string) (payloads []string) {
	for _, m := range all {
		if m.Topic == topic {
			payloads = append(payloads, string(m.Payload))
		}
	}
	return payloads
}

// Long: a list of independent cases.
func TestLearningSwitchedOff(t *testing.T) {
	in("later messages are not learnt, by their position among the messages", t, func(t *testing.T) {
		r := controlled(t, newFakeJournal(), 0)
		r.send(p7, labelled(1), `{"id":"early","features":[2,0]}`)
		r.send(learningTopic, "OFF")
		r.send(p7, labelled(3), `{"id":"a","features":[4,0],"label":"ok"}`, `{"id":"waits","features":[5,0]}`)
		r.send("factory/p7/label", `{"id":"early","label":"ok"}`)
		r.send("edge/n1/bearing/label", `{"id":"last","label":"ok"}`)
		r.send(learningTopic, "on")
		r.send(p7, labelled(6))
		r.send("factory/p7/label", `{"id":"early","label":"worn"}`, `{"id":"waits","label":"ok"}`)
		r.send(p7, `{"id":"a","features":[4,0],"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 6", "worn 2", "ok 5", "ok 4"})
		if got := len(r.acks()); got != 13 {
			t.Errorf("%d messages acknowledged, want all 13", got)
		}
		s := r.node.Stats()
		if m := s.Models["bearing"]; s.Frozen != 4 || m.Frozen != 4 || !m.Learning || s.Predictions != 7 {
			t.Errorf("frozen %d, of the model %d, learning %v, predictions %d; want 4, 4, true, 7", s.Frozen, m.Frozen, m.Learning, s.Predictions)
		}
		all := r.published()
		var learned []string
		for _, p := range answers(all, "edge/n1/bearing/prediction/p7") {
			var got struct{ Learned bool }
			if err := json.Unmarshal([]byte(p), &got); err != nil {
				t.Fatal(err)
			}
			learned = append(learned, fmt.Sprint(got.Learned))
		}
		equal(t, "learned, in the predictions", learned, []string{"true", "false", "false", "false", "false", "true", "true"})
		equal(t, "answers", answers(all, "edge/n1/response/learning/bearing"), []string{
			`{"data":{"learning":false},"status":"ok"}`, `{"data":{"learning":true},"status":"ok"}`})
		var events []string
		for _, e := range answers(all, "edge/n1/event") {
			var got struct{ Event string }
			if err := json.Unmarshal([]byte(e), &got); err != nil {
				t.Fatal(err)
			}
			events = append(events, got.Event)
		}
		equal(t, "events", events, []string{"learning_off", "learning_on"})
	})
	in("a restart changes nothing", t, func(t *testing.T) {
		journal := newFakeJournal()
		r := controlled(t, journal, 0)
		r.send(p7, labelled(1))
		r.send(learningTopic, `{"data":{"learning":false},"transaction":"a1"}`)
		time.Sleep(time.Second)
		equal(t, "answers", answers(r.published(), "edge/n1/response/learning/bearing"), []string{`{"data":{"learning":false},"status":"ok","transaction":"a1"}`})
		r.stop()
		again := controlled(t, journal, journal.mark("bearing"))
		again.send(p7, labelled(2))
		time.Sleep(time.Second)
		if s := again.node.Stats(); s.Models["bearing"].Learning || s.Frozen != 1 || len(again.models["bearing"].learnt()) > 0 {
			t.Errorf("after a restart: %+v, learnt %q", s.Models["bearing"], again.models["bearing"].learnt())
		}
	})
	in("a repetition of an earlier request changes nothing", t, func(t *testing.T) {
		r := controlled(t, newFakeJournal(), 0)
		r.send(learningTopic, "OFF") // under identifier 1
		time.Sleep(time.Second)
		r.reconnect(&mqtt.Cursor{})
		r.send(learningTopic, "ON")
		r.sendMessage(&mqtt.Message{ID: 1, Dup: true, Topic: learningTopic, Payload: []byte("OFF"), QoS: 1})
		time.Sleep(time.Second)
		r.send(p7, labelled(1))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		all := r.published()
		if got := answers(all, "edge/n1/bearing/prediction/p7"); len(got) != 1 || !strings.Contains(got[0], `"learned":true`) || !r.node.Stats().Models["bearing"].Learning {
			t.Errorf("predictions %q, learning %v", got, r.node.Stats().Models["bearing"].Learning)
		}
		equal(t, "answers", answers(all, "edge/n1/response/learning/bearing"), []string{
			`{"data":{"learning":false},"status":"ok"}`, `{"data":{"learning":true},"status":"ok"}`, `{"data":{"learning":false},"status":"ok"}`})
	})
	in("an answer says what is durable", t, func(t *testing.T) {
		journal := newFakeJournal()
		journal.set(errDiskFull, nil)
		r := controlled(t, journal, 0)
		r.send(learningTopic, "OFF")
		time.Sleep(time.Second)
		if got := r.acks(); len(got) > 0 || !r.node.Stats().Models["bearing"].Learning || len(answers(r.published(), "edge/n1/response/learning/bearing")) > 0 {
			t.Errorf("acknowledged %q before it was durable", got)
		}
		journal.set(nil, nil)
		time.Sleep(10 * time.Second)
		if got := r.acks(); len(got) != 1 || r.node.Stats().Models["bearing"].Learning || journal.mark("bearing") != markFrozen {
			t.Errorf("acknowledged %q, mark %d", got, journal.mark("bearing"))
		}
	})
	in("said twice it is journalled once", t, func(t *testing.T) {
		journal := newFakeJournal()
		r := controlled(t, journal, 0)
		r.send(learningTopic, "OFF", "off", "false")
		time.Sleep(time.Second)
		if commits, _ := journal.committed(); commits != 1 || len(answers(r.published(), "edge/n1/response/learning/bearing")) != 3 {
			t.Errorf("%d commits, want one, and three answers", commits)
		}
	})
}

func TestRequestsThatAreRefused(t *testing.T) {
	in("for one of two models", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		other := m
		other.Name, other.Model = "pump", newFakeModel(2)
		r := newRig(t, newFakeJournal(), cfg, m, other)
		r.send("edge/n1/request/export", "")
		time.Sleep(time.Second)
		const want = `{"error":"which model? the node has bearing, pump: send it to request/export/<model>","status":"error"}`
		equal(t, "export", answers(r.published(), "edge/n1/response/export"), []string{want})
	})
	in("with an answer", t, func(t *testing.T) {
		r := controlled(t, newFakeJournal(), 0)
		for _, c := range []struct{ topic, payload, want string }{
			{"learning/bearing", "maybe", `{"error":"want ON or OFF, or {\"data\": {\"learning\": true}}, not \"maybe\"","status":"error"}`},
			{"learning/bearing", `{"data":{},"transaction":7}`, `{"error":"want ON or OFF, or {\"data\": {\"learning\": true}}, not \"\"","status":"error","transaction":7}`},
			{"learning/bearing", `{"data"`, `{"error":"byte 7: unexpected end of JSON input: the message is cut off: is the sender's buffer too small?","status":"error"}`},
			{"learning/bearing", `{"data":{"learning":true,"learning":false}}`, `{"error":"key \"learning\" occurs twice","status":"error"}`},
			{"learning/motor", "ON", `{"error":"there is no model \"motor\"; the node has bearing","status":"error"}`},
			{"learning/", "ON", `{"error":"there is no model \"\"; the node has bearing","status":"error"}`},
			{"ping/bearing", "", `{"error":"ping is for the node: send it to request/ping","status":"error"}`},
			{"class_add/bearing", "", `{"error":"want {\"data\": {\"class\": \"…\"}}","status":"error"}`},
			{"class_add/bearing", `{"data":{"class":7}}`, `{"error":"want {\"data\": {\"class\": \"…\"}}","status":"error"}`},
			{"class_add/bearing", `{"data":{"class":"a\nb"}}`, `{"error":"class has a control character","status":"error"}`},
			{"class_rename/bearing", `{"data":{"from":"ok"}}`, `{"error":"want {\"data\": {\"to\": \"…\"}}","status":"error"}`},
			{"set_log_level", `{"data":{"level":"debug"}}`, `{"error":"not available in this program","status":"error"}`},
			{"dance/bearing", strings.Repeat("x", 5000), `{"error":"a request of more than 4KiB","status":"error"}`},
			{"class_add/bearing", `{"data":{"class":"a\ud83d"}}`, `{"error":"class is \"a\\ud83d\", which has half of a surrogate pair without the other half","status":"error"}`},
			{"dance/bearing", "ON", `{"error":"unknown request \"dance\": there are checkpoint, class_add, class_remove, class_rename, export, fleet, fleet_forget, fleet_rebase, freeze, health_check, learning, ping, reload, reset, rollback, set_log_level, unfreeze","status":"error"}`},
		} {
			r.send("edge/n1/request/"+c.topic, c.payload)
			time.Sleep(time.Second)
			equal(t, c.topic+" "+c.payload, answers(r.published(), "edge/n1/response/"+c.topic), []string{c.want})
		}
		r.send("edge/n1/request", "{}") // which the subscription covers
		time.Sleep(time.Second)
		if got := answers(r.published(), "edge/n1/response/"); len(got) != 1 || !strings.Contains(got[0], `unknown request \"\": there are`) {
			t.Errorf("a request without a name is answered %q", got)
		}
		r.sendMessage(&mqtt.Message{Topic: learningTopic, Payload: []byte("OFF"), QoS: 1, Retained: true})
		long := "edge/n1/request/"
		r.send(long+strings.Repeat("x", topic.MaxLength-len(long)), "{}") // the topic of a response is one byte longer
		time.Sleep(time.Second)
		s := r.node.Stats()
		if s.Rejected[codec.BadRequest] != 13 || s.Rejected[codec.TooLarge] != 1 || s.Rejected[codec.Malformed] != 1 || s.Rejected[codec.Repeated] != 1 || s.Rejected[codec.Retained] != 1 || s.Rejected[codec.BadTopic] != 1 || !s.Models["bearing"].Learning {
			t.Errorf("refused %v, learning %v", s.Rejected, s.Models["bearing"].Learning)
		}
	})
	in("unheard unless control is enabled", t, func(t *testing.T) {
		r := one(t)
		r.send(learningTopic, "OFF")
		time.Sleep(time.Second)
		if s := r.node.Stats(); s.Rejected[codec.Unrouted] != 1 || !s.Models["bearing"].Learning {
			t.Errorf("refused %v", s.Rejected)
		}
	})
}

// TestRequests sends every command, one request after the other.
// Long: a list of independent cases.
func TestRequests(t *testing.T) {
	in("each with its answer and its effect", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		m.Classes.Names, m.Classes.Max = []string{"ok"}, 3
		level := ""
		program := Program{
			Checkpoint: func(_ context.Context, model string) error { return nil },
			Export: func(_ context.Context, model, name string) (map[string]any, error) {
				return map[string]any{"file": name + ".state"}, nil
			},
			Earlier: func(_ context.Context, model, to string) (*Earlier, error) {
				if to == "nowhere" {
					return nil, errors.New("there is no export nowhere")
				}
				return &Earlier{State: []byte("the state of " + to), About: map[string]any{"samples": 3}}, nil
			},
			LogLevel: func(l string) error { level = l; return nil },
		}
		r := newProgrammedRig(t, newFakeJournal(), cfg, program, m)
		r.models["bearing"].say(0, "ok")
		r.node.models[0].classes.catchUp()
		for _, c := range []struct{ topic, payload, answer, learnt string }{
			{"ping", `{"transaction":1}`, `{"data":{"node":"n1","uptime_s":0,"version":""},"status":"ok","transaction":1}`, ""},
			{"checkpoint", "PRESS", `{"data":{"models":["bearing"]},"status":"ok"}`, ""},
			{"set_log_level", `{"data":{"level":"debug"}}`, `{"data":{"level":"debug"},"status":"ok"}`, ""},
			{"checkpoint", ``, `{"data":{"models":["bearing"]},"status":"ok"}`, ""},
			{"export/bearing", `{"data":{"name":"before"}}`, `{"data":{"file":"before.state"},"status":"ok"}`, ""},
			{"reload", ``, `{"error":"not available in this program","status":"error"}`, ""},
			{"freeze", ``, `{"data":{"learning":false},"status":"ok"}`, ""},
			{"unfreeze/bearing", ``, `{"data":{"learning":true},"status":"ok"}`, ""},
			{"class_add/bearing", `{"data":{"class":"worn"}}`, `{"data":{"class":"worn"},"status":"ok"}`, "3 worn"},
			{"class_add/bearing", `{"data":{"class":"worn"}}`, `{"error":"class \"worn\" is there already","status":"error"}`, ""},
			{"class_rename/bearing", `{"data":{"from":"worn","to":"alt"}}`, `{"data":{"from":"worn","to":"alt"},"status":"ok"}`, "5 worn alt"},
			{"class_rename/bearing", `{"data":{"from":"ok","to":"alt"}}`, `{"error":"\"alt\" is the name of another class","status":"error"}`, ""},
			{"class_rename/bearing", `{"data":{"from":"new","to":"newer"}}`, `{"error":"there is no class \"new\"","status":"error"}`, ""},
			{"class_add/bearing", `{"data":{"class":"third"}}`, `{"data":{"class":"third"},"status":"ok"}`, "3 third"},
			{"class_add/bearing", `{"data":{"class":"fourth"}}`, `{"error":"class \"fourth\" would be one more than classes.max = 3","status":"error"}`, ""},
			{"class_remove/bearing", `{"data":{"class":"third"}}`, `{"data":{"class":"third"},"status":"ok"}`, "4 third"},
			{"class_remove/bearing", `{"data":{"class":"third"}}`, `{"error":"there is no class \"third\"","status":"error"}`, ""},
			{"rollback/bearing", `{"data":{"to":"before"},"transaction":"b"}`, `{"data":{"samples":3},"status":"ok","transaction":"b"}`, "8  the state of before"},
			{"rollback/bearing", `{"data":{"name":"before"}}`, `{"error":"want {\"data\": {\"to\": \"…\"}}, not \"name\"","status":"error"}`, ""},
			{"rollback/bearing", `{"data":{"to":7}}`, `{"error":"want {\"data\": {\"to\": \"…\"}}, or no data","status":"error"}`, ""},
			{"rollback/bearing", `{"data":["older"]}`, `{"error":"want {\"data\": {\"to\": \"…\"}}, not \"\\\"older\\\"\"","status":"error"}`, ""},
			{"rollback/bearing", `{"to":"older"}`, `{"error":"want {\"data\": {\"to\": \"…\"}}, not \"{\\\"to\\\":\\\"older\\\"}\"","status":"error"}`, ""},
			{"rollback/bearing", `older`, `{"error":"want {\"data\": {\"to\": \"…\"}}, not \"older\"","status":"error"}`, ""},
			{"freeze", `{"data":{"model":"bearing"}}`, `{"error":"it takes no data, and \"model\" came; the topic names a model","status":"error"}`, ""},
			{"freeze", `bearing`, `{"error":"it takes no data, and \"bearing\" came; the topic names a model","status":"error"}`, ""},
			{"reset", `{"data":{"to":"older"},"transaction":2}`, `{"error":"it takes no data, and \"to\" came; the topic names a model","status":"error","transaction":2}`, ""},
			{"class_rename", `{"data":{"from":"worn","to":"alt","too":1}}`, `{"error":"want {\"data\": {\"from\": \"…\", \"to\": \"…\"}}, not \"too\"","status":"error"}`, ""},
			{"learning", `{"data":{"learning":false,"model":"bearing"}}`, `{"error":"want {\"data\": {\"learning\": \"…\"}}, not \"model\"","status":"error"}`, ""},
			{"export/bearing", `{"data":null}`, `{"data":{"file":".state"},"status":"ok"}`, ""},
			{"export/bearing", `{"data":{"to":"before"}}`, `{"error":"want {\"data\": {\"name\": \"…\"}}, not \"to\"","status":"error"}`, ""},
			{"rollback/bearing", `{"data":{"to":"nowhere"}}`, `{"error":"there is no export nowhere","status":"error"}`, ""},
			{"reset", ``, `{"data":{"model":"bearing"},"status":"ok"}`, "7"},
		} {
			before := len(r.models["bearing"].learnt())
			r.send("edge/n1/request/"+c.topic, c.payload)
			time.Sleep(time.Second)
			equal(t, c.topic+" "+c.payload, answers(r.published(), "edge/n1/response/"+c.topic), []string{c.answer})
			var want []string
			if c.learnt != "" {
				want = []string{c.learnt}
			}
			equal(t, "learnt by "+c.topic, r.models["bearing"].learnt()[before:], want)
		}
		if level != "debug" {
			t.Errorf("log level %q", level)
		}
		// A repeated request is carried out once, and answered as before.
		again := &mqtt.Message{ID: r.sent, Topic: "edge/n1/request/reset", QoS: 1, Dup: true}
		before := len(r.models["bearing"].learnt())
		r.sendMessage(again)
		time.Sleep(time.Second)
		equal(t, "a repeated request", answers(r.published(), "edge/n1/response/reset"), []string{`{"data":{"model":"bearing"},"status":"ok"}`})
		if got := r.models["bearing"].learnt()[before:]; len(got) > 0 {
			t.Errorf("a repeated request was carried out: %q", got)
		}
	})
	in("a drift takes the model back, and nothing else", t, func(t *testing.T) {
		cfg, m := testConfig()
		there := true
		r := newProgrammedRig(t, newFakeJournal(), cfg, Program{
			Earlier: func(_ context.Context, _, to string) (*Earlier, error) {
				if !there {
					return nil, errors.New("there is no older checkpoint")
				}
				return &Earlier{State: []byte("the state of " + to)}, nil
			},
		}, m)
		r.node.RollBack("bearing")
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"8  " + online.OnlyModel + "the state of older"})
		there = false
		r.node.RollBack("bearing")
		time.Sleep(time.Second)
		if e := object(t, r.published(), "event"); e["event"] != "rollback_failed" || e["model"] != "bearing" || e["detail"] != "there is no older checkpoint" {
			t.Errorf("event %v", e)
		}
	})
	in("one that takes too long is answered, and the others wait their turn", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		r := newProgrammedRig(t, newFakeJournal(), cfg, Program{
			Checkpoint: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
			Reload:     func(context.Context) error { return nil },
		}, m)
		r.send("edge/n1/request/checkpoint", "")
		time.Sleep(time.Millisecond) // it has begun, and left the queue
		for range maxBackground + 1 {
			r.send("edge/n1/request/reload", "")
		}
		r.send(p7, labelled(1))
		time.Sleep(time.Second)
		equal(t, "learnt meanwhile", r.models["bearing"].learnt(), []string{"ok 1"})
		if got := answers(r.published(), "edge/n1/response/reload"); len(got) != 1 || !strings.Contains(got[0], "busy") {
			t.Errorf("answers %q, want one that says busy", got)
		}
		time.Sleep(2 * requestTimeout)
		all := r.published()
		if got := answers(all, "edge/n1/response/checkpoint"); len(got) != 1 || !strings.Contains(got[0], `"status":"error"`) {
			t.Errorf("answers %q, want one error", got)
		}
		if got := answers(all, "edge/n1/response/reload"); len(got) != maxBackground {
			t.Errorf("%d answers %q, want %d", len(got), got, maxBackground)
		}
	})
}

func FuzzRequest(f *testing.F) {
	cfg, m := testConfig()
	node, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("learning/bearing", []byte("ON"))
	f.Add("learning/bearing", []byte(`{"data":{"learning":false},"transaction":"a1"}`))
	f.Add("class_rename/bearing", []byte(`{"data":{"from":"ok","to":"gut"},"transaction":{"a":[1]}}`))
	f.Add("class_add", []byte(`{"data":{"class":"broken"}}`))
	f.Add("ping", []byte(""))
	f.Add("learning", []byte("{"))
	f.Add("/", []byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, what string, payload []byte) {
		r, refusal := node.parseRequest(what, payload)
		if r.transaction != nil && !json.Valid(r.transaction) {
			t.Fatalf("%q has the transaction %q", payload, r.transaction)
		}
		if refusal != nil {
			if !slices.Contains(codec.Reasons(), refusal.Reason) {
				t.Fatalf("%q is refused for %q, which is not a known reason", payload, refusal.Reason)
			}
			return
		}
		if name, _, _ := strings.Cut(what, "/"); commandOf(name) == nil || r.command.scope != wholeNode && len(r.models) != 1 {
			t.Fatalf("request/%s with %q is %+v", what, payload, r)
		}
		for _, key := range []string{"class", "from", "to", "level"} {
			if name, err := r.className(key); err == nil && (name == "" || len(name) > online.MaxLabel) {
				t.Fatalf("%q gives the name %q", payload, name)
			}
		}
	})
}

// Values of several topics, labelled as the last sample.
func TestJoinedValues(t *testing.T) {
	in("a sample once both are there", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := codec.DefaultStream()
		s.Format, s.Features, s.Topics, s.TopicTemplate = codec.FormatValue, []string{"temp", "hum"}, []string{"home/+/+"}, "home/{room}/{feature}"
		cfg.Streams["vibration"] = s
		m.Output = codec.FormatCBOR
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send("home/attic/temp", "21")
		r.send("home/cellar/temp", "12")
		time.Sleep(500 * time.Millisecond)
		r.send("home/cellar/hum", "80")
		time.Sleep(600 * time.Millisecond)
		r.send("home/attic/hum", "40") // too late for 21
		r.send("home/attic/lux", "1")
		r.send("edge/n1/bearing/label/cellar", `{"id":"last","label":"damp"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"damp 12"})
		got := answers(r.published(), "edge/n1/bearing/prediction/cellar")
		var p struct{ Device string }
		if len(got) != 1 || cbor.Unmarshal([]byte(got[0]), &p) != nil || p.Device != "cellar" {
			t.Errorf("predictions %q, want one of the cellar, in CBOR", got)
		}
		if st := r.node.Stats(); st.Predictions != 1 || st.Rejected[codec.UnknownFeature] != 1 || len(r.acks()) != 6 {
			t.Errorf("%d predictions, refused %v, acknowledged %q", st.Predictions, st.Rejected, r.acks())
		}
	})
}
