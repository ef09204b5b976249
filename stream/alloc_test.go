package stream

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"edge/model"
	"edge/online/conformal"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// still is a model that answers and never changes.
type still struct {
	*fakeModel
	uncertainty conformal.Uncertainty
}

func (m *still) Snapshot() *model.Posterior          { return m.post }
func (m *still) Uncertainty() *conformal.Uncertainty { return &m.uncertainty }

// A message that is only answered allocates nothing on its way from the queue to
// the outbox.
func TestAnswersWithoutAllocations(t *testing.T) {
	for name, payload := range map[string]string{
		"array":       `[0.25,1]`,
		"object":      `{"ts":"2026-11-20T20:29:45.120Z","features":{"x0":1.5,"x1":-2}}`,
		"with a time": `{"ts":1795272081,"features":[1.5,2]}`,
	} {
		t.Run(name, func(t *testing.T) {
			cfg, m := testConfig()
			s := cfg.Streams["vibration"]
			s.Dimension, s.Features = 0, []string{"x0", "x1"}
			cfg.Streams["vibration"] = s
			fake := newFakeModel(2)
			fake.post.Names, fake.post.Counts, fake.post.N = []string{"ok", "worn"}, []uint64{3, 1}, 4
			m.Model = &still{fakeModel: fake}
			node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
			msg := &mqtt.Message{Topic: p7, Payload: []byte(payload), QoS: 1, ID: 7, From: newFakeOrigin(), Ack: func() {}}
			node.committer.group.reset()
			node.committer.resume()
			carry := func() {
				node.ring.Push(msg, nil)
				msg, _ := node.ring.Pop()
				node.worker.handle(newItem(node.worker.items, msg))
				it := receive(node.queue)
				node.committer.add(t.Context(), it)
				if !node.committer.full(it) {
					t.Fatal("an answer waits for a commit")
				}
				node.committer.commitGroup(t.Context())
				answer, _ := node.outbox.Pop()
				answer.Free()
			}
			carry()
			// A time that is passed on, and an id, are texts of the message's own.
			want := 0.0
			if name != "array" {
				want = 1
			}
			if n := testing.AllocsPerRun(200, carry); n > want {
				t.Errorf("%v allocations, want %v", n, want)
			}
			if s := node.Stats(); s.Predictions < 200 || s.Rejected[codec.Malformed] > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The entries of a batch do not each hash the whole message: its cost grows with its length,
// not with the square of it.
func TestBatchHashedOnce(t *testing.T) {
	const entries = 1000
	for name, entry := range map[string]string{
		"with ids":    `{"id":"p7-%d","features":[%[1]d,1],"label":"ok"}`,
		"without ids": `{"features":[%d,1],"label":"ok"}`,
	} {
		t.Run(name, func(t *testing.T) {
			cfg, m := testConfig()
			m.Model = &still{fakeModel: newFakeModel(2)}
			node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
			rows := make([]string, entries)
			for i := range rows {
				rows[i] = fmt.Sprintf(entry, i)
			}
			text := []byte(`{"batch":[` + strings.Join(rows, ",") + `]}`)
			node.committer.group.reset()
			node.committer.resume()
			node.ring.Push(&mqtt.Message{Topic: p7, Payload: text, QoS: 1, ID: 7, From: newFakeOrigin(), Ack: func() {}}, nil)
			msg, _ := node.ring.Pop()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			node.worker.handle(newItem(node.worker.items, msg))
			node.committer.add(t.Context(), receive(node.queue))
			runtime.ReadMemStats(&after)
			if s := node.Stats(); s.Predictions != entries {
				t.Fatalf("%d predictions, want %d", s.Predictions, entries)
			}
			// Hashing copies what it hashes.
			if got, most := int(after.TotalAlloc-before.TotalAlloc), entries*len(text)/4; got > most {
				t.Errorf("%d bytes allocated for a message of %d bytes, want at most %d", got, len(text), most)
			}
		})
	}
}
