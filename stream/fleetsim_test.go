package stream

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edge/model"
	"edge/online"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// fleetSim is several nodes with learners of their own at one broker, in virtual time.
type fleetSim struct {
	t     *testing.T
	rng   *rand.Rand
	kept  map[string][]byte // retained messages
	nodes []*simNode
	basis string // fleet.basis; "": the default
}

// simNode is a device. Its journal survives crashes.
type simNode struct {
	in       *fleetSim
	name     string
	role     membership.Role // "": in no fleet
	journal  *fakeJournal
	backup   *fakeJournal
	node     *Node
	loop     *online.Loop
	conn     *fakeOrigin
	lose     func() // ends the connection
	end      func(orderly bool)
	sent     int
	messages uint16
	slow     bool       // nothing that it publishes arrives
	mu       sync.Mutex // guards events
	events   []string
	answer   string // the newest prediction

	responses map[string]string // by command
}

func simLearner() online.Config {
	cfg := online.DefaultConfig()
	cfg.Inducing, cfg.Window, cfg.Warmup, cfg.Batch = 8, 60, 40, online.Batch{MaxSize: 16}
	cfg.Horizons = cfg.Horizons[:2]
	cfg.Features, cfg.Experts.Forest = []string{"x", "y"}, online.NoForest
	return cfg
}

// newFleetSim returns a fleet without nodes, whose accidents are those of a seed.
func newFleetSim(t *testing.T, seed uint64) *fleetSim {
	return &fleetSim{t: t, rng: rand.New(rand.NewPCG(seed, 3)), kept: map[string][]byte{}}
}

func (s *fleetSim) add(name string, role membership.Role) *simNode {
	n := &simNode{in: s, name: name, role: role, journal: newFakeJournal(), responses: map[string]string{}}
	s.nodes = append(s.nodes, n)
	n.start()
	return n
}

// clone returns a copy, a backup.
func (j *fakeJournal) clone() *fakeJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &fakeJournal{
		commits: slices.Clone(j.commits), seqs: maps.Clone(j.seqs), keys: maps.Clone(j.keys),
		pending: maps.Clone(j.pending), marks: maps.Clone(j.marks), entered: make(chan struct{}, 1),
	}
}

// records returns all records.
func (j *fakeJournal) records() (all []online.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.commits {
		all = append(all, c.Records...)
	}
	return all
}

// recover returns the learner of the journal.
func (n *simNode) recover() (*online.Learner, uint64) {
	records := n.journal.records()
	l, _, err := online.Replay(func() (*online.Learner, error) { return online.NewLearner(n.in.learner()) }, records)
	if err != nil {
		n.in.t.Fatal(err)
	}
	return l, uint64(len(records))
}

// start starts the node as its journal says.
func (n *simNode) start() {
	cfg, m := testConfig()
	learner, seq := n.recover()
	n.loop = online.NewLoop(learner, online.LoopOptions{Model: "bearing", Seq: seq, Queue: 4, Notify: func(notice online.Notice) { n.node.Notify(notice) }})
	cfg.Control.Enabled = true
	cfg.Node, m.Model, m.Batch, m.Classes, m.Mark = n.name, n.loop, simLearner().Batch, simLearner().Classes, n.journal.mark("bearing")
	m.Fleet = membership.Default()
	m.Fleet.Basis = cmp.Or(n.in.basis, m.Fleet.Basis)
	m.Fleet.Concept, m.Fleet.Role, m.Fleet.Every, m.Fleet.MergeEvery = "c", n.role, 30, time.Minute
	if n.role == "" {
		m.Fleet.Concept = ""
	}
	m.Follow = func(member string, set *fleet.Set) (*model.Posterior, *fleet.Merge, error) {
		return online.Follow(simLearner(), member, set)
	}
	n.node = newTestNode(n.in.t, cfg, Deps{Models: []ModelConfig{m}, Journal: n.journal, OnEvent: func(e Event) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.events = append(n.events, e.Kind+" "+e.Detail)
	}})
	learning, stopLearning := context.WithCancel(context.Background())
	working, abandon := context.WithCancel(context.Background())
	stop := make(chan struct{})
	var work, rest, following sync.WaitGroup
	inFleet, leave := context.WithCancel(working)
	work.Go(func() { n.node.worker.run(working, stop) })
	work.Go(func() { n.node.committer.run(working, working) })
	following.Go(func() { n.node.fleets.run(inFleet) })
	rest.Go(func() { n.loop.Run(learning) })
	n.end = func(orderly bool) {
		if leave(); orderly {
			following.Wait()
			n.node.fleets.leave(working)
			close(stop)
			work.Wait()
			n.loop.Idle(working)
			n.node.fleets.final(working, working)
			n.exchange()
		}
		n.disconnect()
		abandon()
		work.Wait()
		following.Wait()
		stopLearning()
		rest.Wait()
	}
	n.connect()
}

// connect begins a connection: the broker sends its retained messages.
func (n *simNode) connect() {
	if n.conn == nil {
		n.conn = newFakeOrigin()
		n.conn.settle(mqtt.Cursor{Fresh: true})
		n.lose = n.node.fleets.serve(n.conn)
		for _, topic := range slices.Sorted(maps.Keys(n.in.kept)) {
			n.deliver(topic, n.in.kept[topic], true)
		}
	}
}

func (n *simNode) disconnect() {
	if n.conn != nil {
		n.lose()
		close(n.conn.lost)
		n.conn = nil
	}
}

func (n *simNode) deliver(topic string, payload []byte, retained bool) {
	if n.conn == nil || n.role == "" || !strings.HasPrefix(topic, "edge/fleet/") {
		return
	}
	n.node.fleets.aside()(&mqtt.Message{Topic: topic, Payload: slices.Clone(payload), Retained: retained, From: n.conn})
}

// exchange carries what a node has published to the broker, and on.
func (n *simNode) exchange() {
	if n.conn == nil || n.slow {
		return
	}
	for _, p := range drainOutbox(n.node.outbox) {
		if p.Topic == "edge/"+n.name+"/bearing/prediction/d" {
			n.answer = string(p.Payload)
		}
		if command, ok := strings.CutPrefix(p.Topic, "edge/"+n.name+"/response/"); ok {
			n.responses[command] = string(p.Payload)
		}
		if !p.Retained {
			continue
		}
		if n.in.kept[p.Topic] = p.Payload; len(p.Payload) == 0 {
			delete(n.in.kept, p.Topic)
		}
		for _, other := range n.in.nodes {
			other.deliver(p.Topic, p.Payload, false)
		}
		n.deliver(p.Topic, p.Payload, true) // it asks whether the broker keeps it
	}
}

// send lets the node receive a sample, with or without its label.
func (n *simNode) send(x, y float64, label string) {
	if n.conn == nil {
		return
	}
	n.sent++
	n.messages++
	payload := fmt.Sprintf(`{"features":[%v,%v],"label":%q}`, x, y, label)
	if label == "" {
		payload = fmt.Sprintf(`{"features":[%v,%v]}`, x, y)
	}
	n.node.ring.Push(&mqtt.Message{Topic: "factory/d/vibration", Payload: []byte(payload), QoS: 1, ID: n.messages, From: n.conn, Arrived: time.Now(), Ack: n.conn.write}, nil)
}

// request sends a request.
func (n *simNode) request(what, payload string) {
	n.messages++
	n.node.ring.Push(&mqtt.Message{Topic: "edge/" + n.name + "/request/" + what, Payload: []byte(payload), QoS: 1, ID: n.messages, From: n.conn, Arrived: time.Now(), Ack: n.conn.write}, nil)
}

// learn sends a label of one of these classes, which lie around the origin.
func (n *simNode) learn(classes ...string) {
	k := n.in.rng.IntN(len(classes))
	at := map[string][2]float64{"a": {1, 0}, "b": {-1, 0}, "c": {0, 2}}[classes[k]]
	n.send(at[0]+0.4*n.in.rng.NormFloat64(), at[1]+0.4*n.in.rng.NormFloat64(), classes[k])
}

// pass lets time pass; each second the broker works, and do is called.
func (s *fleetSim) pass(d time.Duration, do func()) {
	for range d / time.Second {
		time.Sleep(time.Second)
		synctest.Wait()
		for _, n := range s.nodes {
			n.exchange()
		}
		if do != nil {
			do()
		}
	}
}

// trouble does to n, or to the connections of all, what goes wrong at times; most times nodes
// connect instead. It reports whether n crashes.
func (s *fleetSim) trouble(n *simNode) (crashes bool) {
	switch s.rng.IntN(60) {
	case 0:
		n.end(s.rng.IntN(3) == 0)
		n.start()
		return true
	case 1:
		n.disconnect()
	case 2:
		n.backup = n.journal.clone()
	case 3:
		if n.backup != nil {
			n.end(false)
			n.journal, n.backup = n.backup, nil
			n.start()
		}
	case 4:
		if s.rng.IntN(3) == 0 {
			clear(s.kept)
			for _, n := range s.nodes {
				n.disconnect()
			}
		}
	default:
		for _, n := range s.nodes {
			if s.rng.IntN(10) == 0 {
				n.connect()
			}
		}
	}
	return false
}

// connect connects all nodes.
func (s *fleetSim) connect() {
	for _, n := range s.nodes {
		n.connect()
	}
}

// merged returns the members in the newest journalled merge.
func (n *simNode) merged() (names []string) {
	for _, r := range n.journal.records() {
		if r.Kind != online.Merge {
			continue
		}
		m, err := fleet.DecodeMerge(r.State)
		if err != nil {
			n.in.t.Fatal(err)
		}
		names = nil
		for _, v := range m.Members {
			names = append(names, fmt.Sprint(v.Name, v.Epoch, ".", v.Sequence))
		}
	}
	return names
}
