package stream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"edge/model"
	"edge/online"
	"edge/online/conformal"
	"edge/online/score"
)

// fakeModel predicts class frequencies and learns by counting.
type fakeModel struct {
	mu      sync.Mutex
	post    *model.Posterior
	status  *online.Status
	of      *model.Posterior // of the status
	records []online.Record
	seq     uint64        // of the newest one
	block   chan struct{} // Learn waits until it is closed; nil: no wait
	busy    bool          // Idle waits for its context
	behind  bool          // Busy
	open    int           // samples that an earlier run left in the minibatch

	imported []string // of the classes
}

func newFakeModel(dim int) *fakeModel {
	return &fakeModel{post: &model.Posterior{Scale: model.Scale{Mu: make([]float64, dim), Sd: make([]float64, dim)}}}
}

func (m *fakeModel) Snapshot() *model.Posterior {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.post
}

func (m *fakeModel) Status() *online.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == m.post {
		return m.status
	}
	s := &online.Status{Learned: m.post.N, Classes: &online.ClassList{Names: m.post.Names, Former: m.post.Aliases, Imported: m.imported}}
	s.Seq, s.Open = m.seq, m.open
	m.status, m.of = s, m.post
	s.Scores.N, s.Scores.Error, s.Scores.Classes = m.post.N, 0.25, m.post.Names
	for i := range m.post.Names {
		row := make([]uint64, len(m.post.Names))
		row[i] = m.post.Counts[i]
		s.Scores.PerClass = append(s.Scores.PerClass, score.ClassScore{Class: m.post.Names[i], N: row[i], Recall: 1})
		s.Scores.Matrix = append(s.Scores.Matrix, row)
	}
	return s
}

func (m *fakeModel) Uncertainty() *conformal.Uncertainty { return &conformal.Uncertainty{} }

func (m *fakeModel) Learn(ctx context.Context, records []online.Record) error {
	m.mu.Lock()
	block := m.block
	m.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	post := *m.post
	post.Names, post.Counts = slices.Clone(post.Names), slices.Clone(post.Counts)
	for _, r := range records {
		m.records, m.seq = append(m.records, r), r.Seq
		if r.Kind != online.Observe {
			continue
		}
		k := slices.Index(post.Names, r.Label)
		if k < 0 {
			k = len(post.Names)
			post.Names, post.Counts = append(post.Names, r.Label), append(post.Counts, 0)
		}
		post.Counts[k]++
		post.N++
		post.Pool.Order.Labels++
		post.Record = r.Seq
	}
	m.post = &post
	return nil
}

func (m *fakeModel) setBehind(behind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.behind = behind
}

func (m *fakeModel) Busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.behind
}

func (m *fakeModel) Idle(ctx context.Context) error {
	m.mu.Lock()
	busy := m.busy
	m.mu.Unlock()
	if busy {
		<-ctx.Done()
	}
	return ctx.Err()
}

// record returns the learnt record i.
func (m *fakeModel) record(i int) online.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[i]
}

// hasLearnt checks what learnt returns. It waits for as many records: a node counts them before it
// hands them over.
func (m *fakeModel) hasLearnt(t *testing.T, want []string) {
	t.Helper()
	eventually(t, "as many records as are expected", func() bool { return len(m.learnt()) >= len(want) })
	equal(t, "learnt", m.learnt(), want)
}

// learnt returns "label x0" for each observation, and "|" for each boundary.
func (m *fakeModel) learnt() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		switch r.Kind {
		case online.Correct:
			all = append(all, fmt.Sprintf("%s, not %s %v", r.Label, r.Name, r.X[0]))
			continue
		case online.Boundary:
			all = append(all, "|")
			continue
		case online.ClassAdd, online.ClassRemove, online.ClassRename, online.Reset, online.Replace, online.Merge:
			all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s%s", r.Kind, r.Label, r.Name, r.State)))
			continue
		}
		all = append(all, fmt.Sprintf("%s %v", r.Label, r.X[0]))
	}
	return all
}
