package top

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/score"
	"edge/stream"
)

const boardModels = 64 // that a board remembers, whatever is published

const boardSamples = 50 // of each

const boardRates = 120 // of each, one a tick

// board gathers what a node says of itself over MQTT. Its methods may be called
// from any goroutine. What it remembers is bounded, whatever is published.
type board struct {
	base, node string

	mu     sync.Mutex
	view   boardView
	models map[string]*boardModel
	events []report.EventView // latest last
}

// boardView is what a board knows at a moment; `edge top --json` prints it.
type boardView struct {
	V         int                `json:"v"`
	Time      time.Time          `json:"ts"`
	Node      string             `json:"node"`
	Connected bool               `json:"connected"` // this program, to the broker
	State     string             `json:"state"`     // online or offline; empty: nobody has said
	Version   string             `json:"version"`
	Arch      string             `json:"arch"`
	Started   *time.Time         `json:"started"` // null until the node's info was heard
	Control   bool               `json:"control"` // labels and requests are taken from here
	Health    *healthView        `json:"health"`  // null until it was heard: once a minute
	Models    []boardModelView   `json:"models"`
	Events    []report.EventView `json:"events"` // newest first
}

// healthView is what is shown of a node's health.
type healthView struct {
	Received   uint64            `json:"received"`
	Learned    uint64            `json:"learned"`
	Rejected   map[string]uint64 `json:"rejected"`
	Dropped    map[string]uint64 `json:"dropped"`
	Queues     map[string]int    `json:"queues"`
	RSS        uint64            `json:"rss_bytes"`
	StoreBytes uint64            `json:"store_bytes"`
	Status     string            `json:"status"`
}

// boardModelView is one model in a boardView. What was not heard is zero, or
// null where a number is not defined.
type boardModelView struct {
	report.ModelSummary
	Heard     bool                 `json:"heard"` // its scores were
	ECE       score.Real           `json:"ece"`
	Confusion [][]uint64           `json:"confusion,omitempty"` // [label][predicted]
	Beats     *bool                `json:"beats_baselines"`     // null while that is not known
	Rate      score.Real           `json:"rate"`                // predictions a second
	Rates     []float64            `json:"-"`                   // latest last
	Course    []report.CoursePoint `json:"course"`              // since this program listens
	Samples   []boardSample        `json:"samples"`             // newest first
}

// boardSample is a prediction that was heard.
type boardSample struct {
	Time       time.Time          `json:"ts"` // of its arrival here
	ID         any                `json:"id"` // text or number, as it was sent; nil for none
	Device     string             `json:"device,omitempty"`
	Seq        uint64             `json:"seq"`
	Class      string             `json:"class"`
	Confidence float64            `json:"confidence"`
	Probs      map[string]float64 `json:"probs"`
	Novelty    float64            `json:"novelty"`
	Learned    bool               `json:"learned"`
	Asked      string             `json:"asked,omitempty"` // why the node asks for its label
	Label      string             `json:"label,omitempty"` // that was given here
}

// boardModel is what a board remembers of a model.
type boardModel struct {
	boardModelView // Samples and Course: latest last
	newest         uint64
	counted        uint64 // newest at the last tick
	ticked         time.Time
}

func newBoard(base, node string) *board {
	return &board{base: base, node: node, models: map[string]*boardModel{}}
}

// topics are the filters of what a board hears.
func (b *board) topics() []string {
	own := b.base + "/" + b.node + "/"
	return []string{
		own + "state", own + "info", own + "health", own + "event", own + "response/#",
		own + "+/metrics", own + "+/prediction/#", own + "+/latest", own + "+/query", own + "+/reject",
	}
}

// hear takes a message in. What cannot be read is left alone: somebody else may
// publish there.
func (b *board) hear(topic string, payload []byte, retained bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest, ok := strings.CutPrefix(topic, b.base+"/"+b.node+"/")
	if !ok {
		return
	}
	first, rest, _ := strings.Cut(rest, "/")
	second, _, _ := strings.Cut(rest, "/")
	switch {
	case first == "state" && rest == "":
		b.view.State = terminal.Plain(string(payload))
	case first == "info" && rest == "":
		b.hearInfo(payload)
	case first == "health" && rest == "":
		var h healthView
		if json.Unmarshal(payload, &h) == nil {
			b.view.Health = &h
		}
	case first == "event" && rest == "":
		b.hearEvent(payload)
	case first == "response":
		b.hearResponse(rest, payload)
	case second == "metrics":
		b.hearMetrics(first, payload)
	case second == "prediction" && !retained:
		b.hearPrediction(first, payload, false)
	case second == "latest" && rest == "latest":
		b.hearPrediction(first, payload, true)
	case second == "query":
		b.hearQuery(first, payload)
	case second == "reject":
		b.hearReject(first, payload)
	}
}

// model returns what is remembered of a model; nil if there are too many.
func (b *board) model(name string) *boardModel {
	name = terminal.Plain(name)
	m := b.models[name]
	if m == nil && len(b.models) < boardModels {
		m = &boardModel{}
		m.Model, m.Learning, m.Rate, m.ECE = name, true, score.Real(math.NaN()), score.Real(math.NaN())
		b.models[name] = m
	}
	return m
}

func (b *board) hearInfo(payload []byte) {
	var info struct {
		Version string    `json:"version"`
		Arch    string    `json:"arch"`
		Started time.Time `json:"started"`
		Control bool      `json:"control"`
		Models  []struct {
			Name    string   `json:"name"`
			Classes []string `json:"classes"`
		} `json:"models"`
	}
	if json.Unmarshal(payload, &info) != nil {
		return
	}
	b.view.Version, b.view.Arch, b.view.Control = terminal.Plain(info.Version), terminal.Plain(info.Arch), info.Control
	b.view.Started = &info.Started
	known := map[string]bool{}
	for _, of := range info.Models {
		if m := b.model(of.Name); m != nil {
			m.Classes = terminal.PlainAll(of.Classes)
			known[m.Model] = true
		}
	}
	maps.DeleteFunc(b.models, func(name string, _ *boardModel) bool { return !known[name] }) // retained topics of former models
}

func (b *board) hearEvent(payload []byte) {
	var e report.EventView
	if json.Unmarshal(payload, &e) == nil {
		b.note(e.Model, e.Event, e.Detail)
	}
}

// note adds an event that happened now.
func (b *board) note(model, event, detail string) {
	b.events = append(keepLast(b.events, keptEvents-1), report.EventView{Time: time.Now(), Model: terminal.Plain(model), Event: terminal.Plain(event), Detail: terminal.Plain(detail)})
}

func (b *board) hearResponse(verb string, payload []byte) {
	var r struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if json.Unmarshal(payload, &r) == nil && r.Status == "error" {
		b.note("", "request_refused", verb+": "+r.Error)
	}
}

func (b *board) hearReject(model string, payload []byte) {
	var r struct {
		Reason string `json:"reason"`
		Error  string `json:"error"`
	}
	if m := b.model(model); m != nil && json.Unmarshal(payload, &r) == nil {
		b.note(m.Model, "refused", r.Reason+": "+r.Error)
	}
}

// hearQuery marks the sample whose label the node asks for.
func (b *board) hearQuery(model string, payload []byte) {
	m := b.model(model)
	var q struct {
		stream.PredictionPayload
		Reason string `json:"reason"`
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	if m == nil || d.Decode(&q) != nil {
		return
	}
	asked := boardSample{ID: q.ID, Device: terminal.Plain(q.Device)}
	for i := range slices.Backward(m.Samples) {
		if s := &m.Samples[i]; s.ID != nil && s.idText() == asked.idText() && s.Device == asked.Device {
			s.Asked = terminal.Plain(q.Reason)
			return
		}
	}
}

func (b *board) hearMetrics(model string, payload []byte) {
	m := b.model(model)
	if m == nil {
		return
	}
	heard := boardModelView{}
	if json.Unmarshal(payload, &heard) != nil || len(heard.Confusion) > report.MaxConfusion {
		return
	}
	heard.Model, heard.Heard, heard.Classes = m.Model, true, terminal.PlainAll(heard.Classes)
	heard.Rate, heard.Rates, heard.Samples, heard.Course = m.Rate, m.Rates, m.Samples, m.Course
	m.boardModelView = heard
	at := report.CoursePoint{N: heard.N, Error: float64(heard.Error), LogLoss: float64(heard.LogLoss), WindowError: float64(heard.Window.Error), WindowLogLoss: float64(heard.Window.LogLoss), Time: time.Now()}
	defined := !math.IsNaN(at.Error + at.LogLoss + at.WindowError + at.WindowLogLoss)
	if n := len(m.Course); defined && (n == 0 || m.Course[n-1].N != at.N) {
		m.Course = append(keepLast(m.Course, report.CoursePoints-1), at)
	}
}

// hearPrediction takes a prediction in; the latest one, which repeats another,
// only while nothing else was heard.
func (b *board) hearPrediction(model string, payload []byte, latest bool) {
	m := b.model(model)
	if m == nil || latest && m.newest > 0 {
		return
	}
	p, err := stream.ReadPrediction(payload)
	if err != nil || p.Seq == 0 || p.Seq == m.newest {
		return
	}
	if p.Seq < m.newest { // the node has started again
		m.counted, m.Samples = 0, nil
	}
	s := boardSample{
		Time: time.Now(), ID: p.ID, Device: terminal.Plain(p.Device), Seq: p.Seq,
		Probs: p.Probs, Novelty: p.Novelty, Learned: p.Learned,
	}
	if p.Class != nil && p.Confidence != nil {
		s.Class, s.Confidence = terminal.Plain(*p.Class), *p.Confidence
	}
	m.newest = p.Seq
	m.Samples = append(keepLast(m.Samples, boardSamples-1), s)
}

// tick measures the rates; it is called about once a second.
func (b *board) tick(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.models {
		if d := now.Sub(m.ticked).Seconds(); !m.ticked.IsZero() && d > 0 && m.counted > 0 {
			rate := float64(m.newest-m.counted) / d
			m.Rate, m.Rates = score.Real(rate), append(keepLast(m.Rates, boardRates-1), rate)
		}
		m.counted, m.ticked = m.newest, now
	}
}

// labelled remembers a label that was sent from here.
func (b *board) labelled(model string, seq uint64, label string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.models[model]; m != nil {
		for i := range m.Samples {
			if m.Samples[i].Seq == seq {
				m.Samples[i].Label = label
			}
		}
	}
}

// look returns what is known now; nothing of it changes later.
func (b *board) look(connected bool) *boardView {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.view
	v.V, v.Time, v.Node, v.Connected = 1, time.Now(), b.node, connected
	v.Models, v.Events = []boardModelView{}, append([]report.EventView{}, b.events...)
	slices.Reverse(v.Events)
	for _, name := range slices.Sorted(maps.Keys(b.models)) {
		m := b.models[name].boardModelView
		m.Samples, m.Course, m.Rates = append([]boardSample{}, m.Samples...), append([]report.CoursePoint{}, m.Course...), slices.Clone(m.Rates)
		slices.Reverse(m.Samples)
		v.Models = append(v.Models, m)
	}
	return &v
}

// idText is a sample's id in words.
func (s *boardSample) idText() string {
	switch id := s.ID.(type) {
	case nil:
		return "#" + strconv.FormatUint(s.Seq, 10)
	case string:
		return terminal.Plain(id)
	default:
		text, err := json.Marshal(id)
		if err != nil {
			return "?"
		}
		return terminal.Plain(string(text))
	}
}
