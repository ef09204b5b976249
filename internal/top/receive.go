package top

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/score"
	"edge/stream"
)

// topics returns the filters of the messages that receive handles.
func (n *nodeState) topics() []string {
	own := n.base + "/" + n.node + "/"
	return []string{
		own + "state", own + "info", own + "health", own + "event", own + "response/#",
		own + "+/metrics", own + "+/prediction/#", own + "+/latest", own + "+/query", own + "+/reject",
	}
}

// receive handles a message. It ignores malformed messages, which other clients may
// publish.
func (n *nodeState) receive(topic string, payload []byte, retained bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	rest, ok := strings.CutPrefix(topic, n.base+"/"+n.node+"/")
	if !ok {
		return
	}
	first, rest, _ := strings.Cut(rest, "/")
	second, _, _ := strings.Cut(rest, "/")
	switch {
	case first == "state" && rest == "":
		n.view.State, n.view.since = terminal.Plain(string(payload)), time.Time{} // another run, perhaps
	case first == "info" && rest == "":
		n.receiveInfo(payload)
	case first == "health" && rest == "":
		var h healthView
		if json.Unmarshal(payload, &h) == nil {
			n.view.Health, n.view.since = &h, time.Now().Add(-time.Duration(h.Uptime)*time.Second)
		}
	case first == "event" && rest == "":
		n.receiveEvent(payload)
	case first == "response":
		n.receiveResponse(rest, payload)
	case second == "metrics":
		n.receiveMetrics(first, payload)
	case second == "prediction" && !retained:
		n.receivePrediction(first, payload, false)
	case second == "latest" && rest == "latest":
		n.receivePrediction(first, payload, true)
	case second == "query":
		n.receiveQuery(first, payload)
	case second == "reject":
		n.receiveReject(first, payload)
	}
}

// model returns the state of a model, nil beyond maxModels, and for one that the node has no more, of which
// the broker may keep messages.
func (n *nodeState) model(name string) *modelState {
	name = terminal.Plain(name)
	m := n.models[name]
	if m == nil && len(n.models) < maxModels && (n.known == nil || n.known[name]) {
		m = &modelState{}
		none := score.Real(math.NaN())
		m.Model, m.Learning, m.Rate = name, true, none
		m.ECE, m.Error, m.LogLoss, m.Window.Error, m.Window.LogLoss = none, none, none, none, none
		n.models[name] = m
	}
	return m
}

func (n *nodeState) receiveInfo(payload []byte) {
	var info stream.InfoPayload
	if json.Unmarshal(payload, &info) != nil {
		return
	}
	n.view.Version, n.view.Arch, n.view.Control = terminal.Plain(info.Version), terminal.Plain(info.Arch), info.Control
	n.view.Started = &info.Started.Time
	n.known = nil
	known := map[string]bool{}
	for _, of := range info.Models {
		if m := n.model(of.Name); m != nil {
			m.Classes = of.Classes
			known[m.Model] = true
		}
	}
	n.known = known
	maps.DeleteFunc(n.models, func(name string, _ *modelState) bool { return !known[name] })
}

func (n *nodeState) receiveEvent(payload []byte) {
	var e stream.EventPayload
	if json.Unmarshal(payload, &e) == nil {
		n.note(e.Model, e.Event, e.Detail)
	}
}

// note adds an event at the present time.
func (n *nodeState) note(model, event, detail string) {
	n.events = append(report.KeepLast(n.events, keptEvents-1), report.EventView{Time: time.Now(), Model: terminal.Plain(model), Event: terminal.Plain(event), Detail: terminal.Plain(detail)})
}

func (n *nodeState) receiveResponse(command string, payload []byte) {
	var r stream.ResponsePayload
	if json.Unmarshal(payload, &r) == nil && r.Status == "error" {
		n.note("", "request_refused", command+": "+r.Error)
	}
}

func (n *nodeState) receiveReject(model string, payload []byte) {
	var r stream.RejectPayload
	if m := n.model(model); m != nil && json.Unmarshal(payload, &r) == nil {
		n.note(m.Model, "refused", string(r.Reason)+": "+r.Error)
	}
}

// receiveQuery marks the sample whose label the node queries.
func (n *nodeState) receiveQuery(model string, payload []byte) {
	m := n.model(model)
	var q stream.QueryPayload
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	if m == nil || d.Decode(&q) != nil {
		return
	}
	asked := sampleView{ID: q.ID, Device: q.Device}
	for i := range slices.Backward(m.Samples) {
		if s := &m.Samples[i]; s.ID != nil && s.idText() == asked.idText() && s.Device == asked.Device {
			s.Asked = terminal.Plain(string(q.Reason))
			return
		}
	}
}

func (n *nodeState) receiveMetrics(model string, payload []byte) {
	m := n.model(model)
	if m == nil {
		return
	}
	received := modelView{}
	if json.Unmarshal(payload, &received) != nil || len(received.Confusion) > report.MaxConfusion {
		return
	}
	received.Model, received.Received = m.Model, true
	received.Rate, received.Rates, received.Samples, received.Course = m.Rate, m.Rates, m.Samples, m.Course
	m.modelView = received
	at := report.CoursePoint{N: received.N, Error: float64(received.Error), LogLoss: float64(received.LogLoss), WindowError: float64(received.Window.Error), WindowLogLoss: float64(received.Window.LogLoss), Time: time.Now()}
	defined := !math.IsNaN(at.Error + at.LogLoss + at.WindowError + at.WindowLogLoss)
	if n := len(m.Course); defined && (n == 0 || m.Course[n-1].N != at.N) {
		m.Course = append(report.KeepLast(m.Course, report.CoursePoints-1), at)
	}
}

// receivePrediction adds a prediction. The message on the latest topic, which repeats a
// prediction, counts only before the first other one.
func (n *nodeState) receivePrediction(model string, payload []byte, latest bool) {
	m := n.model(model)
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
	s := sampleView{
		Time: time.Now(), ID: p.ID, Device: p.Device, Seq: p.Seq,
		Probs: p.Probs, Novelty: p.Novelty, Learned: p.Learned,
	}
	if p.Class != nil && p.Confidence != nil {
		s.Class, s.Confidence = *p.Class, *p.Confidence
	}
	m.newest = p.Seq
	m.Samples = append(report.KeepLast(m.Samples, keptSamples-1), s)
}
