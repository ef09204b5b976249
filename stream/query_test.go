package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"edge/online/active"
	"edge/stream/mqtt"
)

// questioning is a rig whose model asks for the given fraction.
func questioning(t *testing.T, how active.Config, change func(*Config, *ModelConfig)) *rig {
	cfg, m := testConfig()
	m.Active = how
	if change != nil {
		change(&cfg, &m)
	}
	return newRig(t, newFakeJournal(), cfg, m)
}

// queried returns the questions that were published.
func queried(t *testing.T, r *rig) (all []map[string]any) {
	t.Helper()
	for _, o := range r.published() {
		if o.Topic != "edge/n1/bearing/query" {
			continue
		}
		var q map[string]any
		if err := json.Unmarshal(o.Payload, &q); err != nil {
			t.Fatalf("%v in %s", err, o.Payload)
		}
		if o.Retained || o.QoS != 1 {
			t.Errorf("retained %v, QoS %d", o.Retained, o.QoS)
		}
		all = append(all, q)
	}
	return all
}

func sampleOf(i int) string { return fmt.Sprintf(`{"id":"s%d","features":[%d,0.5]}`, i, i) }

var everything = active.Config{Strategy: active.Margin, Budget: 1}

// Long: a list of independent cases.
func TestQuery(t *testing.T) {
	in("is about a pending sample, and its label is learnt", t, func(t *testing.T) {
		r := questioning(t, everything, nil)
		r.send(p7, `{"features":[9,0],"label":"ok"}`)
		time.Sleep(time.Second)
		r.send(p7, `{"id":7,"features":[7,0.5]}`)
		time.Sleep(time.Second)
		all := queried(t, r)
		if len(all) != 1 {
			t.Fatalf("%d questions: %v", len(all), all)
		}
		q := all[0]
		for key, want := range map[string]string{
			"v": "1", "id": "7", "node": `"n1"`, "model": `"bearing"`, "device": `"p7"`, "reason": `"margin"`, "class": `"ok"`, "confidence": "1",
			"features": `{"f0":7,"f1":0.5}`, "score": "0",
		} {
			if got, _ := json.Marshal(q[key]); string(got) != want {
				t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
		asked, err := time.Parse(time.RFC3339, q["ts"].(string))
		expires, err2 := time.Parse(time.RFC3339, q["expires"].(string))
		if err != nil || err2 != nil || expires.Sub(asked) != DefaultPending().TTL {
			t.Errorf("asked at %v, expires at %v", q["ts"], q["expires"])
		}
		if open := r.node.Queries("bearing"); len(open) != 1 || open[0].Prediction.ID != "7" || r.node.Queries("pump") != nil {
			t.Errorf("open: %v", open)
		}
		r.send("edge/n1/bearing/label/p7", `{"id":"7","label":"worn"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 9", "worn 7"})
		if s := r.node.Stats().Models["bearing"]; s.Asked != 1 || s.Answered != 1 || s.Open != 0 || s.Unanswered != 0 {
			t.Errorf("%+v", s)
		}
	})
	in("keeps to the budget, and to samples that can wait", t, func(t *testing.T) {
		r := questioning(t, active.Config{Strategy: active.Random, Budget: 0.05}, nil)
		for i := range 5000 { // by then the head start is paid back
			r.send(p7, sampleOf(i), fmt.Sprintf(`{"features":[%d,1]}`, i), fmt.Sprintf(`{"id":"l%d","features":[%d,2],"label":"ok"}`, i, i))
			time.Sleep(10 * time.Millisecond)
			r.send("edge/n1/bearing/label/p7", fmt.Sprintf(`{"id":"s%d","label":"worn"}`, i))
			time.Sleep(10 * time.Millisecond)
		}
		s := r.node.Stats().Models["bearing"]
		if s.Asked < 225 || s.Asked > 250 || s.Answered != s.Asked {
			t.Errorf("of 5000 samples that can wait %d were asked for, %d answered; want at most 250", s.Asked, s.Answered)
		}
	})
	in("not more than so many an hour", t, func(t *testing.T) {
		how := everything
		how.PerHour = 6
		r := questioning(t, how, nil)
		for i := range 3 * 360 {
			r.send(p7, sampleOf(i))
			time.Sleep(10 * time.Second)
		}
		if n := r.node.Stats().Models["bearing"].Asked; n != 18 {
			t.Errorf("%d questions in 3 hours, want 18", n)
		}
	})
	in("no more without answers", t, func(t *testing.T) {
		r := questioning(t, everything, func(_ *Config, m *ModelConfig) { m.Pending.TTL = time.Hour })
		for i := range 200 {
			r.send(p7, sampleOf(i))
			time.Sleep(time.Second)
		}
		if s := r.node.Stats().Models["bearing"]; s.Asked != maxOpen || s.Open != maxOpen {
			t.Errorf("%d asked, %d open, want %d", s.Asked, s.Open, maxOpen)
		}
		time.Sleep(2 * time.Hour)
		for i := range 2 { // the first one finds out that the others have expired
			r.send(p7, sampleOf(200+i))
			time.Sleep(time.Second)
		}
		if s := r.node.Stats().Models["bearing"]; s.Unanswered != maxOpen || s.Open != 1 || s.Asked != maxOpen+1 {
			t.Errorf("after they have expired: %+v", s)
		}
	})
	in("no more than that for the samples of one message, and the next when they are answered", t, func(t *testing.T) {
		r := questioning(t, everything, nil)
		for first := 0; first < 400; first += 200 {
			var batch []string
			for i := range 200 {
				batch = append(batch, sampleOf(first+i))
			}
			r.send(p7, `{"batch":[`+strings.Join(batch, ",")+`]}`)
			time.Sleep(time.Second)
			all := queried(t, r)
			if s := r.node.Stats().Models["bearing"]; len(all) != maxOpen || s.Open != maxOpen || int(s.Asked) != maxOpen*(first/200+1) {
				t.Errorf("after %d samples %d published, %+v", first+200, len(all), s)
			}
			for _, q := range all {
				r.send("edge/n1/bearing/label/p7", fmt.Sprintf(`{"id":%q,"label":"ok"}`, q["id"]))
			}
			time.Sleep(time.Second)
		}
	})
	in("not by a message that will come again", t, func(t *testing.T) {
		how := everything
		how.PerHour = 1
		r := questioning(t, how, nil)
		r.node.deferred.Push(&mqtt.Message{Topic: p7, Payload: []byte(sampleOf(1)), Arrived: time.Now()}, nil)
		time.Sleep(time.Second)
		if n := r.node.Stats().Observed; n != 1 {
			t.Fatalf("%d messages were answered", n)
		}
		r.send(p7, sampleOf(1))
		time.Sleep(time.Second)
		if all := queried(t, r); len(all) != 1 {
			t.Errorf("asked when it comes again: %v", all)
		}
	})
	in("ends when another sample has the id", t, func(t *testing.T) {
		r := questioning(t, everything, nil)
		r.send(p7, `{"id":"p7","features":[1,0]}`, `{"id":"p7","features":[2,0]}`)
		time.Sleep(time.Second)
		if s, open := r.node.Stats().Models["bearing"], r.node.Queries("bearing"); s.Asked != 2 || s.Unanswered != 1 || len(open) != 1 || open[0].Features[0] != 2 {
			t.Errorf("%+v, open: %v", s, open)
		}
		r.send("edge/n1/bearing/label/p7", `{"id":"p7","label":"worn"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2"})
		if s := r.node.Stats().Models["bearing"]; s.Answered != 1 || s.Open != 0 {
			t.Errorf("after the label %+v", s)
		}
	})
	in("is published once the sample is durable", t, func(t *testing.T) {
		r := questioning(t, everything, nil)
		r.journal.set(errDiskFull, nil)
		r.send(p7, sampleOf(1))
		time.Sleep(time.Minute)
		if all := queried(t, r); len(all) > 0 {
			t.Errorf("asked while the disk is full: %v", all)
		}
		r.journal.set(nil, nil)
		time.Sleep(time.Minute)
		if all := queried(t, r); len(all) != 1 || all[0]["id"] != "s1" || all[0]["class"] != nil || all[0]["confidence"] != nil {
			t.Errorf("when the disk works again: %v", all)
		}
	})
	in("the same samples, the same questions", t, func(t *testing.T) {
		run := func() (ids []string) {
			r := questioning(t, active.Config{Strategy: active.Entropy, Budget: 0.2}, nil)
			defer r.stop()
			for i := range 300 {
				r.send(p7, sampleOf(i))
				time.Sleep(time.Second)
				for _, q := range queried(t, r) {
					ids = append(ids, q["id"].(string))
					r.send("edge/n1/bearing/label/p7", fmt.Sprintf(`{"id":%q,"label":"c%d"}`, q["id"], i%3))
				}
			}
			return ids
		}
		one := run()
		if len(one) < 40 {
			t.Errorf("%d questions", len(one))
		}
		equal(t, "asked", run(), one)
	})
}

// Where nothing is to be asked, or a label is wrong, nothing is asked.
func TestNoQuery(t *testing.T) {
	in("by default", t, func(t *testing.T) {
		r := questioning(t, active.Default(), nil)
		r.send(p7, sampleOf(1), sampleOf(2))
		time.Sleep(time.Second)
		if all := queried(t, r); len(all) > 0 {
			t.Errorf("asked: %v", all)
		}
	})
	in("while learning is off", t, func(t *testing.T) {
		r := questioning(t, everything, func(_ *Config, m *ModelConfig) { m.Mark = markFrozen })
		r.send(p7, sampleOf(1))
		time.Sleep(time.Second)
		if all := queried(t, r); len(all) > 0 {
			t.Errorf("asked: %v", all)
		}
	})
	cfg, m := testConfig()
	m.Active = active.Config{Strategy: active.BALD, Budget: 7}
	if _, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()}); err == nil {
		t.Error("a budget of 7 is accepted")
	}
}
