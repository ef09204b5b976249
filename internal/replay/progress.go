package replay

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/stream"
)

// progress is how far daemons are with a replayed stream, by their messages. By it the player
// holds rows back: a broker keeps a limited number of messages for a client that is
// behind (mosquitto 1000) and drops the rest silently.
type progress struct {
	base    string // topic of all nodes
	prefix  string // of the ids of the rows
	changed chan struct{}
	scores  *publishedScores // of the predictions; nil for no scores
	order   []string         // names of the features that are sent in their order alone; nil: none are

	messages int // of a label: two where it follows its row

	mu    sync.Mutex
	nodes map[string]*nodeState
	last  int            // highest row that was predicted
	rows  map[string]int // numbers of samples whose ids are those of a stage; nil: ids have the number of their row
	ids   []string       // of the latest of them, a ring buffer
	open  []labelQuery   // not answered yet, oldest first

	learners map[modelKey]*learnerState
	labels   int // sent
}

// learnerState is the progress of a model's learning. mosquitto 2.0 sends more than
// its window while acknowledgements wait for a slow disk, so predictions alone do not
// show how many messages it still keeps.
type learnerState struct {
	first   uint64    // samples learnt at the first prediction
	version uint64    // samples learnt
	behind  int       // labels sent and not learnt
	since   time.Time // of that version
}

const (
	maxBehind   = 500                    // messages of labels sent and not learnt: half the number that mosquitto keeps
	idleLearner = 500 * time.Millisecond // without learning, after which the sent labels count as learnt or refused
)

// labelQuery is a query for the label of a row.
type labelQuery struct {
	of    modelKey
	row   int
	topic string // of the answer
}

// nodeState is the published state of a node. A node publishes that it is online,
// subscribes, and publishes its info.
type nodeState struct {
	online, onlineKept bool // Kept: the message was retained
	info, infoKept     bool
	reordered          string // describes a model whose features are those of progress.order in another one
}

// ready reports whether the node is connected and subscribed.
func (n *nodeState) ready() bool { return n.online && (n.info || n.infoKept && n.onlineKept) }

func newProgress(base, prefix string, scores *publishedScores) *progress {
	return &progress{base: base, prefix: prefix, scores: scores, changed: make(chan struct{}, 1), messages: 1, nodes: map[string]*nodeState{}, learners: map[modelKey]*learnerState{}}
}

// topics returns the filters of the messages that receive handles. Some brokers, as RabbitMQ, send what
// they keep to whole topics alone: those of node, if it is not "".
func (p *progress) topics(node string) []string {
	all := []string{p.base + "/+/state", p.base + "/+/info", p.base + "/+/+/prediction/#"}
	if node != "" {
		all = append(all, p.base+"/"+node+"/state", p.base+"/"+node+"/info")
	}
	if p.scores != nil {
		all = append(all, p.base+"/+/event", p.base+"/+/+/query", p.base+"/+/+/metrics")
	}
	return all
}

// reconnected discards the states of an earlier connection.
func (p *progress) reconnected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.nodes)
}

// receive handles a message on one of the topics.
func (p *progress) receive(topic string, payload []byte, retained bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch levels := strings.Split(strings.TrimPrefix(topic, p.base+"/"), "/"); {
	case len(levels) == 2:
		p.ofNode(levels[0], levels[1], payload, retained)
	case len(levels) > 2:
		p.ofModel(modelKey{levels[0], levels[1]}, levels[2], payload)
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// ofNode handles a message about a node.
func (p *progress) ofNode(name, what string, payload []byte, retained bool) {
	node := p.nodes[name]
	if node == nil {
		node = &nodeState{}
		p.nodes[name] = node
	}
	switch what {
	case "state":
		node.online, node.onlineKept = string(payload) == "online", retained
		if !retained {
			node.info, node.infoKept = false, false
		}
	case "info":
		node.reordered = p.reordered(name, payload)
		if retained {
			node.infoKept = true
		} else {
			node.info = true
		}
	case "event":
		if e := gjson.ParseBytes(payload); e.Get("event").Str == online.NoticeDrift {
			p.scores.drifted(modelKey{name, e.Get("model").Str}, e.Get("detail").Str)
		}
	}
}

// reordered describes a model in the info of a node whose features have the names of those that are sent, in
// another order; "" without one.
func (p *progress) reordered(node string, payload []byte) string {
	var info stream.InfoPayload
	_ = json.Unmarshal(payload, &info) // as far as it is one
	other := func(name string) bool { return !slices.Contains(p.order, name) }
	for _, m := range info.Models {
		if len(m.Features) == len(p.order) && !slices.Equal(m.Features, p.order) && !slices.ContainsFunc(m.Features, other) {
			return terminal.Plain("model " + m.Name + " of node " + node + " has the features of the file in another order, and the values of a row come without names: --format named sends these as well, and -c edge.yaml the order of the stream")
		}
	}
	return ""
}

// ofModel handles a message of a model.
func (p *progress) ofModel(of modelKey, what string, payload []byte) {
	switch what {
	case "query":
		p.queried(of, payload)
	case "metrics": // those of before may be kept
		if m := p.learners[of]; m != nil {
			m.version = max(m.version, gjson.GetBytes(payload, "version").Uint())
		}
	default:
		p.predicted(of, payload)
	}
}

// queried keeps a query for the label of a row.
func (p *progress) queried(of modelKey, payload []byte) {
	q := gjson.ParseBytes(payload)
	row, ok := p.rowOf(q.Get("id").Str)
	device := q.Get("device").Str
	if !ok || strings.ContainsAny(device, "+#\x00") {
		return
	}
	topic := strings.Join([]string{p.base, of.node, of.model, "label"}, "/")
	if device != "" {
		topic += "/" + device
	}
	p.open = append(report.KeepLast(p.open, keptRows-1), labelQuery{of, row, topic})
}

// predicted notes and judges a prediction, if it is of a row.
func (p *progress) predicted(of modelKey, payload []byte) {
	answer, err := stream.ReadPrediction(payload)
	if err != nil {
		return
	}
	id, _ := answer.ID.(string)
	row, ok := p.rowOf(id)
	if !ok {
		return
	}
	if p.scores != nil {
		p.scores.predicted(of, row, answer)
	}
	p.learnt(of, answer.Version)
	p.last = max(p.last, row)
}

// state returns whether a node is ready, and the highest predicted row. why describes a model of such a node that
// would take the values of a row for those of other features, or what is missing while no node is ready.
func (p *progress) state() (ready bool, last int, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	missing := "no daemon is online"
	for _, n := range p.nodes {
		switch {
		case n.ready():
			ready, why = true, cmp.Or(why, n.reordered)
		case n.online:
			missing = "no info has come (does the broker drop messages of its size?) of the daemon that is online"
		}
	}
	if !ready {
		why = missing
	}
	return ready, p.last, why
}

// learnt records the number of samples that a model has learnt.
func (p *progress) learnt(model modelKey, version uint64) {
	m := p.learners[model]
	switch now := time.Now(); {
	case m == nil:
		p.learners[model] = &learnerState{first: version, version: version, since: now}
	case version < m.version: // it was reset
		*m = learnerState{first: version, version: version, since: now}
	case version > m.version:
		m.behind = max(m.behind-int(version-m.version), 0)
		m.version, m.since = version, now
	}
}

// labelSent records that a label was sent, with its row or after it.
func (p *progress) labelSent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.labels++
	for _, m := range p.learners {
		m.behind++
	}
}

// idle returns the number of labels that were sent, and the models that have learnt none since
// their first prediction, sorted.
func (p *progress) idle() (labels int, models []*modelKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for model, m := range p.learners {
		if m.version == m.first {
			models = append(models, &model) // sorts of pointers share their code
		}
	}
	slices.SortStableFunc(models, func(a, b *modelKey) int {
		return cmp.Or(strings.Compare(a.node, b.node), strings.Compare(a.model, b.model))
	})
	return p.labels, models
}

// behind reports whether a model has yet to learn half the number of messages that a
// broker keeps. Rows then continue slowly, because their predictions carry the
// progress. A model that does not learn, because it knows or refuses the labels, is
// not behind.
func (p *progress) behind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.learners {
		if m.behind*p.messages <= maxBehind {
			continue
		}
		if time.Since(m.since) < idleLearner {
			return true
		}
		m.behind = 0
	}
	return false
}

// rowOf returns the row of an id.
func (p *progress) rowOf(id string) (row int, ok bool) {
	if p.rows != nil {
		row, ok = p.rows[id]
		return row, ok
	}
	number, ok := strings.CutPrefix(id, p.prefix+"-")
	row, err := strconv.Atoi(number)
	return row, ok && err == nil
}

// expect records the id of a sample before the row is sent that completes it. Numbers
// rise from 1.
func (p *progress) expect(id string, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows == nil {
		p.rows, p.ids = map[string]int{}, make([]string, keptRows)
	}
	at := &p.ids[number%keptRows]
	if p.rows[*at] == number-keptRows {
		delete(p.rows, *at)
	}
	*at, p.rows[id] = id, number
}

// idOf returns the id of a sample that expect recorded recently.
func (p *progress) idOf(number int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[number%keptRows]
}

// newQueries returns and counts the queries since its last call. The report therefore
// has the queries that could be answered, and none after the last answer.
func (p *progress) newQueries() []labelQuery {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.open
	p.open = nil
	for _, q := range open {
		p.scores.asked(q.of)
	}
	return open
}
