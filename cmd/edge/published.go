package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"edge/online"
	"edge/stream"
)

// PublishedReport is about the predictions that a daemon published for the rows
// of a replayed file, in a Report whose scores judge them.
type PublishedReport struct {
	Node       string    `json:"node"`
	Model      string    `json:"model"`
	Rows       int       `json:"rows"`       // sent
	Unanswered int       `json:"unanswered"` // rows of which no prediction was heard
	Queries    int       `json:"queries"`    // labels that were asked for
	Latency    Durations `json:"latency_s"`  // from the arrival of a row to its prediction, as the daemon says
	RoundTrip  Durations `json:"round_trip_s"`
}

// Durations are some durations in seconds: their mean, and quantiles to 2 %.
type Durations struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// durations adds up durations in bounded memory. The zero value is ready.
type durations struct {
	n        int
	sum, max float64
	counts   map[int]int // by the logarithm
}

const durationSteps = 50 // e-folding / steps: 2 %

func (d *durations) add(t time.Duration) {
	if d.counts == nil {
		d.counts = map[int]int{}
	}
	s := max(t.Seconds(), 1e-6)
	d.n, d.sum, d.max = d.n+1, d.sum+s, max(d.max, s)
	d.counts[int(math.Round(math.Log(s)*durationSteps))]++
}

func (d *durations) summary() Durations {
	if d.n == 0 {
		return Durations{}
	}
	steps := slices.Sorted(maps.Keys(d.counts))
	quantile := func(q float64) float64 {
		left := int(math.Ceil(q * float64(d.n)))
		for _, k := range steps {
			if left -= d.counts[k]; left <= 0 {
				return math.Exp(float64(k) / durationSteps)
			}
		}
		return d.max
	}
	return Durations{d.sum / float64(d.n), quantile(0.5), quantile(0.9), quantile(0.99), d.max}
}

// classBook numbers classes in the order in which they are met.
type classBook struct {
	number map[string]int
	names  []string
}

// classOf returns the number of a class.
func (b *classBook) classOf(name string) int {
	k, known := b.number[name]
	if !known {
		if b.number == nil {
			b.number = map[string]int{}
		}
		k = len(b.names)
		b.number[name] = k
		b.names = append(b.names, name)
	}
	return k
}

// inOrder returns probabilities of classes in the order of their numbers.
func (b *classBook) inOrder(classes []string, probs []float64) []float64 {
	for _, name := range classes {
		b.classOf(name)
	}
	now := make([]float64, len(b.names))
	for i, name := range classes {
		now[b.number[name]] = probs[i]
	}
	return now
}

// publishedScores judges the predictions that daemons publish for the rows of a
// file, by the file's labels. Its methods may be called from any goroutine.
type publishedScores struct {
	Total int // rows that will be sent, for the tenths; 0: not known

	mu     sync.Mutex
	rows   int
	sent   []sentRow // the latest, a ring
	begun  time.Time
	models map[[2]string]*publishedModel // by node and model
}

// sentRow is a row that waits for its prediction.
type sentRow struct {
	row   int
	label string
	at    time.Time
}

// publishedModel judges one model.
type publishedModel struct {
	judge              online.Judge
	book               classBook
	curve              Curve
	tenths             Tenths
	drifts             []DriftReport
	judged             int
	last               int // row
	queries            int
	latency, roundTrip durations
}

const (
	keptRows = 10_000 // that may wait for their prediction
	maxKnown = 1000   // classes, whatever is published

	publishedFirst = 1e-9 // of probability, by which the published class is before those that four decimals make its equals
)

// expect remembers a row before it is sent.
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

// labelOf returns the label of a row that was sent lately.
func (s *publishedScores) labelOf(row int) (label string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == 0 || row < 0 {
		return "", false
	}
	r := &s.sent[row%keptRows]
	return r.label, r.row == row
}

func (s *publishedScores) model(node, model string) *publishedModel {
	if s.models == nil {
		s.models = map[[2]string]*publishedModel{}
	}
	m := s.models[[2]string{node, model}]
	if m == nil && len(s.models) < boardModels {
		m = &publishedModel{drifts: []DriftReport{}}
		s.models[[2]string{node, model}] = m
	}
	return m
}

// predicted judges the first prediction of a row. Anybody may publish what looks
// like one: what holds no probabilities is none.
func (s *publishedScores) predicted(node, model string, row int, p *stream.PredictionPayload) {
	for _, v := range p.Probs {
		if !(v >= 0 && v <= 1) {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.model(node, model)
	if m == nil || s.rows == 0 || row <= m.last || s.sent[row%keptRows].row != row || len(m.book.names)+len(p.Probs) > maxKnown {
		return
	}
	sent := &s.sent[row%keptRows]
	m.last = row
	m.judged++
	m.roundTrip.add(time.Since(sent.at))
	m.latency.add(time.Duration(p.Latency) * time.Microsecond)
	if sent.label == "" {
		return
	}
	classes := sortedKeys(p.Probs)
	probs := make([]float64, len(classes))
	for i, name := range classes {
		probs[i] = p.Probs[name]
		if p.Class != nil && name == *p.Class {
			probs[i] += publishedFirst
		}
	}
	beside := online.Beside{Ruled: true, Abstained: p.Abstain}
	if p.Set != nil {
		beside.Sets, beside.Size, beside.Holds = true, len(*p.Set), slices.Contains(*p.Set, sent.label)
	}
	m.judge.AddBeside(m.book.inOrder(classes, probs), m.book.classOf(sent.label), beside)
	if s.Total > 0 && m.judged*10/s.Total > len(m.tenths.list) {
		m.tenths.Add(m.judge.Scores(m.book.names))
	}
	if m.curve.Due(uint64(m.judged)) {
		m.curve.Add(m.judge.Scores(m.book.names))
	}
}

// asked counts a question about a row.
func (s *publishedScores) asked(node, model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.model(node, model); m != nil {
		m.queries++
	}
}

// drifted notes a drift that a daemon tells of.
func (s *publishedScores) drifted(node, model, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.model(node, model); m != nil {
		m.drifts = append(keepLast(m.drifts, keptEvents-1), DriftReport{N: m.judged, Detail: plainText(detail)})
	}
}

// reports are those of the models that have predicted a row.
func (s *publishedScores) reports(dataset string) (list []*Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, m := range s.models {
		if m.judged == 0 {
			continue
		}
		r := &Report{Dataset: dataset, Mode: "published", Seconds: time.Since(s.begun).Seconds(), Runs: []Run{}, Tenths: m.tenths.list, Drifts: m.drifts}
		r.judged(m.judge.Scores(m.book.names), m.curve)
		r.Published = &PublishedReport{
			Node: plainText(at[0]), Model: plainText(at[1]), Rows: s.rows, Unanswered: s.rows - m.judged, Queries: m.queries,
			Latency: m.latency.summary(), RoundTrip: m.roundTrip.summary(),
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *Report) int {
		return cmp.Or(cmp.Compare(a.Published.Node, b.Published.Node), cmp.Compare(a.Published.Model, b.Published.Model))
	})
	return list
}
