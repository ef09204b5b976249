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

	"github.com/tidwall/gjson"

	"edge/model"
	"edge/online"
	"edge/online/active"
	core "edge/online/fleet"
	"edge/stream/fleet"
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
	role     fleet.Role // "": in no fleet
	journal  *fakeJournal
	backup   *fakeJournal
	node     *Node
	loop     *online.Loop
	conn     *fakeOrigin
	lose     func() // ends the connection
	end      func(orderly bool)
	sent     int
	messages uint16
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

func (s *fleetSim) add(name string, role fleet.Role) *simNode {
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
	m.Fleet = fleet.Default()
	m.Fleet.Basis = cmp.Or(n.in.basis, m.Fleet.Basis)
	m.Fleet.Concept, m.Fleet.Role, m.Fleet.Every, m.Fleet.MergeEvery = "c", n.role, 30, time.Minute
	if n.role == "" {
		m.Fleet.Concept = ""
	}
	m.Follow = func(member string, set *core.Set) (*model.Posterior, *core.Merge, error) {
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
	work.Go(func() { n.node.committer.run(working) })
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
	if n.conn == nil {
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
		m, err := core.DecodeMerge(r.State)
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

// TestFleetSimulation lets devices crash, lose their connection, come back with an old
// backup, and the broker forget its retained messages, at random. When it is over, each
// has merged what the broker keeps, and the state of each is that of its journal.
//
// Long: one history and its checks.
func TestFleetSimulation(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		in(fmt.Sprint(seed), t, func(t *testing.T) {
			s := newFleetSim(t, seed)
			for i := range 2 + int(seed)%3 {
				s.add(fmt.Sprint("n", i), fleet.RoleMember)
			}
			follower := s.add("f", fleet.RoleFollower)
			members := s.nodes[:len(s.nodes)-1]
			crashes := 0
			s.pass(12*time.Minute, func() {
				for _, n := range members {
					n.learn("a", "b")
				}
				n := members[s.rng.IntN(len(members))]
				if s.trouble(n) {
					crashes++
				}
			})
			s.connect()
			s.pass(5*time.Minute, nil)
			if crashes == 0 {
				t.Error("nothing crashes")
			}
			versions := map[string]string{}
			for _, n := range members {
				c, err := core.Decode(s.kept["edge/fleet/c/"+n.name])
				if err != nil {
					t.Fatalf("the broker keeps nothing of %s: %v", n.name, err)
				}
				if n.loop.Status().Learned-c.N >= 30 {
					t.Errorf("%s has learnt %d labels, the broker keeps %d", n.name, n.loop.Status().Learned, c.N)
				}
				versions[n.name] = fmt.Sprint(n.name, c.Epoch, ".", c.Sequence)
			}
			for _, n := range members {
				others := maps.Clone(versions)
				delete(others, n.name)
				equal(t, n.name+" has merged", n.merged(), slices.Sorted(maps.Values(others)))
				n.end(true)
				replayed, _ := n.recover()
				if got, want := replayed.Digest(), n.loop.Learner().Digest(); got != want {
					t.Errorf("%s: the digest of its journal is %s, its own %s", n.name, got, want)
				}
			}
			if v, _ := follower.node.Fleet("bearing"); len(v.Members) != len(members) || v.State != fleet.Follower {
				t.Errorf("the follower knows %+v", v)
			}
			if _, records := follower.journal.committed(); records > 0 {
				t.Errorf("the journal of a follower has %d records", records)
			}
			follower.end(true)
		})
	}
}

// A prediction has the fleet's answer beside the model's, an event reports a class that it
// hardly knows, and requests describe and change the fleet. A follower answers without a
// label of its own.
func TestFleetAnswers(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		one, two, follower := s.add("one", fleet.RoleMember), s.add("two", fleet.RoleMember), s.add("three", fleet.RoleFollower)
		s.pass(6*time.Minute, func() {
			one.learn("a", "b")
			two.learn("a", "b", "c")
			follower.learn("a")
		})
		s.pass(90*time.Second, nil)
		one.send(0, 2, "")
		follower.send(0, 2, "")
		s.pass(2*time.Second, nil)
		if got := gjson.Get(one.answer, "fleet"); got.Get("class").Str != "c" || got.Get("members").Int() != 1 {
			t.Errorf("the prediction is %s", one.answer)
		}
		if !slices.ContainsFunc(one.events, func(e string) bool { return strings.HasPrefix(e, "foreign_class c: ") }) {
			t.Errorf("the events are %q; %s", one.events, one.answer)
		}
		if got := gjson.Get(follower.answer, "class").Str; got != "c" {
			t.Errorf("the follower answers %s", follower.answer)
		}
		if st := follower.node.Stats().Models["bearing"]; st.Learned > 0 || st.Frozen == 0 || st.Learning {
			t.Errorf("the follower's counters are %+v", st)
		}
		v, ok := one.node.Fleet("bearing")
		if !ok || v.State != fleet.Joined || v.Weight <= 0 || len(v.Members) != 1 || !v.Members[0].Taken || !v.Kept {
			t.Errorf("the view is %+v", v)
		}
		if _, ok := one.node.Fleet("other"); ok || !strings.Contains(fmt.Sprint(one.node.forgetMember("other", "two")), "no fleet.concept") {
			t.Error("a model that does not exist is in a fleet")
		}

		one.request("reset/bearing", "")
		s.pass(3*time.Second, nil)
		if v, _ := one.node.Fleet("bearing"); v.State != fleet.Newcomer || v.MergeAge == nil || *v.MergeAge > 3 {
			t.Errorf("after a reset the view is %+v", v)
		}
		one.request("fleet", "")
		one.request("fleet_forget", `{"data":{"member":"A b"}}`)
		s.pass(time.Second, nil)
		if got := one.responses; gjson.Get(got["fleet"], "data.members.0.name").Str != "two" || gjson.Get(got["fleet_forget"], "status").Str != "error" {
			t.Errorf("the responses are %q", got)
		}

		if one.node.forgetMember("bearing", "one") == nil || one.node.forgetMember("bearing", fleet.BasisName) == nil {
			t.Error("a node forgets itself, or the common basis as a member")
		}
		if err := one.node.forgetMember("bearing", "two"); err != nil {
			t.Error(err)
		}
		two.end(false)
		s.pass(2*time.Minute, nil)
		if s.kept["edge/fleet/c/two"] != nil || len(one.merged()) > 0 {
			t.Errorf("the broker keeps %d bytes, the merge has %q", len(s.kept["edge/fleet/c/two"]), one.merged())
		}
		one.end(true)
		follower.end(true)
	})
}

// A reload goes on with what the former node knew; one that leaves the fleet removes the
// node's message.
func TestFleetHandover(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		one, two := s.add("one", fleet.RoleMember), s.add("two", fleet.RoleMember)
		s.pass(2*time.Minute, func() {
			one.learn("a", "b")
			two.learn("a", "b")
		})
		before, _ := one.node.Fleet("bearing")
		cfg, m := testConfig()
		m.Model, m.Batch = one.loop, simLearner().Batch
		m.Fleet = one.node.models[0].Fleet
		m.Fleet.Every = 1000
		cfg.Node = "one"
		again := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: one.journal, After: one.node})
		m.Fleet.Concept = ""
		one.end(false)
		again.Inherit()
		after, _ := again.Fleet("bearing")
		if after.Epoch != before.Epoch || after.Sequence != before.Sequence || len(after.Members) != 1 || after.Merges != before.Merges {
			t.Errorf("after a reload the view is %+v, before %+v", after, before)
		}
		for _, p := range drainOutbox(again.outbox) {
			if p.Topic == "edge/fleet/c/one" && len(p.Payload) == 0 {
				t.Error("a reload removes the contribution")
			}
		}
		alone := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: one.journal, After: again})
		alone.Inherit()
		removed := slices.ContainsFunc(drainOutbox(alone.outbox), func(p *mqtt.Publication) bool {
			return p.Topic == "edge/fleet/c/one" && len(p.Payload) == 0 && p.Retained
		})
		if !removed {
			t.Error("the contribution stays at the broker")
		}
		for _, role := range []fleet.Role{fleet.RoleFollower, fleet.RoleMember} {
			m.Fleet.Concept, m.Fleet.Role = "c", role
			alone = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: one.journal, After: alone})
			alone.Inherit()
			if got := alone.models[0].learning.Load(); got != (role == fleet.RoleMember) || got == alone.models[0].expectedOff() {
				t.Errorf("a %s learns: %t", role, got)
			}
		}
		two.end(true)
	})
}

// Configurations that are refused.
func TestFleetConfig(t *testing.T) {
	for want, change := range map[string]func(*Config, *ModelConfig, *ModelConfig){
		"node fleet: want":                    func(c *Config, _, _ *ModelConfig) { c.Node = "fleet" },
		"model bearing has it as well":        func(_ *Config, a, b *ModelConfig) { a.Fleet.Concept, b.Fleet.Concept = "c", "c" },
		"models.bearing.fleet.information -1": func(_ *Config, a, _ *ModelConfig) { a.Fleet.Concept, a.Fleet.Information = "c", -1 },
		"models.bearing.fleet.every 0: want":  func(_ *Config, a, _ *ModelConfig) { a.Fleet.Concept, a.Fleet.Every = "c", 0 },
		"would receive the node's own output": func(c *Config, a, _ *ModelConfig) { a.Fleet.Concept = "c"; subscribe(c, "edge/fleet/c/+") },
		"models.bearing.active: a follower": func(_ *Config, a, _ *ModelConfig) {
			a.Fleet.Concept, a.Fleet.Role, a.Active = "c", "follower", active.Default()
			a.Active.Strategy = "margin"
		},
		"fleet.basis common: want own or shared": func(_ *Config, a, _ *ModelConfig) { a.Fleet.Concept, a.Fleet.Basis = "c", "common" },
		"node basis: want another name":          func(c *Config, a, _ *ModelConfig) { c.Node, a.Fleet.Concept = "basis", "c" },
	} {
		cfg, a := testConfig()
		a.Fleet = fleet.Default()
		b := a
		b.Name = "other"
		change(&cfg, &a, &b)
		if err := Check(cfg, []ModelConfig{a, b}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func subscribe(c *Config, topic string) {
	s := c.Streams["vibration"]
	s.Topics, s.TopicTemplate = []string{topic}, ""
	c.Streams["vibration"] = s
}
