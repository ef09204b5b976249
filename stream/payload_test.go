package stream

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"edge/online/active"
)

// Every payload that a node publishes is one of the structs of payload.go: it has
// no member that the struct lacks, and is written as the struct writes it.
func TestPayloadsAreTheirStructs(t *testing.T) {
	in("a day of a node", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		m.Active = active.Config{Strategy: active.Random, Budget: 1}
		r := newRig(t, newFakeJournal(), cfg, m)
		r.node.report.birth()
		r.send(p7, labelled(1), `{"id":"a","features":[1,0]}`, "[1]", "[1,2")
		r.send("edge/n1/request/ping", `{"transaction":1}`)
		r.send("edge/n1/request/dance", "")
		time.Sleep(time.Second)
		r.node.report.health()
		r.node.report.birth()
		r.node.report.event("bearing", "drift", "")
		seen := map[string]bool{}
		for _, p := range r.published() {
			_, name, _ := strings.Cut(strings.TrimPrefix(p.Topic, "edge/n1/"), "bearing/")
			if name == "" {
				name = strings.TrimPrefix(p.Topic, "edge/n1/")
			}
			name, _, _ = strings.Cut(name, "/")
			seen[name] = true
			var v any
			switch name {
			case "info":
				v = &InfoPayload{}
			case "health":
				v = &HealthPayload{}
			case "event":
				v = &EventPayload{}
			case "reject":
				v = &RejectPayload{}
			case "query":
				v = &QueryPayload{}
			case "response":
				v = &ResponsePayload{}
			case "metrics":
				v = &MetricsPayload{}
			case "prediction", "latest":
				v = &PredictionPayload{}
			default:
				t.Errorf("%s has no struct: %s", p.Topic, p.Payload)
				continue
			}
			d := json.NewDecoder(bytes.NewReader(p.Payload))
			d.DisallowUnknownFields()
			if err := d.Decode(v); err != nil {
				t.Errorf("%s: %v: %s", name, err, p.Payload)
				continue
			}
			if of, ok := v.(*InfoPayload); ok && of.Limits.MaxPayload["requests"] != int(MaxRequest) {
				t.Errorf("info states these limits of payloads: %v", of.Limits.MaxPayload)
			}
			again, err := encodeJSON(v)
			var one, other any
			if err != nil || json.Unmarshal(again, &one) != nil || json.Unmarshal(p.Payload, &other) != nil || !reflect.DeepEqual(one, other) {
				t.Errorf("%s: read and written again\n%s\nwant\n%s", name, again, p.Payload)
			}
			if name != "prediction" && name != "latest" && !bytes.Equal(again, p.Payload) {
				t.Errorf("%s: the members have another order:\n%s\nwant\n%s", name, again, p.Payload)
			}
		}
		for _, name := range []string{"info", "health", "event", "reject", "query", "response", "metrics", "prediction", "latest"} {
			if !seen[name] {
				t.Errorf("nothing was published on %s", name)
			}
		}
	})
}

// The members of an object come in the order of their names.
func TestPayloadOrder(t *testing.T) {
	for _, v := range []any{InfoPayload{}, HealthPayload{Program: map[string]any{"store_bytes": 7, "clock": "x"}}, EventPayload{Model: "m", Detail: "d"}, RejectPayload{}, QueryPayload{}, ResponsePayload{Data: map[string]any{}}, MetricsPayload{}, Scores{}} {
		text, err := encodeJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		if want, _ := encodeJSON(members); !bytes.Equal(text, want) {
			t.Errorf("%T is\n%s\nwant\n%s", v, text, want)
		}
	}
}
