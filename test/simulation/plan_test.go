package simulation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"edge/online"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/membership"
)

// plan is the configuration of one simulation, with its messages and faults. Each plan
// has only some of the features, since all at once would hide defects.
type plan struct {
	name    string // of the node
	prefix  string // of the topics of its streams
	rng     *rand.Rand
	node    stream.Config
	models  []modelPlan
	classes []string
	pending stream.Pending
	dedupe  int
	every   time.Duration
	samples uint64

	traits
	rows           *rows // nil: the messages are samples
	earlierSession bool  // the session has subscriptions of QoS 2 that the node does not know

	topics int // 1 + number of reloads that have changed the streams' topics; 0: reloads do not change them

	messages []planned
	length   time.Duration
	faults   []fault
}

// traits are the kinds of messages in a plan.
type traits struct {
	ids, late, last, corrected, batches, requests, qos0, repeated bool
	values                                                        string // "constant", "coarse" or "fine"
}

type modelPlan struct {
	name    string
	streams []string
	learner online.Config
	fleet   membership.Config // the zero value: none
}

// planned is a message with its time of publication.
type planned struct {
	at time.Duration
	publication
}

// fault is a fault of node, network, disk or broker.
type fault struct {
	at   time.Duration
	what string
	long time.Duration
}

func newPlan(w *world) *plan {
	rng := w.random("plan")
	often := func(percent int) bool { return rng.IntN(100) < percent }
	p := &plan{
		name: w.name, rng: rng,
		traits: traits{ids: often(50), late: often(40), last: often(15), corrected: often(40), batches: often(30), requests: often(25),
			qos0: often(25), repeated: often(40), values: pick(rng, "constant", "coarse", "coarse", "fine")},
		classes: []string{"a", "b"}, pending: stream.DefaultPending(), dedupe: pick(rng, 500, 4096),
		every: pick(rng, 0, time.Second, time.Minute), samples: pick[uint64](rng, 0, 1, 10, 50),
	}
	p.qos0 = p.qos0 && !p.last // a sample of QoS 0 may or may not be the last one
	p.earlierSession = w.oneIn("earlier", 6)
	p.configure()
	p.publish(40 + rng.IntN(120))
	p.planFaults(rng.IntN(9))
	if w.oneIn("topics", 6) {
		p.topics = 1
		p.planFault(w, "reload", 1)
	}
	for _, what := range []string{"retained lost", "failing sync", "restored backup", "cut behind cursor"} {
		p.planFault(w, what, 6)
	}
	return p
}

// configure chooses the configuration of the node.
func (p *plan) configure() {
	rng := p.rng
	c := stream.DefaultConfig()
	c.Node = p.name
	c.MQTT.ClientID = p.name
	c.MQTT.Servers = []string{"tcp://broker.lan:1883"}
	c.MQTT.InflightWindow = pick(rng, 1, 4, 16, 100)
	c.MQTT.Ring.MaxMessages = pick(rng, 30, 200, 2048)
	c.MQTT.MaxReconnectInterval = pick(rng, time.Second, 5*time.Second)
	c.MQTT.Keepalive = pick(rng, 2*time.Second, 30*time.Second)
	c.JournalFlush = pick(rng, 0, 50*time.Millisecond, 500*time.Millisecond)
	c.Control.Enabled = true
	c.Labels = []codec.Labels{{Topics: []string{p.prefix + "labels"}, ID: "id", Label: "label"}}
	for _, name := range []string{"one", "two"} {
		s := codec.DefaultStream()
		s.Topics, s.Dimension = []string{p.prefix + "in/" + name + "/+"}, 2
		c.Streams[name] = s
	}
	p.node = c
	learner := online.DefaultConfig()
	learner.Inducing, learner.Horizons, learner.Window, learner.Warmup = 4, []online.Horizon{online.Horizon(math.Inf(1))}, 8, 24
	learner.Batch = online.Batch{MaxSize: pick(rng, 1, 4, 16), MaxWait: pick(rng, 0, 20*time.Millisecond, time.Second)}
	learner.Classes.Names = p.classes
	learner.Features = []string{"f0", "f1"}
	p.models = []modelPlan{{name: "m", streams: []string{"one"}, learner: learner}}
	if rng.IntN(3) == 0 {
		p.models = append(p.models, modelPlan{name: "n", streams: []string{"one", "two"}, learner: learner})
	}
}

// String lists the features of a plan.
func (p *plan) String() string {
	words := []string{p.values}
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"ids", p.ids}, {"late labels", p.late}, {"label of the last", p.last}, {"corrections", p.corrected}, {"batches", p.batches},
		{"requests", p.requests}, {"QoS 0", p.qos0}, {"repeated", p.repeated}, {"subscriptions of QoS 2", p.earlierSession},
	} {
		if f.on {
			words = append(words, f.name)
		}
	}
	for _, f := range p.faults {
		words = append(words, f.what)
	}
	return strings.Join(words, ", ")
}

// modelsOf returns the models of a stream.
func (p *plan) modelsOf(name string) (models []string) {
	for _, m := range p.models {
		for _, s := range m.streams {
			if s == name {
				models = append(models, m.name)
			}
		}
	}
	return models
}

func (p *plan) all() (models []string) {
	for _, m := range p.models {
		models = append(models, m.name)
	}
	return models
}

// features returns the features of a sample; many samples are equal.
func (p *plan) features() []float64 {
	switch p.values {
	case "constant":
		return []float64{1, 2}
	case "coarse":
		return []float64{float64(p.rng.IntN(3)), float64(p.rng.IntN(2))}
	}
	return []float64{math.Round(p.rng.NormFloat64()*1000) / 1000, math.Round(p.rng.NormFloat64()*1000) / 1000}
}

func (p *plan) label() string { return pick(p.rng, "a", "a", "b", "c") }

// publish plans n messages of samples, with their labels, corrections and requests.
func (p *plan) publish(n int) {
	rng, at := p.rng, time.Second
	pace := pick(rng, 0, 5*time.Millisecond, 50*time.Millisecond, 300*time.Millisecond)
	for i := range n {
		if pace > 0 {
			at += time.Duration(rng.Int64N(int64(2 * pace)))
		}
		at += time.Microsecond // no two messages have the same time
		if rng.IntN(40) == 0 {
			at += 3 * time.Second
		}
		switch {
		case p.qos0 && rng.IntN(5) == 0:
			e := entry{models: p.modelsOf("one"), x: []float64{float64(i) + 0.125, 0}, label: "a"}
			p.add(at, p.prefix+"in/one/q", 0, false, e)
		case p.requests && rng.IntN(8) == 0:
			p.request(at)
		case p.last && rng.IntN(5) == 0:
			p.labelled(at, "last", p.label())
		default:
			p.sampled(at, i)
		}
	}
	p.length = at + time.Second
}

// sampled plans a sample or a batch of them.
func (p *plan) sampled(at time.Duration, i int) {
	rng := p.rng
	name := "one"
	if len(p.models) > 1 {
		name = pick(rng, "one", "two")
	}
	size := 1
	if p.batches && rng.IntN(3) == 0 {
		size = 1 + rng.IntN(4)
	}
	var entries []entry
	for k := range size {
		e := entry{models: p.modelsOf(name), x: p.features(), label: p.label()}
		if p.ids && rng.IntN(4) > 0 {
			e.id = fmt.Sprintf("%d-%d", i, k)
		}
		first := e.label
		if p.late && rng.IntN(2) == 0 {
			e.label = ""
			if e.id != "" {
				p.labelled(at+time.Duration(rng.Int64N(int64(3*time.Second))), e.id, first)
			}
		}
		if e.id != "" && p.corrected && rng.IntN(4) == 0 {
			for range 1 + rng.IntN(3) { // corrects the label and corrects it back
				first = map[string]string{"a": "b", "b": "a", "c": "a"}[first]
				p.labelled(at+time.Duration(rng.Int64N(int64(6*time.Second))), e.id, first)
			}
		}
		entries = append(entries, e)
	}
	qos := byte(1 + rng.IntN(2))
	p.add(at, p.prefix+"in/"+name+"/s", qos, rng.IntN(30) == 0, entries...)
	if p.repeated && rng.IntN(6) == 0 && (entries[0].id != "" || rng.IntN(2) == 0) { // the publisher repeats it
		p.add(at+time.Duration(rng.Int64N(int64(2*time.Second))), p.prefix+"in/"+name+"/s", qos, false, entries...)
	}
}

// labelled plans a label for an earlier sample.
func (p *plan) labelled(at time.Duration, id, label string) {
	topic, models := p.prefix+"labels", p.all()
	if p.rng.IntN(2) == 0 {
		models = []string{p.models[p.rng.IntN(len(p.models))].name}
		topic = "edge/" + p.name + "/" + models[0] + "/label"
	}
	p.add(at, topic, 1, false, entry{models: models, id: id, label: label})
}

// request plans a request.
func (p *plan) request(at time.Duration) {
	m := p.models[p.rng.IntN(len(p.models))].name
	verb := pick(p.rng, "class_add", "class_remove", "learning", "checkpoint", "ping")
	e := entry{models: []string{m}, verb: verb}
	var payload string
	topic := "edge/" + p.name + "/request/" + verb + "/" + m
	switch verb {
	case "class_add", "class_remove":
		e.name = pick(p.rng, "x", "y")
		payload = fmt.Sprintf(`{"data":{"class":%q}}`, e.name)
	case "learning":
		if p.last {
			return
		}
		e.name = pick(p.rng, "ON", "OFF")
		payload = e.name
	case "ping":
		topic = "edge/" + p.name + "/request/ping"
	}
	p.messages = append(p.messages, planned{at, publication{topic: topic, payload: []byte(payload), qos: 1, meaning: &meaning{[]entry{e}}}})
}

// add plans a message.
func (p *plan) add(at time.Duration, topic string, qos byte, retained bool, entries ...entry) {
	var parts []string
	for _, e := range entries {
		var fields []string
		if e.id != "" {
			fields = append(fields, `"id":`+strconv.Quote(e.id))
		}
		if e.x != nil {
			fields = append(fields, fmt.Sprintf(`"features":[%v,%v]`, e.x[0], e.x[1]))
		}
		if e.label != "" {
			fields = append(fields, `"label":`+strconv.Quote(e.label))
		}
		parts = append(parts, "{"+strings.Join(fields, ",")+"}")
	}
	payload := parts[0]
	if len(parts) > 1 {
		payload = `{"batch":[` + strings.Join(parts, ",") + "]}"
	}
	p.messages = append(p.messages, planned{at, publication{topic: topic, payload: []byte(payload), qos: qos, retained: retained, meaning: &meaning{entries}}})
}

// planFaults plans n faults.
func (p *plan) planFaults(n int) {
	for range n {
		p.faults = append(p.faults, fault{
			at:   time.Duration(p.rng.Int64N(int64(p.length))),
			what: pick(p.rng, faults...),
			long: time.Duration(p.rng.Int64N(int64(8 * time.Second))),
		})
	}
}

// planFault plans a fault in about one seed of n. It has its own random numbers, so
// that it does not change the rest of the plan.
func (p *plan) planFault(w *world, what string, n int) {
	if rng := w.random(what); rng.IntN(n) == 0 {
		p.faults = append(p.faults, fault{
			at: time.Duration(rng.Int64N(int64(p.length))), what: what, long: time.Duration(rng.Int64N(int64(8 * time.Second))),
		})
	}
}
