package main

import (
	"strconv"
	"strings"
	"sync"

	"edge/stream"
)

// follower watches how far daemons are with a replayed stream, so that it can
// be held back: a broker keeps a limited number of messages for a client that
// is behind (mosquitto 1000) and drops the rest without a word.
type follower struct {
	base    string // topic of all nodes
	prefix  string // of the ids of the rows
	changed chan struct{}

	mu    sync.Mutex
	nodes map[string]*nodeState
	last  int // highest row that was predicted
}

// nodeState is what a node has said about itself. It subscribes before it
// publishes its info, and after it says that it is online.
type nodeState struct {
	online, onlineKept bool // Kept: the message had been retained
	info, infoKept     bool
}

// ready reports whether the node is connected and subscribed.
func (n *nodeState) ready() bool { return n.online && (n.info || n.infoKept && n.onlineKept) }

func newFollower(base, prefix string) *follower {
	return &follower{base: base, prefix: prefix, changed: make(chan struct{}, 1), nodes: map[string]*nodeState{}}
}

// topics are what to subscribe to.
func (f *follower) topics() []string {
	return []string{f.base + "/+/state", f.base + "/+/info", f.base + "/+/+/prediction/#"}
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
	default:
		row, ok := strings.CutPrefix(stream.PredictionID(payload), f.prefix+"-")
		n, err := strconv.Atoi(row)
		if !ok || err != nil || n <= f.last {
			return
		}
		f.last = n
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
