package stream

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/model"
	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// newStill returns a model of c classes and d features that has learnt
// something and never changes, and samples of it.
func newStill(tb testing.TB, c, m, d int) (*still, [][]float64) {
	tb.Helper()
	cfg := online.DefaultConfig()
	cfg.Inducing, cfg.Batch.MaxSize = m, 16
	for j := range d {
		cfg.Features = append(cfg.Features, fmt.Sprint("f", j))
	}
	l, err := online.NewLearner(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	samples := make([][]float64, 13*m)
	for i := range samples {
		k := rng.IntN(c)
		x := make([]float64, d)
		for j := range x {
			if x[j] = rng.NormFloat64(); j%c == k {
				x[j] += 2
			}
		}
		samples[i] = x
		l.Add(&online.Event{Kind: online.Observe, X: x, Label: fmt.Sprint("c", k)})
	}
	fake := newFakeModel(d)
	if fake.post = l.Posterior(); !fake.post.Built() {
		tb.Fatal("the model is not built")
	}
	return &still{fakeModel: fake}, samples
}

// array writes a sample as a payload.
func array(x []float64) string { return strings.ReplaceAll(fmt.Sprint(x), " ", ",") }

// A worker that is to end does so after the message in hand: one may take long.
func TestWorkerEndsAfterAMessage(t *testing.T) {
	cfg, m := testConfig()
	ctx, abandon := context.WithCancel(t.Context())
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), OnPrediction: func(*Prediction) { abandon() }})
	for range 3 {
		node.ring.Push(&mqtt.Message{Topic: p7, Payload: []byte("[1,2]"), QoS: 1, Arrived: time.Now(), Ack: func() {}}, nil)
	}
	node.worker.handleReady(ctx)
	if s := node.Stats(); s.Predictions != 1 {
		t.Errorf("%d messages are answered, want one", s.Predictions)
	}
}

// Waiting messages are answered as if each had come alone, in the order of receipt,
// whatever else is in the batch.
// Long: one sequence of messages.
func TestPredictedInBatches(t *testing.T) {
	const c, d = 3, 4
	fixed, samples := newStill(t, c, 10, d)
	cfg, m := testConfig()
	s := cfg.Streams["vibration"]
	s.Dimension, s.OnMissing = d, codec.OnMissingMarginalise
	cfg.Streams["vibration"] = s
	m.Model = fixed
	journal := newFakeJournal()
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: journal})
	want, ws := fixed.post, model.NewWorkspace()
	type answer struct {
		id    string
		probs []float64
	}
	var asked []answer
	ask := func(payload string, sent ...answer) {
		asked = append(asked, sent...)
		if taken, _ := node.ring.Push(&mqtt.Message{Topic: p7, Payload: []byte(payload), Arrived: time.Now(), Ack: func() {}}, nil); !taken {
			t.Fatal("the ring is full")
		}
	}
	one := func(i int) (payload string, a answer) {
		x := append([]float64(nil), samples[i]...)
		text := array(x)
		if i%7 == 3 { // the model marginalises
			x[1] = math.NaN()
			text = strings.Replace(array(x), "NaN", "null", 1)
		}
		probs, _, err := want.PredictTo(nil, x, ws)
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("s", i)
		return fmt.Sprintf(`{"id":"%s","features":%s}`, id, text), answer{id, probs}
	}
	for i := range 60 {
		switch i % 10 {
		case 4:
			ask(`{"features":[1,2`)
		case 7: // several samples in a message
			var parts []string
			var answers []answer
			for j := range 1 + i%40 {
				p, a := one(i + j)
				parts, answers = append(parts, p), append(answers, a)
			}
			ask(`{"batch":[`+strings.Join(parts, ",")+`]}`, answers...)
		case 8:
			ask(`{"id":"unknown","label":"c1"}`)
		default:
			p, a := one(i)
			ask(p, a)
		}
	}
	for node.ring.Len() > 0 {
		node.worker.handleReady(t.Context())
		if node.worker.batch.post != nil {
			t.Fatal("a posterior is kept until the next message")
		}
		for len(node.queue.items) > 0 {
			receive(node.queue)
		}
	}
	answered := 0
	for _, o := range drainOutbox(node.outbox) {
		if !strings.Contains(o.Topic, "/prediction") {
			continue
		}
		if len(asked) == 0 {
			t.Fatalf("an answer too many: %s", o.Payload)
		}
		if id := gjson.GetBytes(o.Payload, "id").String(); id != asked[0].id {
			t.Fatalf("%s is answered before %s", id, asked[0].id)
		}
		for k, p := range asked[0].probs {
			class := want.Classes()[k]
			if got := gjson.GetBytes(o.Payload, "probs."+class); !got.Exists() || math.Abs(got.Float()-p) > 1e-4 { // as published
				t.Errorf("%s: %s has probability %v, want %v", asked[0].id, class, got, p)
			}
		}
		asked = asked[1:]
		answered++
	}
	if len(asked) > 0 || answered < 60 {
		t.Errorf("%d are not answered, %d are", len(asked), answered)
	}
}

// BenchmarkBatch carries unlabelled messages from the ring to the outbox, one by one and in
// batches.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []struct{ c, m, d int }{{6, 50, 33}, {6, 100, 128}} {
		fixed, samples := newStill(b, size.c, size.m, size.d)
		for _, waiting := range []int{1, 2, 4, 16} {
			b.Run(fmt.Sprintf("C=%d/M=%d/D=%d/waiting=%d", size.c, size.m, size.d, waiting), func(b *testing.B) {
				cfg, m := testConfig()
				s := cfg.Streams["vibration"]
				s.Dimension = size.d
				cfg.Streams["vibration"] = s
				m.Model = fixed
				node, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					b.Fatal(err)
				}
				var payloads [][]byte
				for _, x := range samples[:64] {
					payloads = append(payloads, bytes.Clone([]byte(array(x))))
				}
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					for range waiting {
						node.ring.Push(&mqtt.Message{Topic: p7, Payload: payloads[n%len(payloads)], Arrived: time.Now(), Ack: func() {}}, nil)
						n++
					}
					for node.ring.Len() > 0 {
						node.worker.handleReady(b.Context())
					}
					for len(node.queue.items) > 0 {
						receive(node.queue).free()
					}
					for out, ok := node.outbox.Pop(); ok; out, ok = node.outbox.Pop() {
						out.Free()
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/message")
			})
		}
	}
}
