package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/test/files"
	"edge/test/harness"
)

// session is a client that publishes as sensor and operator, and collects the daemon's
// messages.
type session struct {
	t   *testing.T
	pub *broker.Publisher
	rng *rand.Rand

	mu       sync.Mutex
	received map[string][]string // payloads by topic
}

func newSession(t *testing.T, connection string) *session {
	t.Helper()
	s := &session{t: t, rng: rand.New(rand.NewPCG(1, 2)), received: map[string][]string{}}
	cfg := brokertest.Config(connection)
	var err error
	s.pub, err = broker.NewPublisher(t.Context(), cfg, 1, broker.Listener{Filters: []string{"edge/test/#"}, Receive: func(topic string, payload []byte, retained bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !retained {
			s.received[topic] = append(s.received[topic], string(payload))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.pub.Close() })
	return s
}

func (s *session) publish(topic, payload string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), brokertest.Patience)
	defer cancel()
	if err := s.pub.Publish(ctx, topic, []byte(payload)); err != nil {
		s.t.Fatal(err)
	}
}

// sample publishes a reading near a point, with a label unless that is "".
func (s *session) sample(id string, x, y float64, label string) {
	s.t.Helper()
	rest := ""
	if label != "" {
		rest = fmt.Sprintf(`,"label":%q`, label)
	}
	s.publish("plant/valve", fmt.Sprintf(`{"id":%q,"flow":%.4f,"pressure":%.4f%s}`, id, x+0.5*s.rng.NormFloat64(), y+0.5*s.rng.NormFloat64(), rest))
}

// find returns the first message on a topic that satisfies fits.
func (s *session) find(topic string, fits func(gjson.Result) bool) (gjson.Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, payload := range s.received[topic] {
		if r := gjson.Parse(payload); fits(r) {
			return r, true
		}
	}
	return gjson.Result{}, false
}

// await waits until find returns a message.
func (s *session) await(what, topic string, fits func(gjson.Result) bool) (found gjson.Result) {
	s.t.Helper()
	if !brokertest.Eventually(func() bool {
		r, ok := s.find(topic, fits)
		found = r
		return ok
	}) {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := s.received[topic]
		s.t.Fatalf("no %s on %s; %d messages, the last %q", what, topic, len(all), all[max(0, len(all)-1):])
	}
	return found
}

func (s *session) awaitEvent(kind string) gjson.Result {
	s.t.Helper()
	return s.await(kind, "edge/test/event", func(r gjson.Result) bool { return r.Get("event").Str == kind })
}

// answer returns the prediction for a sample.
func (s *session) answer(id string) gjson.Result {
	s.t.Helper()
	return s.await("answer to "+id, "edge/test/valve/prediction", func(r gjson.Result) bool { return r.Get("id").Str == id })
}

// TestSession is a day with a valve: the model asks for a label, the label adds a
// class, the sensors are exchanged, the drift is detected, and the model rolls back to
// an export.
//
// Long: each step needs those before it.
func TestSession(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		store := filepath.Join(t.TempDir(), "edge.db")
		config := files.Write(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], max_reconnect_interval: 200ms}
streams: {plant: {topics: [plant/valve], features: [flow, pressure]}}
models:
  valve:
    streams: [plant]
    inducing: 20
    classes: {names: [open, closed], open: true, max: 4, confirm: 1}
    batch: {max_size: 8, max_wait: 100ms}
    active: {strategy: margin, budget: 0.5, budget_per_hour: 0}
    drift: {detector: adwin, on: error}
store: {path: "%s"}
metrics: {every: 1s, samples: 100}
control: {enabled: true}
http: {listen: ""}
`, b.URL(), store))
		d := harness.Start(t, config)
		d.Await("connected to the broker")
		s := newSession(t, b.URL())
		answerTo(t, config, "ping") // it is subscribed
		learn := func(prefix string, n int, open, closed [2]float64) {
			for i := range n {
				at, label := open, "open"
				if s.rng.IntN(2) == 0 {
					at, label = closed, "closed"
				}
				s.sample(fmt.Sprint(prefix, i), at[0], at[1], label)
			}
		}
		flow, pressure := [2]float64{3, 0}, [2]float64{0, 3}
		learn("morning ", 300, flow, pressure) // beyond the warm-up of active learning
		s.await("scores", "edge/test/valve/metrics", func(r gjson.Result) bool { return r.Get("n").Int() == 300 })
		answerTo(t, config, "export", "--data", `{"name":"good"}`)

		// The valve behaves in a new way: the model asks for a label.
		for i := range 40 {
			s.sample(fmt.Sprint("strange ", i), 7, 7, "")
		}
		question := s.await("question", "edge/test/valve/query", func(r gjson.Result) bool { return strings.HasPrefix(r.Get("id").Str, "strange") })
		if !question.Get("features.flow").Exists() || question.Get("reason").Str != "margin" {
			t.Errorf("the query lacks features or reason: %s", question)
		}
		s.publish("edge/test/valve/label", fmt.Sprintf(`{"id":%q,"label":"stuck","source":"operator"}`, question.Get("id").Str))
		if added := s.awaitEvent("class_added"); added.Get("detail").Str != "stuck" {
			t.Errorf("%s, want the class of the answer", added)
		}
		for i := range 20 {
			s.sample(fmt.Sprint("stuck ", i), 7, 7, "stuck")
		}
		s.await("scores", "edge/test/valve/metrics", func(r gjson.Result) bool { return r.Get("n").Int() == 321 })
		s.sample("still stuck", 7, 7, "")
		if got := s.answer("still stuck"); got.Get("class").Str != "stuck" {
			t.Errorf("%s, want the new class", got)
		}

		// The sensors are exchanged, and the drift is detected.
		learn("evening ", 300, pressure, flow)
		if drift := s.awaitEvent("drift"); drift.Get("model").Str != "valve" {
			t.Errorf("%s, want it to name the model", drift)
		}

		// They are exchanged back, and the model rolls back to its state of the morning.
		back := answerTo(t, config, "rollback", "--data", `{"to":"good"}`)
		if got := back.Get("classes").Raw; got != `["open","closed"]` {
			t.Errorf("rolled back to classes %s", got)
		}
		s.awaitEvent("model_rolled_back")
		s.sample("night", flow[0], flow[1], "")
		if got := s.answer("night"); got.Get("class").Str != "open" || got.Get("probs.stuck").Exists() {
			t.Errorf("%s, want the class of the morning", got)
		}
		stopped := d.Stop()
		again := harness.Start(t, config)
		if ready := again.Await("model ready"); ready.Get("digest").Str != stopped.Get("digest").Str || ready.Get("samples").Int() != 300 {
			t.Errorf("stopped as %s, started as %s", stopped, ready)
		}
		again.Stop()
	})
}
