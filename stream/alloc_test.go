package stream

import (
	"io"
	"net"
	"testing"
	"time"

	"edge/model"
	"edge/online/conformal"
)

// still is a model that answers and never changes.
type still struct {
	*fakeModel
	doubt conformal.Uncertainty
}

func (m *still) Posterior() *model.Posterior         { return m.post }
func (m *still) Uncertainty() *conformal.Uncertainty { return &m.doubt }

// again reads the same bytes without end.
type again struct {
	wire []byte
	at   int
}

func (r *again) Read(p []byte) (n int, err error) {
	n = copy(p, r.wire[r.at:])
	r.at = (r.at + n) % len(r.wire)
	return n, nil
}

// sink is a network that takes everything.
type sink struct {
	net.Conn
	io.Reader
}

func (s sink) Read(p []byte) (int, error)     { return s.Reader.Read(p) }
func (sink) Write(p []byte) (int, error)      { return len(p), nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) Close() error                     { return nil }

// A message that is only answered allocates nothing on its way from the network
// to the network.
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
			var packet wire
			p := publishPacket(p7, 0)
			p.Payload = []byte(payload)
			p.Write(&packet)
			conn := &connection{client: node.client, lost: make(chan struct{}), redeliver: make(chan struct{})}
			conn.net = newFrameConn(sink{Reader: &again{wire: packet}}, 1000, time.Second)
			conn.net.protocol.accepted = true
			conn.net.take, conn.net.acked = conn.take, conn.receipts.acknowledged
			node.committer.group.reset()
			node.committer.recover(t.Context())
			carry := func() {
				for node.ring.len() == 0 {
					if err := conn.net.next(); err != nil {
						t.Fatal(err)
					}
				}
				msg, _ := node.ring.pop()
				node.worker.handle(newItem(node.worker.items, msg))
				it := <-node.queue
				node.committer.add(it)
				if !node.committer.full(it) {
					t.Fatal("an answer waits for a commit")
				}
				node.committer.settle(t.Context())
				answer, _ := node.outbox.queue.pop()
				sent := conn.publish(answer)
				conn.receipts.acknowledged(firstReceipt)
				<-sent.Done()
				sent.Free()
				answer.free()
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
			if s := node.Stats(); s.Predictions < 200 || s.Rejected[Malformed] > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// wire is what has been written.
type wire []byte

func (w *wire) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
