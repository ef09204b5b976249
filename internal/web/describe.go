package web

import (
	"cmp"
	"math"
	"slices"
	"time"

	"edge/internal/report"
	"edge/model"
	"edge/online"
	"edge/online/score"
	"edge/stream"
)

// model returns a model of the present deployment, nil if it does not exist.
func (m *Monitor) model(name string) *Model { return m.deployment().Model(name) }

// describeNode returns the answer to /api/v1/models.
func (m *Monitor) describeNode() *nodeView {
	d := m.deployment()
	s := d.Node.Stats()
	v := &nodeView{
		V: 1, Node: d.Config.Node, Version: m.Build.Version, Commit: m.Build.Commit, Started: m.began.Time(),
		Connected: s.Connected, Subscribed: s.Subscribed, Refused: append([]string{}, s.Refused...), Degraded: s.Degraded,
		Received: s.Received, Rejected: s.Rejected, Dropped: s.RingDropped + s.ExamplesDropped + s.OutboxDropped + s.OutboxRefused + s.PendingEvicted,
		Queues:  map[string]int{"in": s.Ring, "commit": s.Commit, "out": s.Outbox},
		Control: d.Config.Control.Enabled, Events: []report.EventView{}, Models: []report.ModelSummary{},
	}
	if s.SinceMessage > 0 {
		at := time.Now().Add(-s.SinceMessage).Round(100 * time.Millisecond)
		v.LastMessage = &at
	}
	if st := m.storeFigures(); st != nil && st.err == nil {
		v.Store = &storeView{st.FileBytes, st.FreeBytes, st.WrittenBytes, st.Transactions}
	}
	for _, e := range slices.Backward(m.recentEvents()) {
		v.Events = append(v.Events, report.EventView{Time: e.Time, Model: e.Model, Event: e.Kind, Detail: e.Detail})
	}
	for _, served := range d.Models {
		v.Models = append(v.Models, summarise(served, s.Models[served.Name]))
	}
	return v
}

// summarise returns the figures of a model that nodeView and modelView have in common.
func summarise(served *Model, s stream.ModelStats) report.ModelSummary {
	st := served.Loop.Status()
	sc := &st.Scores
	v := report.ModelSummary{
		Model: served.Name, N: sc.N, Error: score.Judged(sc.N, sc.Error), LogLoss: score.Judged(sc.N, sc.NLL),
		Window:  report.WindowScore{N: sc.Window.N, Error: score.Judged(sc.N, sc.Window.Error), LogLoss: score.Judged(sc.N, sc.Window.NLL)},
		Classes: append([]string{}, sc.Classes...), Pending: s.Pending, Built: st.Built, WarmedUp: st.WarmedUp, Learning: s.Learning, Drift: st.Drift.String(),
	}
	if served.Feed.Fleet.Follows() { // its loop learns nothing
		v.Classes = append([]string{}, s.Classes...)
	}
	if st.Recovering {
		v.Recovery = &st.Behind
	}
	return v
}

// describeModel returns the answer to /api/v1/models/{model}.
func (m *Monitor) describeModel(served *Model) *modelView {
	node := m.deployment().Node
	s, st := node.Stats().Models[served.Name], served.Loop.Status()
	sc := &st.Scores
	v := &modelView{
		V: 1, ModelSummary: summarise(served, s), Version: st.Learned,
		scoresView: scoresView{score.Judged(sc.N, 1-sc.Error), score.Judged(sc.N, sc.Brier), score.Judged(sc.N, sc.ECE), score.Judged(sc.N, sc.MacroF1)},
		Scores:     stream.DescribeScores(&sc.Figures), WindowScores: stream.DescribeScores(&sc.Window),
		Reliability: append([]score.Bin{}, sc.Reliability...), Features: len(served.Config.Features),
		Samples: []sampleView{}, Queries: queriesView{s.Asked, s.Answered, s.Unanswered, []queryView{}},
		Present: m.devices(served.Name), Windows: describeWindows(node.Windows(served.Name)),
		Open:       classesView{served.Config.Classes.Open, served.Config.Classes.Max, served.Config.Classes.Confirm, online.MaxLabel},
		countsView: countsView{s.Predictions, s.Learned, st.Counters.Steps, st.Counters.StepsRefused, st.StateBytes},
	}
	if f, ok := node.Fleet(served.Name); ok {
		v.Fleet = &f
	}
	if len(sc.Classes) <= report.MaxConfusion && !served.Feed.Fleet.Follows() {
		v.Confusion = sc.Matrix
	}
	post := served.Loop.Snapshot()
	v.Relevance = report.RankFeatures(served.Config.Features, post.Relevance())
	v.Relevance = v.Relevance[:min(len(v.Relevance), maxRelevances)]
	samples, course := m.history(served.Name)
	v.Course = append([]report.CoursePoint{}, course...)
	valued, labels := 0, map[uint64]bool{}
	for i, p := range slices.Backward(samples) {
		of := describeSample(p)
		of.Waits = p.label == "" && !served.Feed.Fleet.Follows() && (p.ID != "" && served.Feed.Pending.Max > 0 || i == len(samples)-1)
		if of.Waits && valued < valuedSamples {
			of.Values = describeValues(served.Config.Features, p.X, post)
			valued++
		}
		if of.Values != nil || i == len(samples)-1 {
			of.Signals = describeCourse(p.Course())
		}
		labels[p.Seq] = p.label != ""
		v.Samples = append(v.Samples, of)
	}
	for _, q := range node.Queries(served.Name) {
		if labels[q.Prediction.Seq] {
			continue // the query is being closed
		}
		of := describeSample(sample{q.Prediction, q.Asked, ""})
		of.Waits = true
		if len(v.Queries.Open) < valuedSamples {
			of.Values, of.Signals = describeValues(served.Config.Features, q.Features, post), describeCourse(q.Prediction.Course())
		}
		v.Queries.Open = append(v.Queries.Open, queryView{of, q.Reason, q.Expires})
	}
	return v
}

// describeSample returns a sample without its features.
func describeSample(p sample) sampleView {
	v := sampleView{
		Time: p.at, Seq: p.Seq, ID: p.ID, Device: p.Device, Probs: map[string]float64{},
		Novelty: p.Novelty, Abstain: p.Abstain, Label: p.label, Learned: p.Learned || p.label != "" && p.Label == "",
	}
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

// describeValues returns the features that are furthest from their usual range, in
// the model's order.
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
