package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"edge/internal/report"
	"edge/model"
	"edge/online"
	"edge/online/active"
	"edge/online/score"
	"edge/stream"
	"edge/stream/codec"
)

const followEvery = time.Second // how often they hear, if there is news

const quietWithin = 15 * time.Second // after which they hear that there is none

const maxRelevances = 100 // features, the most relevant ones

const maxValues = 12 // features of a sample that waits for its label

const valuedSamples = 5 // of the questions, and of the other samples that wait, that show their values

// nodeView is the answer to /api/v1/models.
type nodeView struct {
	V           int                     `json:"v"`
	Node        string                  `json:"node"`
	Version     string                  `json:"version"`
	Commit      string                  `json:"commit,omitempty"`
	Started     time.Time               `json:"started"`
	Connected   bool                    `json:"connected"`
	Subscribed  bool                    `json:"subscribed"`
	Refused     []string                `json:"refused"` // subscriptions
	Degraded    bool                    `json:"degraded"`
	Received    uint64                  `json:"received"`
	Rejected    map[codec.Reason]uint64 `json:"rejected"`
	Dropped     uint64                  `json:"dropped"`      // messages and lessons, by any queue
	LastMessage *time.Time              `json:"last_message"` // null before the first
	Queues      map[string]int          `json:"queues"`
	Control     bool                    `json:"control"` // labels are taken
	Store       *storeView              `json:"store"`   // null until it was looked at, or if it cannot be read
	Events      []report.EventView      `json:"events"`  // newest first
	Models      []report.ModelSummary   `json:"models"`
}

type storeView struct {
	Bytes        int64 `json:"bytes"`
	FreeBytes    int64 `json:"free_bytes"`
	WrittenBytes int64 `json:"written_bytes"` // since the start
	Transactions int64 `json:"transactions"`  // since the start
}

// modelView is the answer to /api/v1/models/{model}.
type modelView struct {
	V int `json:"v"`
	report.ModelSummary
	Version      uint64                    `json:"version"` // samples in the model
	Accuracy     score.Real                `json:"accuracy"`
	Brier        score.Real                `json:"brier"`
	ECE          score.Real                `json:"ece"`
	MacroF1      score.Real                `json:"macro_f1"`
	Confusion    [][]uint64                `json:"confusion,omitempty"` // [label][predicted]; not with many classes
	Scores       stream.Scores             `json:"scores"`              // of all samples, as the metrics topic has them
	WindowScores stream.Scores             `json:"window_scores"`       // of the last ones
	Reliability  []score.Bin               `json:"reliability"`
	Relevance    []report.FeatureRelevance `json:"relevance"` // most relevant first; empty before the model is built
	Features     int                       `json:"features"`
	Course       []report.CoursePoint      `json:"course"`  // since the start
	Samples      []sampleView              `json:"samples"` // newest first
	Present      presentView               `json:"present"`
	Queries      queriesView               `json:"queries"`
	Open         classesView               `json:"new_classes"`
	Predictions  uint64                    `json:"predictions"`
	Learned      uint64                    `json:"learned"` // since the start
	Steps        uint64                    `json:"steps"`
	Rollbacks    uint64                    `json:"rollbacks"`
	StateBytes   int                       `json:"state_bytes"` // of the last checkpoint since the start
}

// classesView says whether a label may be a new class.
type classesView struct {
	Open    bool `json:"open"`
	Max     int  `json:"max"`     // classes
	Confirm int  `json:"confirm"` // samples that must have been given a new label before it is a class
	Bytes   int  `json:"bytes"`   // of a label, at most
}

// queriesView are the questions for labels since the start.
type queriesView struct {
	Asked      uint64      `json:"asked"`
	Answered   uint64      `json:"answered"`
	Unanswered uint64      `json:"unanswered"` // whose sample waits no longer
	Open       []queryView `json:"open"`       // oldest first
}

// queryView is a question for the label of a sample.
type queryView struct {
	sampleView
	Reason  active.Strategy `json:"reason"`
	Expires time.Time       `json:"expires"`
}

// sampleView is one of the last samples.
type sampleView struct {
	Time       time.Time          `json:"ts"`
	Seq        uint64             `json:"seq"`
	ID         string             `json:"id"`
	Device     string             `json:"device,omitempty"`
	Class      string             `json:"class"`
	Confidence float64            `json:"confidence"`
	Probs      map[string]float64 `json:"probs"`
	Novelty    float64            `json:"novelty"`
	Set        []string           `json:"set"` // null: there are no sets
	Abstain    bool               `json:"abstain"`
	Label      string             `json:"label,omitempty"`
	Learned    bool               `json:"learned"`          // its label is known, and learnt
	Waits      bool               `json:"waits"`            // it has no label yet, and can be given one
	Values     []valueView        `json:"values,omitempty"` // of those that wait, the first few; 12 values at most
}

// valueView is a feature of a sample beside what is usual for it: the mean and two
// standard deviations on either side, as the model scales it. Null: missing, or
// nothing is known yet.
type valueView struct {
	Feature string     `json:"feature"`
	Value   score.Real `json:"value"`
	Low     score.Real `json:"low"`
	High    score.Real `json:"high"`
}

func (m *Monitor) model(name string) *Model { return m.now().Model(name) }

func (m *Monitor) describeNode() *nodeView {
	s := m.now().Node.Stats()
	v := &nodeView{
		V: 1, Node: m.now().Config.Node, Version: m.Build.Version, Commit: m.Build.Commit, Started: m.started,
		Connected: s.Connected, Subscribed: s.Subscribed, Refused: append([]string{}, s.Refused...), Degraded: s.Degraded,
		Received: s.Received, Rejected: s.Rejected, Dropped: s.RingDropped + s.ExamplesDropped + s.OutboxDropped + s.PendingEvicted,
		Queues:  map[string]int{"in": s.Ring, "commit": s.Commit, "out": s.Outbox},
		Control: m.now().Config.Control.Enabled, Events: []report.EventView{}, Models: []report.ModelSummary{},
	}
	if s.Received > 0 {
		at := time.Now().Add(-s.SinceMessage).Round(100 * time.Millisecond)
		v.LastMessage = &at
	}
	if st := m.store.Load(); st != nil && st.err == nil {
		v.Store = &storeView{st.FileBytes, st.FreeBytes, st.WrittenBytes, st.Transactions}
	}
	for _, e := range slices.Backward(m.lastEvents()) {
		v.Events = append(v.Events, report.EventView{Time: e.Time, Model: e.Model, Event: e.Kind, Detail: e.Detail})
	}
	for _, served := range m.now().Models {
		v.Models = append(v.Models, summarise(served, s.Models[served.Name]))
	}
	return v
}

// judged is a score, undefined while nothing has been judged.
func judged(n uint64, v float64) score.Real {
	if n == 0 {
		return score.Real(math.NaN())
	}
	return score.Real(v)
}

func summarise(served *Model, s stream.ModelStats) report.ModelSummary {
	st := served.Loop.Status()
	sc := &st.Scores
	return report.ModelSummary{
		Model: served.Name, N: sc.N, Error: judged(sc.N, sc.Error), LogLoss: judged(sc.N, sc.NLL),
		Window:  report.WindowScore{N: sc.Window.N, Error: judged(sc.N, sc.Window.Error), LogLoss: judged(sc.N, sc.Window.NLL)},
		Classes: append([]string{}, sc.Classes...), Pending: s.Pending, Built: st.Built, WarmedUp: st.WarmedUp, Learning: s.Learning, Drift: st.Drift.String(),
	}
}

func (m *Monitor) describeModel(served *Model) *modelView {
	s, st := m.now().Node.Stats().Models[served.Name], served.Loop.Status()
	sc := &st.Scores
	v := &modelView{
		V: 1, ModelSummary: summarise(served, s), Version: st.Learned,
		Accuracy: judged(sc.N, 1-sc.Error), Brier: judged(sc.N, sc.Brier), ECE: judged(sc.N, sc.ECE), MacroF1: judged(sc.N, sc.MacroF1),
		Scores: stream.DescribeScores(&sc.Figures), WindowScores: stream.DescribeScores(&sc.Window),
		Reliability: append([]score.Bin{}, sc.Reliability...), Relevance: []report.FeatureRelevance{}, Features: len(served.Config.Features),
		Samples: []sampleView{}, Queries: queriesView{s.Asked, s.Answered, s.Unanswered, []queryView{}}, Predictions: s.Predictions, Learned: s.Learned,
		Present: m.devices(served.Name),
		Open:    classesView{served.Config.Classes.Open, served.Config.Classes.Max, served.Config.Classes.Confirm, online.MaxLabel},
		Steps:   st.Counters.Steps, Rollbacks: st.Counters.StepsRefused, StateBytes: st.StateBytes,
	}
	if len(sc.Classes) <= report.MaxConfusion {
		v.Confusion = sc.Matrix
	}
	for j, r := range served.Loop.Posterior().Relevance() {
		v.Relevance = append(v.Relevance, report.FeatureRelevance{Feature: served.Config.Features[j], Relevance: r})
	}
	slices.SortStableFunc(v.Relevance, func(a, b report.FeatureRelevance) int { return cmp.Compare(b.Relevance, a.Relevance) })
	v.Relevance = v.Relevance[:min(len(v.Relevance), maxRelevances)]
	samples, course := m.remembered(served.Name)
	v.Course = append([]report.CoursePoint{}, course...)
	post, labels := served.Loop.Posterior(), map[uint64]bool{}
	valued := 0
	for i, p := range slices.Backward(samples) {
		of := describeSample(p)
		of.Waits = p.label == "" && (p.ID != "" && served.Feed.Pending.Max > 0 || i == len(samples)-1)
		if of.Waits && valued < valuedSamples {
			of.Values = describeValues(served.Config.Features, p.X, post)
			valued++
		}
		labels[p.Seq] = p.label != ""
		v.Samples = append(v.Samples, of)
	}
	for _, q := range m.now().Node.Queries(served.Name) {
		if labels[q.Prediction.Seq] {
			continue // which is being closed
		}
		of := describeSample(sample{q.Prediction, q.Asked, ""})
		of.Waits = true
		if len(v.Queries.Open) < valuedSamples {
			of.Values = describeValues(served.Config.Features, q.Features, post)
		}
		v.Queries.Open = append(v.Queries.Open, queryView{of, q.Reason, q.Expires})
	}
	return v
}

func describeSample(p sample) sampleView {
	v := sampleView{
		Time: p.at, Seq: p.Seq, ID: p.ID, Device: p.Device, Probs: map[string]float64{},
		Novelty: p.Novelty, Label: p.label, Learned: p.Learned || p.label != "" && p.Label == "",
	}
	v.Abstain = p.Abstain
	if p.Coverage > 0 {
		v.Set = []string{}
		for _, k := range p.Set {
			v.Set = append(v.Set, p.Classes[k])
		}
	}
	for k, prob := range p.Probs {
		v.Probs[p.Classes[k]] = prob
	}
	if p.Class >= 0 {
		v.Class, v.Confidence = p.Classes[p.Class], p.Probs[p.Class]
	}
	return v
}

// describeValues returns those of the features that are furthest from what is
// usual, in the model's order.
func describeValues(names []string, x []float64, post *model.Posterior) []valueView {
	if len(x) != len(names) || len(x) != post.Dim() {
		return nil
	}
	known, scale := post.Version() > 0, &post.Scale
	order := make([]int, len(x))
	for j := range order {
		order[j] = j
	}
	if known {
		distance := func(j int) float64 {
			if z := math.Abs(x[j]-scale.Mu[j]) / scale.Sd[j]; z == z {
				return z
			}
			return math.Inf(1) // missing
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance(b), distance(a)) })
	}
	order = order[:min(len(order), maxValues)]
	slices.Sort(order)
	values := []valueView{}
	for _, j := range order {
		v := valueView{Feature: names[j], Value: score.Real(x[j]), Low: score.Real(math.NaN()), High: score.Real(math.NaN())}
		if known {
			v.Low, v.High = score.Real(scale.Mu[j]-2*scale.Sd[j]), score.Real(scale.Mu[j]+2*scale.Sd[j])
		}
		values = append(values, v)
	}
	return values
}

// follow sends server-sent events: node, a nodeView, and for ?model=NAME also
// model, a modelView; first what is, then what has changed, once a second.
func (w *Server) follow(rw http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("model")
	served := w.monitor.model(name)
	if name != "" && served == nil {
		refuseRequest(rw, http.StatusNotFound, "there is no such model")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(w.closing, cancel)()
	rw.Header().Set("Content-Type", "text/event-stream")
	s := eventStream{to: rw, control: http.NewResponseController(rw), timeout: w.viewers.timeout}
	every(ctx, followEvery, func() {
		node := w.monitor.describeNode()
		s.send("node", node)
		if served != nil {
			s.send("model", w.monitor.describeModel(served))
		}
		if s.flush() != nil {
			cancel()
		}
	})
}

// eventStream writes server-sent events, those that differ from the last of
// their kind.
type eventStream struct {
	to      http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // for a viewer to take what is sent
	last    map[string][]byte
	quiet   time.Time // since nothing was sent
	wrote   bool
}

func (s *eventStream) send(kind string, v any) {
	text, err := json.Marshal(v)
	if err != nil || bytes.Equal(text, s.last[kind]) {
		return
	}
	if s.last == nil {
		s.last = map[string][]byte{}
	}
	s.last[kind], s.wrote = text, true
	s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	fmt.Fprintf(s.to, "event: %s\ndata: %s\n\n", kind, text)
}

// flush hands over what was sent; the error says that nobody is there any more.
func (s *eventStream) flush() error {
	now := time.Now()
	if !s.wrote && now.Sub(s.quiet) < quietWithin {
		return nil
	}
	if !s.wrote {
		fmt.Fprint(s.to, ": nothing new\n\n")
	}
	s.quiet, s.wrote = now, false
	s.control.SetWriteDeadline(now.Add(s.timeout))
	return s.control.Flush()
}
