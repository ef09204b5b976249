package replay

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/report"
	"edge/online"
	"edge/stream"
)

// follower follows the progress of daemons with a replayed stream, so that the player
// can hold rows back: a broker keeps a limited number of messages for a client that is
// behind (mosquitto 1000) and drops the rest silently.
type follower struct {
	base    string // topic of all nodes
	prefix  string // of the ids of the rows
	changed chan struct{}
	scores  *publishedScores // of the predictions; nil for no scores

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
}

// ready reports whether the node is connected and subscribed.
func (n *nodeState) ready() bool { return n.online && (n.info || n.infoKept && n.onlineKept) }

func newFollower(base, prefix string, scores *publishedScores) *follower {
	return &follower{base: base, prefix: prefix, scores: scores, changed: make(chan struct{}, 1), messages: 1, nodes: map[string]*nodeState{}, learners: map[modelKey]*learnerState{}}
}

// topics returns the filters of the messages that receive handles.
func (f *follower) topics() []string {
	all := []string{f.base + "/+/state", f.base + "/+/info", f.base + "/+/+/prediction/#"}
	if f.scores != nil {
		all = append(all, f.base+"/+/event", f.base+"/+/+/query", f.base+"/+/+/metrics")
	}
	return all
}

// reconnected discards the states of an earlier connection.
func (f *follower) reconnected() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.nodes)
}

// receive handles a message on one of the topics.
func (f *follower) receive(topic string, payload []byte, retained bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	levels := strings.Split(strings.TrimPrefix(topic, f.base+"/"), "/")
	node := f.nodes[levels[0]]
	if node == nil {
		node = &nodeState{}
		f.nodes[levels[0]] = node
	}
	switch {
	case len(levels) == 2 && levels[1] == "state":
		node.online, node.onlineKept = string(payload) == "online", retained
		if !retained {
			node.info, node.infoKept = false, false
		}
	case len(levels) == 2 && levels[1] == "info":
		if retained {
			node.infoKept = true
		} else {
			node.info = true
		}
	case len(levels) == 2 && levels[1] == "event":
		if e := gjson.ParseBytes(payload); e.Get("event").Str == online.NoticeDrift {
			f.scores.drifted(modelKey{levels[0], e.Get("model").Str}, e.Get("detail").Str)
		}
	case len(levels) == 3 && levels[2] == "query":
		q := gjson.ParseBytes(payload)
		row, ok := f.rowOf(q.Get("id").Str)
		device := q.Get("device").Str
		if !ok || strings.ContainsAny(device, "+#\x00") {
			return
		}
		topic := strings.Join([]string{f.base, levels[0], levels[1], "label"}, "/")
		if device != "" {
			topic += "/" + device
		}
		f.open = append(report.KeepLast(f.open, keptRows-1), labelQuery{modelKey{levels[0], levels[1]}, row, topic})
	case len(levels) == 3 && levels[2] == "metrics": // those of before may be kept
		if m := f.learners[modelKey{levels[0], levels[1]}]; m != nil {
			m.version = max(m.version, gjson.GetBytes(payload, "version").Uint())
		}
	case len(levels) >= 3:
		p, err := stream.ReadPrediction(payload)
		if err != nil {
			return
		}
		id, _ := p.ID.(string)
		row, ok := f.rowOf(id)
		if !ok {
			return
		}
		of := modelKey{levels[0], levels[1]}
		if f.scores != nil {
			f.scores.predicted(of, row, p)
		}
		f.learnt(of, p.Version)
		f.last = max(f.last, row)
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// state returns whether a node is ready, and the highest predicted row.
func (f *follower) state() (ready bool, last int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		ready = ready || n.ready()
	}
	return ready, f.last
}

// learnt records the number of samples that a model has learnt.
func (f *follower) learnt(model modelKey, version uint64) {
	m := f.learners[model]
	switch now := time.Now(); {
	case m == nil:
		f.learners[model] = &learnerState{first: version, version: version, since: now}
	case version < m.version: // it was reset
		*m = learnerState{first: version, version: version, since: now}
	case version > m.version:
		m.behind = max(m.behind-int(version-m.version), 0)
		m.version, m.since = version, now
	}
}

// labelSent records that a label was sent, with its row or after it.
func (f *follower) labelSent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels++
	for _, m := range f.learners {
		m.behind++
	}
}

// idle returns the number of labels that were sent, and the models that have learnt none since
// their first prediction, sorted.
func (f *follower) idle() (labels int, models []*modelKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for model, m := range f.learners {
		if m.version == m.first {
			models = append(models, &model) // sorts of pointers share their code
		}
	}
	slices.SortStableFunc(models, func(a, b *modelKey) int {
		return cmp.Or(strings.Compare(a.node, b.node), strings.Compare(a.model, b.model))
	})
	return f.labels, models
}

// behind reports whether a model has yet to learn half the number of messages that a
// broker keeps. Rows then continue slowly, because their predictions carry the
// progress. A model that does not learn, because it knows or refuses the labels, is
// not behind.
func (f *follower) behind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.learners {
		if m.behind*f.messages <= maxBehind {
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
func (f *follower) rowOf(id string) (row int, ok bool) {
	if f.rows != nil {
		row, ok = f.rows[id]
		return row, ok
	}
	number, ok := strings.CutPrefix(id, f.prefix+"-")
	row, err := strconv.Atoi(number)
	return row, ok && err == nil
}

// expect records the id of a sample before the row is sent that completes it. Numbers
// rise from 1.
func (f *follower) expect(id string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows, f.ids = map[string]int{}, make([]string, keptRows)
	}
	at := &f.ids[number%keptRows]
	if f.rows[*at] == number-keptRows {
		delete(f.rows, *at)
	}
	*at, f.rows[id] = id, number
}

// idOf returns the id of a sample that expect recorded recently.
func (f *follower) idOf(number int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[number%keptRows]
}

// newQueries returns and counts the queries since its last call. The report therefore
// has the queries that could be answered, and none after the last answer.
func (f *follower) newQueries() []labelQuery {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := f.open
	f.open = nil
	for _, q := range open {
		f.scores.asked(q.of)
	}
	return open
}
