package replay

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/score"
	"edge/stream"
	"edge/stream/field"
)

// publishedScores judges the predictions that daemons publish for the rows of a file,
// by the file's labels. Any goroutine may call its methods.
type publishedScores struct {
	Total int // rows to be sent, for the tenths; 0 if unknown

	mu     sync.Mutex
	rows   int
	sent   []sentRow // the latest, a ring buffer
	begun  time.Time
	models map[modelKey]*publishedModel
}

// modelKey identifies a model of a node.
type modelKey struct{ node, model string }

// sentRow is a row that waits for its prediction.
type sentRow struct {
	row   int
	label string
	at    time.Time
}

// publishedModel judges one model.
type publishedModel struct {
	judge              score.Judge
	book               report.ClassBook
	curve              report.Curve
	tenths             report.Tenths
	drifts             []report.Drift
	judged             int
	last               int // row
	queries            int
	latency, roundTrip report.DurationSum
}

const (
	keptRows   = 10_000 // without their prediction
	maxModels  = 64     // whatever is published
	maxClasses = 1000   // whatever is published
	keptDrifts = 40     // of a model

	publishedFirst = 1e-9 // added to the published class, whose probability may equal others after rounding to four decimals
)

// expect records a row before it is sent.
func (s *publishedScores) expect(row int, label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.rows == 0 {
		s.sent, s.begun = make([]sentRow, keptRows), now
	}
	s.rows++
	s.sent[row%keptRows] = sentRow{row, label, now}
}

// labelOf returns the label of a recently sent row.
func (s *publishedScores) labelOf(row int) (label string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == 0 || row < 0 {
		return "", false
	}
	r := &s.sent[row%keptRows]
	return r.label, r.row == row
}

// model returns the scores of a model, nil beyond maxModels.
func (s *publishedScores) model(of modelKey) *publishedModel {
	if s.models == nil {
		s.models = map[modelKey]*publishedModel{}
	}
	m := s.models[of]
	if m == nil && len(s.models) < maxModels {
		m = &publishedModel{drifts: []report.Drift{}}
		s.models[of] = m
	}
	return m
}

// predicted judges the first prediction of a row. It ignores messages of other clients
// that are no predictions: those with numbers that are no probabilities.
func (s *publishedScores) predicted(of modelKey, row int, p *stream.PredictionPayload) {
	for _, v := range p.Probs {
		if !(v >= 0 && v <= 1) {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.model(of)
	if m == nil || s.rows == 0 || row <= m.last || s.sent[row%keptRows].row != row || len(m.book.Names)+len(p.Probs) > maxClasses {
		return
	}
	sent := &s.sent[row%keptRows]
	m.last = row
	m.judged++
	m.roundTrip.Add(time.Since(sent.at))
	m.latency.Add(time.Duration(p.Latency) * time.Microsecond)
	if sent.label == "" {
		return
	}
	classes := field.Names(p.Probs)
	probs := make([]float64, len(classes))
	for i, name := range classes {
		probs[i] = p.Probs[name]
		if p.Class != nil && name == *p.Class {
			probs[i] += publishedFirst
		}
	}
	beside := score.Decision{Ruled: true, Abstained: p.Abstain}
	if p.Set != nil {
		beside.Sets, beside.Size, beside.Holds = true, len(*p.Set), slices.Contains(*p.Set, sent.label)
	}
	m.judge.AddPublished(m.book.InOrder(classes, probs), m.book.ClassOf(sent.label), beside)
	if s.Total > 0 && m.judged*10/s.Total > len(m.tenths.List) {
		m.tenths.Add(m.judge.Scores(m.book.Names))
	}
	if m.curve.Due(uint64(m.judged)) {
		m.curve.Add(m.judge.Scores(m.book.Names))
	}
}

// asked counts a query about a row.
func (s *publishedScores) asked(of modelKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.model(of); m != nil {
		m.queries++
	}
}

// drifted records a drift that a daemon has published.
func (s *publishedScores) drifted(of modelKey, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.model(of); m != nil {
		m.drifts = append(report.KeepLast(m.drifts, keptDrifts-1), report.Drift{N: m.judged, Detail: terminal.Plain(detail)})
	}
}

// reports returns the reports of the models that have predicted a row.
func (s *publishedScores) reports(dataset string) (list []*report.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, m := range s.models {
		if m.judged == 0 {
			continue
		}
		r := &report.Report{Dataset: dataset, Mode: "published", Seconds: time.Since(s.begun).Seconds(), Runs: []report.Run{}, Tenths: m.tenths.List, Drifts: m.drifts}
		r.Judged(m.judge.Scores(m.book.Names), m.curve)
		r.Published = &report.Published{
			Node: terminal.Plain(of.node), Model: terminal.Plain(of.model), Rows: s.rows, Unanswered: s.rows - m.judged, Queries: m.queries,
			Latency: m.latency.Summary(), RoundTrip: m.roundTrip.Summary(),
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b *report.Report) int {
		return cmp.Or(cmp.Compare(a.Published.Node, b.Published.Node), cmp.Compare(a.Published.Model, b.Published.Model))
	})
	return list
}
