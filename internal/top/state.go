package top

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/score"
	"edge/stream/field"
)

// Bounds of a nodeState.
const (
	maxModels   = 64
	keptSamples = 50  // of each model
	keptRates   = 120 // of each model, one a tick
	keptEvents  = 40
)

// nodeState collects the published state of a node. Any goroutine may call its
// methods. Its size is bounded, whatever is published.
type nodeState struct {
	base, node string

	mu     sync.Mutex
	view   view
	models map[string]*modelState
	known  map[string]bool    // models of the node's info; nil: none has come
	events []report.EventView // latest last
}

// view is a snapshot of a nodeState. `edge top --json` prints it.
type view struct {
	V         int                `json:"v"`
	Time      time.Time          `json:"ts"`
	Node      string             `json:"node"`
	Connected bool               `json:"connected"` // this program, to the broker
	State     string             `json:"state"`     // online or offline; empty if unknown
	Version   string             `json:"version"`
	Arch      string             `json:"arch"`
	Started   *time.Time         `json:"started"` // null before the node's info arrived
	Control   bool               `json:"control"` // the node accepts labels and requests
	Health    *healthView        `json:"health"`  // null before it arrived; published once a minute
	Models    []modelView        `json:"models"`
	Events    []report.EventView `json:"events"` // newest first

	since time.Time // of the node's start, by its health and the clock here; zero before that arrived
}

// healthView is the shown part of a node's health.
type healthView struct {
	Uptime     int64             `json:"uptime_s"`
	Received   uint64            `json:"received"`
	Learned    uint64            `json:"learned"`
	Rejected   map[string]uint64 `json:"rejected"`
	Dropped    map[string]uint64 `json:"dropped"`
	Queues     map[string]int    `json:"queues"`
	RSS        uint64            `json:"rss_bytes"`
	StoreBytes uint64            `json:"store_bytes"`
	Status     string            `json:"status"`
}

// modelView is one model in a view. Figures that were not received are zero, or null
// where a number is not defined.
type modelView struct {
	report.ModelSummary
	Received  bool                 `json:"heard"` // its scores have arrived
	ECE       score.Real           `json:"ece"`
	Confusion [][]uint64           `json:"confusion,omitempty"` // [label][predicted]
	Beats     *bool                `json:"beats_baselines"`     // null while it is unknown
	Rate      score.Real           `json:"rate"`                // predictions a second
	Rates     []float64            `json:"-"`                   // latest last
	Course    []report.CoursePoint `json:"course"`              // since this program started
	Samples   []sampleView         `json:"samples"`             // newest first
}

// sampleView is a received prediction.
type sampleView struct {
	Time       time.Time          `json:"ts"` // of its arrival here
	ID         any                `json:"id"` // text or number, as in the message; nil without an id
	Device     string             `json:"device,omitempty"`
	Seq        uint64             `json:"seq"`
	Class      string             `json:"class"`
	Confidence float64            `json:"confidence"`
	Probs      map[string]float64 `json:"probs"`
	Novelty    float64            `json:"novelty"`
	Learned    bool               `json:"learned"`
	Asked      string             `json:"asked,omitempty"` // reason why the node queries its label
	Label      string             `json:"label,omitempty"` // given with this program
}

// modelState is the state of one model.
type modelState struct {
	modelView // Samples and Course: latest last
	newest    uint64
	counted   uint64 // newest at the last tick
	ticked    time.Time
}

func newNodeState(base, node string) *nodeState {
	return &nodeState{base: base, node: node, models: map[string]*modelState{}}
}

// tick measures the rates. It is called about once a second.
func (n *nodeState) tick(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.models {
		if d := now.Sub(m.ticked).Seconds(); !m.ticked.IsZero() && d > 0 && m.counted > 0 {
			rate := float64(m.newest-m.counted) / d
			m.Rate, m.Rates = score.Real(rate), append(report.KeepLast(m.Rates, keptRates-1), rate)
		}
		m.counted, m.ticked = m.newest, now
	}
}

// labelled records a label that was sent by this program.
func (n *nodeState) labelled(model string, seq uint64, label string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.models[model]; m != nil {
		for i := range m.Samples {
			if m.Samples[i].Seq == seq {
				m.Samples[i].Label = label
			}
		}
	}
}

// snapshot returns a copy of the present state.
func (n *nodeState) snapshot(connected bool) *view {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view
	v.V, v.Time, v.Node, v.Connected = 1, time.Now(), n.node, connected
	v.Models, v.Events = []modelView{}, append([]report.EventView{}, n.events...)
	slices.Reverse(v.Events)
	for _, name := range field.Names(n.models) {
		m := n.models[name].modelView
		m.Samples, m.Course, m.Rates = append([]sampleView{}, m.Samples...), append([]report.CoursePoint{}, m.Course...), slices.Clone(m.Rates)
		slices.Reverse(m.Samples)
		v.Models = append(v.Models, m)
	}
	return &v
}

// idText returns a sample's id as text.
func (s *sampleView) idText() string {
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
