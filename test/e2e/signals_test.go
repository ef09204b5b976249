package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// signalsConfig writes a configuration with these streams and labels, and one model of
// the stream machine.
func signalsConfig(t *testing.T, broker, streams, labels string) (path string) {
	t.Helper()
	return files.Write(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"]}
streams:
%s
labels: %s
models:
  machine: {streams: [machine], inducing: 5, warmup: 10, batch: {max_size: 4, max_wait: 0s}}
http: {listen: ""}
control: {enabled: true}
store: {path: "%s"}
`, broker, streams, labels, filepath.Join(t.TempDir(), "edge.db")))
}

// awaitAll waits until the session has n messages on a topic, and returns them.
func (s *session) awaitAll(topic string, n int) (payloads []string) {
	s.t.Helper()
	if !brokertest.Eventually(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		payloads = append([]string(nil), s.received[topic]...)
		return len(payloads) >= n
	}) {
		s.t.Fatalf("%d messages on %s, want %d: %q", len(payloads), topic, n, payloads)
	}
	return payloads
}

const vibration = `
  machine:
    topics: ["plant/+/acc"]
    topic_template: "plant/{device}/acc"
    signals: [x, y]
    window: {length: 8, hop: 4, max_gap: 1m}`

// TestVibration sends rows of a vibration in batches, with a stop in the middle of a
// window: ids, features and labels are as without it. A range labels what waits. A window
// of another length is refused, by a reload and by the check.
func TestVibration(t *testing.T) {
	b := brokertest.New(t, brokertest.Mosquitto)
	path := signalsConfig(t, b.URL(), vibration, "[]")
	s := newSession(t, b.URL())
	burst := func(first int) {
		var rows []string
		for i := first; i < first+3; i++ {
			rows = append(rows, fmt.Sprintf(`{"ts":%d,"x":%d,"y":%d}`, 1_000_000+i, i, i%2))
		}
		s.publish("plant/p7/acc", `{"batch":[`+strings.Join(rows, ",")+`]}`)
	}
	d := harness.Start(t, path)
	d.Await("connected to the broker")
	answerTo(t, path, "ping") // it is subscribed
	for i := range 2 {
		burst(3 * i)
	}
	answerTo(t, path, "ping") // it has taken them
	d.Stop()
	for i := 2; i < 8; i++ { // the broker keeps them
		burst(3 * i)
	}
	d = harness.Start(t, path)
	d.Await("the windows of a stream go on")
	predictions := s.awaitAll("edge/test/machine/prediction/p7", 5)
	for i, p := range predictions {
		if want := fmt.Sprintf("p7#%d000", 1_000_007+4*i); gjson.Get(p, "id").Str != want {
			t.Errorf("prediction %d has the id %s, want %s", i, gjson.Get(p, "id"), want)
		}
	}
	s.publish("edge/test/machine/label/p7", `{"from":1000000,"to":1000015,"label":"ok"}`)
	s.publish("edge/test/machine/label", `{"ids":["p7#1000019000"],"label":"worn"}`)
	answers := s.awaitAll("edge/test/response/label", 2)
	if got := gjson.Get(answers[0], "data").Raw; got != `{"already":0,"expired":0,"labelled":3,"model":"machine"}` {
		t.Errorf("answer %s", answers[0])
	}
	if gjson.Get(answers[1], "data.labelled").Int() != 1 {
		t.Errorf("answer %s", answers[1])
	}
	d.Stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	longer := strings.Replace(string(text), "length: 8", "length: 16", 1)
	if err := os.WriteFile(path, []byte(longer), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := harness.Run(t, "check", "-c", path); code == exit.OK || !strings.Contains(out+errOut, "window have changed") {
		t.Errorf("check of another window: %d, %s%s", code, out, errOut)
	}
}

// TestInputsAndStates holds the values of two inputs, and learns from the retained state
// of a machine.
func TestInputsAndStates(t *testing.T) {
	b := brokertest.New(t, brokertest.Mosquitto)
	path := signalsConfig(t, b.URL(), `
  machine:
    inputs:
      plug: {topics: [shelly/status], fields: {power: apower}, max_age: 1m}
      door: {topics: [z2m/door], fields: {door: contact}, values: {door: {map: {"true": 0, "false": 1}}}, max_age: 0s}
    hold: {on: [plug]}
    derive: {p: log10(1 + power)}
    features: [p, door]`,
		`[{topics: [plc/state], sticky: true, map: {"1": idle, "2": run}}]`)
	s := newSession(t, b.URL())
	plc, err := broker.Dial(t.Context(), brokertest.Config(b.URL()), broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plc.Close()
	if err := plc.Publish(t.Context(), "plc/state", 1, true, []byte("1")); err != nil { // before the daemon is there
		t.Fatal(err)
	}
	d := harness.Start(t, path)
	d.Await("connected to the broker")
	answerTo(t, path, "ping")
	s.publish("z2m/door", `{"contact":false,"linkquality":80}`)
	for range 3 {
		s.publish("shelly/status", `{"apower":9,"voltage":230}`)
	}
	s.publish("plc/state", "2")
	s.publish("shelly/status", `{"apower":999}`)
	predictions := s.awaitAll("edge/test/machine/prediction", 4)
	for _, p := range predictions {
		if !gjson.Get(p, "learned").Bool() {
			t.Errorf("prediction %s has no label", p)
		}
	}
	if n := d.Stop().Get("samples").Int(); n != 4 {
		t.Errorf("%d samples were learnt", n)
	}
}
