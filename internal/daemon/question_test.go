package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/online"
	"edge/online/active"
	"edge/stream/codec"
)

// A query is published over MQTT; its label is learnt, whether it comes over MQTT
// or from the page, which shows queries first.
func TestQueryOverMQTT(t *testing.T) {
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		s := serve(t, b.URL(), func(c *config.Config) {
			m := c.Models["wear"]
			m.Active = active.Config{Strategy: active.BALD, Budget: 1}
			c.Models["wear"], c.Control.Enabled = m, true
		}).ready()
		asked := make(chan gjson.Result, 10)
		client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(b.URL()).SetClientID("operator"))
		if token := client.Connect(); token.Wait() && token.Error() != nil {
			t.Fatal(token.Error())
		}
		defer client.Disconnect(0)
		if token := client.Subscribe("edge/test/wear/query", 1, func(_ mqtt.Client, m mqtt.Message) { asked <- gjson.ParseBytes(m.Payload()) }); token.Wait() && token.Error() != nil {
			t.Fatal(token.Error())
		}
		publish(t, b.URL(), "plant/a/pump", `{"id":"one","features":[1,2]}`, `{"features":[2,2]}`, `{"id":"three","features":[3,2]}`)
		for _, id := range []string{"one", "three"} {
			select {
			case q := <-asked:
				if q.Get("id").String() != id || q.Get("reason").String() != "bald" || q.Get("device").String() != "a" || q.Get("features.b").Float() != 2 || !q.Get("expires").Exists() {
					t.Errorf("want a question about %s: %s", id, q)
				}
			case <-time.After(brokertest.Patience):
				t.Fatalf("no query for %s", id)
			}
		}
		_, a := s.get("/api/v1/models/wear")
		if open := gjson.Get(a, "queries.open"); open.Get("0.id").String() != "one" || open.Get("1.seq").Uint() != 3 || open.Get("0.reason").String() != "bald" || len(open.Array()) != 2 {
			t.Errorf("the page does not show them: %s", open)
		}
		publish(t, b.URL(), "edge/test/wear/label/a", `{"id":"one","label":"ok"}`)
		if !brokertest.Eventually(func() bool { return s.current().Node.Stats().Models["wear"].Answered == 1 }) {
			t.Fatal("the label over MQTT answers nothing")
		}
		code, answer := s.do("POST", "/api/v1/models/wear/label", `{"id":"three","device":"a","seq":3,"label":"worn"}`, map[string]string{"Content-Type": "application/json"})
		if code != http.StatusOK {
			t.Fatalf("the page's answer: %d %s", code, answer)
		}
		s.await("not both are learnt", "/api/v1/models/wear", func(_ int, a string) bool {
			return gjson.Get(a, "version").Uint() == 2 && gjson.Get(a, "queries.answered").Uint() == 2 && len(gjson.Get(a, "queries.open").Array()) == 0
		})
		_, metrics := s.get("/metrics")
		for _, want := range []string{`edge_queries_total{model="wear",what="asked"} 2`, `edge_queries_total{model="wear",what="answered"} 2`, `edge_queries_open{model="wear"} 0`} {
			if !strings.Contains(metrics, want) {
				t.Errorf("/metrics does not have %s", want)
			}
		}
		if m := brokertest.Retained(t, b.URL(), "edge/test/wear/metrics"); !gjson.Get(m, "queries.asked").Exists() {
			t.Errorf("the model's metrics do not count questions: %s", m)
		}
	})
}

// label sends a label from the page.
func (s *served) label(id, device string, seq int, label string) (code int, answer string) {
	return s.do("POST", "/api/v1/models/wear/label", fmt.Sprintf(`{"id":%q,"device":%q,"seq":%d,"label":%s}`, id, device, seq, jsonText(label)), map[string]string{"Content-Type": "application/json"})
}

// shown waits until the API's view of the model satisfies good, and returns it.
func (s *served) shown(what string, good func(a string) bool) (answer string) {
	s.t.Helper()
	s.await(what, "/api/v1/models/wear", func(_ int, a string) bool {
		answer = a
		return good(a)
	})
	return answer
}

func jsonText(s string) string { return string(gjson.AppendJSONString(nil, s)) }

// The page creates the first class, and any other while classes are open; a label
// that the model refuses is refused with the reason.
func TestFirstClass(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) {
		m := c.Models["wear"]
		m.Learner.Classes.Max = 2
		c.Models["wear"] = m
		c.Control.Enabled = true
	}).ready()
	publish(t, b.URL(), "plant/a/pump", `{"id":"one","features":[1,2]}`, `{"id":"two","features":[3,4]}`, `{"id":"three","features":[5,6]}`)
	model := s.shown("no sample waits", func(a string) bool { return gjson.Get(a, "pending").Int() == 3 })
	if of := gjson.Get(model, "new_classes"); !of.Get("open").Bool() || of.Get("max").Int() != 2 || of.Get("bytes").Int() != online.MaxLabel || gjson.Get(model, "classes.#").Int() != 0 {
		t.Errorf("the API's classes are %s", of)
	}
	for _, tc := range []struct {
		what, id, label string
		code            int
		reason          string
	}{
		{"a name that is too long", "one", strings.Repeat("x", 257), http.StatusUnprocessableEntity, "label has 257 bytes: want 1 to 256"},
		{"a name of nothing", "one", "", http.StatusUnprocessableEntity, "label has 0 bytes: want 1 to 256"},
		{"a name that cannot be printed", "one", "a\x1b[2J", http.StatusUnprocessableEntity, "label has a control character"},
		{"the first class", "one", "idle", http.StatusOK, ""},
		{"the second class", "two", "läuft \"schnell\"", http.StatusOK, ""},
		{"one class too many", "three", "broken", http.StatusUnprocessableEntity, `label "broken" would be one class more than classes.max = 2`},
	} {
		code, answer := s.label(tc.id, "a", 0, tc.label)
		if code != tc.code || gjson.Get(answer, "error").String() != tc.reason {
			t.Errorf("%s: answers %d %s, want %d %s", tc.what, code, answer, tc.code, tc.reason)
		}
	}
	s.shown("the classes are not there", func(a string) bool {
		return gjson.Get(a, "classes").Raw == `["idle","läuft \"schnell\""]`
	})
}

// Closed classes accept no other.
func TestClosedClasses(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) {
		m := c.Models["wear"]
		m.Learner.Classes = online.Classes{Names: []string{"ok", "worn"}, Max: 8, Confirm: 1}
		c.Models["wear"] = m
		c.Control.Enabled = true
	}).ready()
	publish(t, b.URL(), "plant/a/pump", `{"id":"one","features":[1,2]}`)
	s.shown("no sample waits", func(a string) bool {
		return gjson.Get(a, "pending").Int() == 1 && !gjson.Get(a, "new_classes.open").Bool()
	})
	if code, answer := s.label("one", "a", 0, "broken"); code != http.StatusUnprocessableEntity || !strings.Contains(answer, "not one of the model's classes, which are closed") {
		t.Errorf("answers %d %s", code, answer)
	}
}

// A pending sample shows its values beside their usual range. Once it has its
// label, over MQTT or from the page, it is no longer pending.
func TestWaitingSamples(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) {
		c.Control.Enabled = true
		m := c.Models["wear"]
		m.Active.Strategy, m.Active.Budget, m.Active.PerHour = active.Random, 1, 0
		in := c.Streams["pump"]
		in.OnMissing = codec.OnMissingMarginalise
		c.Models["wear"], c.Streams["pump"] = m, in
	}).ready()
	publish(t, b.URL(), "plant/a/pump", pumpSamples(40)...)
	s.shown("the model is not built", func(a string) bool {
		return gjson.Get(a, "version").Int() == 40 && gjson.Get(a, "built").Bool()
	})
	publish(t, b.URL(), "plant/a/pump", `{"id":"one","features":[1,500]}`, `{"id":"two","features":[null,1]}`, `{"features":[1,1]}`)
	a := s.shown("no sample waits", func(a string) bool {
		return gjson.Get(a, "pending").Int() == 2 && gjson.Get(a, "samples.0.waits").Bool() && gjson.Get(a, "queries.open.#").Int() == 2
	})
	for _, list := range []string{"samples", "queries.open"} {
		one := gjson.Get(a, list+`.#(id=="one")`)
		if !one.Get("waits").Bool() || one.Get("values.#").Int() != 2 || one.Get("values.0.feature").String() != "a" {
			t.Fatalf("%s: the sample that waits is %s", list, one)
		}
		if v := one.Get("values.1"); v.Get("value").Float() != 500 || !(v.Get("low").Float() < v.Get("high").Float()) || v.Get("high").Float() > 500 {
			t.Errorf("%s: the value that is far off is %s", list, v)
		}
		if v := gjson.Get(a, list+`.#(id=="two").values.0.value`); v.Raw != "null" && v.Exists() {
			t.Errorf("%s: the missing value is %s", list, v.Raw)
		}
	}
	if labelled := gjson.Get(a, `samples.#(id=="p-39")`); labelled.Get("waits").Bool() || labelled.Get("values").Exists() {
		t.Errorf("a sample with its label is %s", labelled)
	}

	// Over MQTT, not on the page.
	publish(t, b.URL(), "edge/test/wear/label/a", `{"id":"one","label":"ok"}`)
	s.shown("the sample still waits", func(a string) bool {
		one := gjson.Get(a, `samples.#(id=="one")`)
		return !one.Get("waits").Bool() && one.Get("learned").Bool() && one.Get("label").String() == "ok" && !gjson.Get(a, `queries.open.#(id=="one")`).Exists()
	})
	publish(t, b.URL(), "edge/test/wear/label/a", `{"id":"last","label":"worn"}`)
	a = s.shown("the newest still waits", func(a string) bool { return gjson.Get(a, "samples.0.label").String() == "worn" })
	if gjson.Get(a, "samples.0.waits").Bool() || !gjson.Get(a, `samples.#(id=="two").waits`).Bool() {
		t.Errorf("after both labels: %s", gjson.Get(a, "samples"))
	}
	if at := gjson.Get(a, "present.devices.0"); at.Get("device").String() != "a" || at.Get("class").String() == "" || at.Get("timeline.#").Int() == 0 || time.Since(at.Get("since").Time()) > time.Hour {
		t.Errorf("the device is %s", at)
	}
	s.shown("the course has no time", func(a string) bool { return time.Since(gjson.Get(a, "course.0.ts").Time()).Abs() < time.Hour })
}
