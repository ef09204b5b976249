package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// fakeJournal is a journal in memory that can fail and can be slow.
type fakeJournal struct {
	mu      sync.Mutex
	commits []*online.Commit
	seqs    map[string]uint64
	keys    map[recordKey]bool
	pending map[recordKey]online.Pending
	marks   map[string]uint64
	fail    error         // of every commit
	block   chan struct{} // Commit waits until it is closed; nil: no wait
	slow    time.Duration // of every commit
	tried   int           // commits that failed
	entered chan struct{} // has an element once a Commit waits for block
}

func newFakeJournal() *fakeJournal {
	return &fakeJournal{
		seqs: map[string]uint64{}, keys: map[recordKey]bool{}, pending: map[recordKey]online.Pending{}, marks: map[string]uint64{}, entered: make(chan struct{}, 1),
	}
}

var errDiskFull = errors.New("no space left on device")

func (j *fakeJournal) Commit(c *online.Commit) error {
	j.mu.Lock()
	block, slow := j.block, j.slow
	j.mu.Unlock()
	if block != nil {
		select {
		case j.entered <- struct{}{}:
		default:
		}
		<-block
	}
	time.Sleep(slow)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail != nil {
		j.tried++
		return j.fail
	}
	for i := range c.Records {
		r := &c.Records[i]
		j.seqs[r.Model]++
		r.Seq = j.seqs[r.Model]
		if r.Key != 0 {
			j.keys[recordKey{r.Model, r.Key}] = true
		}
	}
	for _, p := range c.Wait {
		j.pending[recordKey{p.Model, p.Key}] = p
	}
	for _, p := range c.Forget {
		delete(j.pending, recordKey{p.Model, p.Key})
	}
	for _, m := range c.Marks {
		j.marks[m.Model] = m.Bits
	}
	j.commits = append(j.commits, c)
	return nil
}

// setSlow sets the time of every commit.
func (j *fakeJournal) setSlow(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.slow = d
}

func (j *fakeJournal) Seen(model string, key uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.keys[recordKey{model, key}]
}

func (j *fakeJournal) set(fail error, block chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fail, j.block = fail, block
}

// committed returns the number of commits and of their records.
func (j *fakeJournal) committed() (commits, records int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.commits {
		records += len(c.Records)
	}
	return len(j.commits), records
}

// mark returns the mark of a model after a restart.
func (j *fakeJournal) mark(model string) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.marks[model]
}

// unlabelled returns the number of samples that wait for their label.
func (j *fakeJournal) unlabelled(model string) (n int) {
	for _, p := range j.waiting(model) {
		if p.Label == "" {
			n++
		}
	}
	return n
}

// waiting returns the pending samples of a model after a restart.
func (j *fakeJournal) waiting(model string) (all []online.Pending) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for k, p := range j.pending {
		if k.model == model {
			all = append(all, p)
		}
	}
	return all
}

// testConfig is a node with one stream of two features, vibration, for one
// model, bearing.
func testConfig() (Config, ModelConfig) {
	cfg := DefaultConfig()
	cfg.Node = "n1"
	s := codec.DefaultStream()
	s.Topics, s.TopicTemplate, s.Dimension = []string{"factory/+/vibration"}, "factory/{device}/vibration", 2
	cfg.Streams["vibration"] = s
	l := codec.DefaultLabels()
	l.Topics, l.TopicTemplate = []string{"factory/+/label"}, "factory/{device}/label"
	cfg.Labels = []codec.Labels{l}
	return cfg, ModelConfig{
		Name: "bearing", Model: newFakeModel(2), Streams: []string{"vibration"}, Classes: online.Classes{Open: true, Max: 64},
		Batch: online.Batch{MaxSize: 16}, Pending: DefaultPending(),
	}
}

// rig runs a node's worker and committer without a network.
type rig struct {
	t       *testing.T
	node    *Node
	journal *fakeJournal
	models  map[string]*fakeModel
	stop    func()

	conn *fakeOrigin // that the messages come over
	sent uint16      // identifier of the last message

	mu    sync.Mutex
	acked []string // payloads
}

func newRig(t *testing.T, journal *fakeJournal, cfg Config, models ...ModelConfig) *rig {
	t.Helper()
	return newProgrammedRig(t, journal, cfg, Program{}, models...)
}

// newProgrammedRig is newRig with the functions of background commands.
func newProgrammedRig(t *testing.T, journal *fakeJournal, cfg Config, program Program, models ...ModelConfig) *rig {
	t.Helper()
	r := &rig{t: t, journal: journal, models: map[string]*fakeModel{}}
	r.reconnect(nil)
	for _, m := range models {
		r.models[m.Name], _ = m.Model.(*fakeModel)
	}
	r.node = newTestNode(t, cfg, Deps{Models: models, Journal: journal, Program: program, Log: slog.New(slog.DiscardHandler)})
	r.start()
	return r
}

func newTestNode(t *testing.T, cfg Config, deps Deps) *Node {
	t.Helper()
	node, err := NewNode(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// start runs worker, committer and background commands.
func (r *rig) start() {
	node := r.node
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan struct{})
	var work, wg sync.WaitGroup
	work.Go(func() { node.worker.run(ctx, stop) })
	work.Go(func() { node.committer.run(ctx, ctx) })
	wg.Go(func() { node.background.run(ctx) })
	r.stop = sync.OnceFunc(func() {
		close(stop)
		give := time.AfterFunc(drainWithin, cancel)
		work.Wait()
		give.Stop()
		cancel()
		wg.Wait()
	})
	r.t.Cleanup(r.stop)
}

// send lets messages of QoS 1 arrive.
func (r *rig) send(topic string, payloads ...string) {
	for _, p := range payloads {
		r.sendMessage(&mqtt.Message{Topic: topic, Payload: []byte(p), QoS: 1})
	}
}

// sendMessage lets a message arrive over the rig's connection, under the next
// identifier unless it has one.
func (r *rig) sendMessage(m *mqtt.Message) {
	conn := r.conn
	if conn != nil {
		m.From = conn
	}
	if m.Arrived = time.Now(); m.ID == 0 {
		r.sent++
		m.ID = r.sent
	}
	m.Ack = func() {
		if conn != nil {
			conn.write()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.acked = append(r.acked, string(m.Payload))
	}
	if taken, _ := r.node.ring.Push(m, nil); !taken {
		r.t.Fatal("the ring is full")
	}
}

// reconnect makes later messages come over another connection. The broker keeps a
// cursor, or has no session if c is nil.
func (r *rig) reconnect(c *mqtt.Cursor) {
	r.conn = newFakeOrigin()
	if c == nil {
		c = &mqtt.Cursor{Fresh: true}
	}
	r.conn.settle(*c)
}

func (r *rig) acks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.acked)
}

// published removes and returns all publications of the outbox.
func (r *rig) published() []*mqtt.Publication { return drainOutbox(r.node.outbox) }

func drainOutbox(o *mqtt.Outbox) (all []*mqtt.Publication) {
	for m, ok := o.Pop(); ok; m, ok = o.Pop() {
		all = append(all, m)
	}
	return all
}

// fakeOrigin is a connection whose broker is the test.
type fakeOrigin struct {
	lost, known chan struct{}
	cursor      mqtt.Cursor // valid once known is closed

	mu                 sync.Mutex
	written, confirmed uint64
	closed             bool          // it takes no acknowledgement any more
	cursors            []mqtt.Cursor // that were published
}

func newFakeOrigin() *fakeOrigin {
	return &fakeOrigin{lost: make(chan struct{}), known: make(chan struct{})}
}

// settle makes the cursor known.
func (o *fakeOrigin) settle(c mqtt.Cursor) {
	o.cursor = c
	close(o.known)
}

// write counts an acknowledgement.
func (o *fakeOrigin) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written++
}

// read lets the broker have read all acknowledgements.
func (o *fakeOrigin) read() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.confirmed = o.written
}

func (o *fakeOrigin) Lost() <-chan struct{}        { return o.lost }
func (o *fakeOrigin) CursorKnown() <-chan struct{} { return o.known }
func (o *fakeOrigin) Cursor() mqtt.Cursor          { return o.cursor }
func (o *fakeOrigin) Hold()                        {}
func (o *fakeOrigin) Release()                     {}

func (o *fakeOrigin) PublishCursor(c mqtt.Cursor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cursors = append(o.cursors, c)
}

func (o *fakeOrigin) Written() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0
	}
	return o.written
}

func (o *fakeOrigin) Confirmed() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.confirmed
}

const p7 = "factory/p7/vibration"

// in runs a test in a bubble, where time passes only when nothing else happens.
func in(name string, t *testing.T, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func one(t *testing.T) *rig {
	cfg, m := testConfig()
	return newRig(t, newFakeJournal(), cfg, m)
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func labelled(n int) string { return fmt.Sprintf(`{"features":[%d,0],"label":"ok"}`, n) }

// events returns "kind: detail" of the events in the outbox, and empties it.
func (r *rig) events() (all []string) {
	for _, m := range r.published() {
		var e struct{ Event, Detail string }
		if m.Topic == "edge/n1/event" && json.Unmarshal(m.Payload, &e) == nil {
			all = append(all, e.Event+": "+e.Detail)
		}
	}
	return all
}

// rejects returns "reason" of the rejects in the outbox, and empties it.
func (r *rig) rejects() (all []string) {
	for _, m := range r.published() {
		var e struct{ Reason string }
		if m.Topic == "edge/n1/bearing/reject" && json.Unmarshal(m.Payload, &e) == nil {
			all = append(all, e.Reason)
		}
	}
	return all
}
