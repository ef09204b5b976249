package stream

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge/model"
	"edge/online/active"
)

// maxOpen bounds the open queries of a model: without answers to that many, no label is
// requested until some are answered or expire.
const maxOpen = 50

// Query requests the label of a pending sample. A label with the sample's id answers it.
type Query struct {
	Prediction *Prediction     // published for the sample; read only
	Reason     active.Strategy // that selected the sample
	Score      float64         // of the strategy; its unit depends on the strategy
	Features   []float64       // D raw features, in the model's order; NaN for a missing one; read only
	Asked      time.Time
	Expires    time.Time // end of the sample's wait, unless it makes room for others

	key uint64 // of the pending sample
}

// queries are the open queries of one model, oldest first.
type queries struct {
	asked, answered, expired atomic.Uint64

	mu   sync.Mutex
	open []*Query
}

func (q *queries) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open)
}

// list returns the open queries.
func (q *queries) list() []*Query {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.open)
}

func (q *queries) add(query *Query) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = append(q.open, query)
	q.asked.Add(1)
}

// close closes the query for the sample of a key, and counts it.
func (q *queries) close(key uint64, count *atomic.Uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.open, func(o *Query) bool { return o.key == key }); i >= 0 {
		q.open = slices.Delete(q.open, i, i+1)
		count.Add(1)
	}
}

// prune closes the queries for samples that are not pending any more.
func (q *queries) prune(w *pendingStore) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.open)
	q.open = slices.DeleteFunc(q.open, func(o *Query) bool { return w.get(o.key) == nil })
	q.expired.Add(uint64(before - len(q.open)))
}

// ask returns a query for a sample that was just predicted, nil if its label is not
// worth one or the sample cannot wait for it.
func (w *worker) ask(m *modelState, post *model.Posterior, p *Prediction, e *example, it *item, ws *model.Workspace) *Query {
	if m.asker == nil || e.label != "" || e.wait == 0 || m.Pending.Max == 0 || m.expectedOff() ||
		it.answerOnly || it.msg.Dup && !e.detached || m.queries.len()+int(m.asking.Load()) >= maxOpen {
		return nil
	}
	score := m.asker.Score(p.Probs, post, ws)
	if !m.asker.Select(score, post.Version(), it.msg.Arrived.Sub(w.started)) {
		return nil
	}
	q := &Query{Prediction: new(Prediction), Reason: m.Active.Strategy, Score: score, Features: slices.Clone(e.x)}
	p.CopyTo(q.Prediction)
	m.asking.Add(1)
	return q
}

// asked notes that the queries of a message are open, or dropped; those of samples that
// are committed without their message stay if stay is set.
func (it *item) asked(stay bool) {
	for i := range it.examples {
		if e := &it.examples[i]; e.query != nil && !(stay && e.detached) {
			e.to.asking.Add(-1)
			e.query = nil
		}
	}
}

// ask opens a query for a pending sample, and publishes it once that is durable.
func (c *committer) ask(m *modelState, q *Query, key uint64, now time.Time) {
	q.key, q.Asked, q.Expires = key, now, now.Add(m.Pending.TTL)
	m.queries.add(q)
	c.group.onCommit(func() { c.report.query(m, q) })
}

// query publishes a query.
func (r *reporter) query(m *modelState, q *Query) {
	p := q.Prediction
	v := QueryPayload{
		V: 1, ID: p.ID, Time: Timestamp{q.Asked}, Node: r.node, Model: m.Name, Device: p.Device, Reason: q.Reason, Score: rounded(q.Score),
		Features: make(map[string]*float64, len(q.Features)), Expires: Timestamp{q.Expires},
	}
	for j := range q.Features {
		if name := m.Features[j]; math.IsNaN(q.Features[j]) {
			v.Features[name] = nil
		} else {
			v.Features[name] = &q.Features[j]
		}
	}
	if p.raw.id != "" {
		v.ID = json.RawMessage(p.raw.id)
	}
	if p.Class >= 0 {
		confidence := rounded(p.Probs[p.Class])
		v.Class, v.Confidence = &p.Classes[p.Class], &confidence
	}
	r.publish(m.queryTopic, v)
}

// Queries returns the open queries of a model, oldest first. Any goroutine may call it.
// A restart drops them; the labels of their samples are still learnt.
func (n *Node) Queries(model string) []*Query {
	if m := n.model(model); m != nil {
		return m.queries.list()
	}
	return nil
}
