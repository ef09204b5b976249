package replay

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/stream"
)

// follower watches how far daemons are with a replayed stream, so that it can
// be held back: a broker keeps a limited number of messages for a client that
// is behind (mosquitto 1000) and drops the rest without a word.
type follower struct {
	base    string // topic of all nodes
	prefix  string // of the ids of the rows
	changed chan struct{}
	scores  *publishedScores // of what is heard; nil: none

	mu    sync.Mutex
	nodes map[string]*nodeState
	last  int      // highest row that was predicted
	open  []wanted // not answered yet, oldest first

	learners map[[2]string]*learnerState
}

// learnerState is how far a model is with learning: mosquitto 2.0 sends more than
// its window while acknowledgements wait for a slow disk, so that answers alone do
// not say what it has still to keep.
type learnerState struct {
	version uint64    // samples that it has learnt
	behind  int       // labels that were sent and are not among them
	since   time.Time // of that version
}

const (
	maxBehind   = 500                    // labels that are sent and not learnt: half of what mosquitto keeps
	idleLearner = 500 * time.Millisecond // without learning, after which the labels that were sent teach nothing
)

// wanted is the label of a row.
type wanted struct {
	node, model string // that asks
	row         int
	topic       string // for the answer
}

// nodeState is what a node has said about itself. It subscribes before it
// publishes its info, and after it says that it is online.
type nodeState struct {
	online, onlineKept bool // Kept: the message had been retained
	info, infoKept     bool
}

// ready reports whether the node is connected and subscribed.
func (n *nodeState) ready() bool { return n.online && (n.info || n.infoKept && n.onlineKept) }

func newFollower(base, prefix string, scores *publishedScores) *follower {
	return &follower{base: base, prefix: prefix, scores: scores, changed: make(chan struct{}, 1), nodes: map[string]*nodeState{}, learners: map[[2]string]*learnerState{}}
}

// topics are what to subscribe to.
func (f *follower) topics() []string {
	all := []string{f.base + "/+/state", f.base + "/+/info", f.base + "/+/+/prediction/#"}
	if f.scores != nil {
		all = append(all, f.base+"/+/event", f.base+"/+/+/query")
	}
	return all
}

// reconnected forgets what a broker before may have said.
func (f *follower) reconnected() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.nodes)
}

// hear takes in a message on one of the topics.
func (f *follower) hear(topic string, payload []byte, retained bool) {
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
			f.scores.drifted(levels[0], e.Get("model").Str, e.Get("detail").Str)
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
		f.open = append(keepLast(f.open, keptRows-1), wanted{levels[0], levels[1], row, topic})
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
		if f.scores != nil {
			f.scores.predicted(levels[0], levels[1], row, p)
		}
		f.learnt([2]string{levels[0], levels[1]}, p.Version)
		f.last = max(f.last, row)
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// state returns whether a node is ready, and the highest row that was predicted.
func (f *follower) state() (ready bool, last int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		ready = ready || n.ready()
	}
	return ready, f.last
}

// learnt takes notice of what a model has learnt.
func (f *follower) learnt(model [2]string, version uint64) {
	m := f.learners[model]
	switch now := time.Now(); {
	case m == nil:
		f.learners[model] = &learnerState{version: version, since: now}
	case version < m.version: // it was reset
		*m = learnerState{version: version, behind: 0, since: now}
	case version > m.version:
		m.behind = max(m.behind-int(version-m.version), 0)
		m.version, m.since = version, now
	}
}

// teach notes that a label was sent with its row.
func (f *follower) teach() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.learners {
		m.behind++
	}
}

// behind reports whether a model has still to learn half of what a broker keeps:
// rows should come slowly then, and not stop, because the answers to them say how
// far it is. One that does not learn at all, because it knows the labels or refuses them, is
// not waited for.
func (f *follower) behind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.learners {
		if m.behind <= maxBehind {
			continue
		}
		if time.Since(m.since) < idleLearner {
			return true
		}
		m.behind = 0
	}
	return false
}

// rowOf returns the row that an id stands for.
func (f *follower) rowOf(id string) (row int, ok bool) {
	number, ok := strings.CutPrefix(id, f.prefix+"-")
	row, err := strconv.Atoi(number)
	return row, ok && err == nil
}

// questions returns the questions that have come since it was called last, and
// counts them: the report has those that could be answered, and none that came
// after the last answer.
func (f *follower) questions() []wanted {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := f.open
	f.open = nil
	for _, q := range open {
		f.scores.asked(q.node, q.model)
	}
	return open
}

const boardModels = 64 // that a board remembers, whatever is published

const keptEvents = 40 // of the node

// keepLast drops all but the last n, in place.
func keepLast[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return append(list[:0], list[len(list)-n:]...)
}
