package membership

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
	"edge/test/fleettest"
)

// contribution returns a small contribution with n labels, of a basis with m inducing
// points.
func contribution(t testing.TB, member string, n uint64, m int) *fleet.Contribution {
	t.Helper()
	return fleettest.Contribution(t, fleet.Header{Member: member, Features: 7, N: n, Classes: []string{"a", "b"}, Counts: []uint64{n, 0}}, m)
}

// world is a broker with its clients, and a clock.
type world struct {
	t     *testing.T
	now   time.Time
	kept  map[string]string
	limit int                              // bytes of a message, above which the broker drops it without a word
	keeps int                              // bytes of a message, above which the broker passes it on and does not keep it; 0: it keeps all
	plain bool                             // the broker does not mark the messages that it has kept
	lost  func(n *node, topic string) bool // the broker does not send a message; nil: it sends all
	nodes []*node
}

// node is a Member with a model that counts labels.
type node struct {
	*Member
	in        *world
	online    bool
	labels    uint64
	nats      float64
	size      int // inducing points
	published int
	birth     fleet.Birth // of the model's common basis
	announced int
	asked     []string // filters
	open      []string // those of which the subscription lasts
	vain      bool     // the model has nothing to propose
	merges    []string // the members of each
	events    []string
	slow      *slowLink // nil: messages take no time
}

func newWorld(t *testing.T) *world { return &world{t: t, now: time.Now(), kept: map[string]string{}} }

// start adds a node whose state file knows an epoch.
func (w *world) start(name string, epoch uint64, change func(*Config)) *node {
	cfg := Default()
	cfg.Concept = "c"
	change(&cfg)
	n := &node{in: w, size: 2}
	n.Member = New(cfg, Identity{Base: "edge", Node: name, Instance: rand.Uint64(), Epoch: epoch}, func(kind, detail string) { n.events = append(n.events, kind+" "+detail) })
	w.nodes = append(w.nodes, n)
	n.connect()
	return n
}

func plain(*Config) {}

// connect begins a connection: the broker sends its retained messages.
func (n *node) connect() {
	n.online = true
	n.Connected(n.in.now)
	n.retained("+")
	if n.parted {
		n.retained("+/+")
	}
}

// retained delivers the retained messages of a filter below the fleet's topic.
func (n *node) retained(filter string) {
	for _, topic := range slices.Sorted(maps.Keys(n.in.kept)) {
		rest := strings.TrimPrefix(topic, "edge/fleet/c/")
		if match, _ := path.Match(strings.ReplaceAll(filter, "+", "*"), rest); (match || filter == "#") && !n.in.loses(n, topic) {
			n.receive(topic, []byte(n.in.kept[topic]), !n.in.plain)
		}
	}
}

func (w *world) loses(n *node, topic string) bool { return w.lost != nil && w.lost(n, topic) }

func (n *node) disconnect() (withdraw bool) {
	n.online = false
	return n.Disconnected(n.in.now)
}

// publish delivers a retained message.
func (w *world) publish(p Publication) {
	if w.limit > 0 && len(p.Payload) > w.limit {
		return
	}
	if w.keeps == 0 || len(p.Payload) <= w.keeps {
		w.kept[p.Topic] = string(p.Payload)
	}
	if len(p.Payload) == 0 {
		delete(w.kept, p.Topic)
	}
	for _, n := range w.nodes {
		if n.online && !w.loses(n, p.Topic) {
			n.receive(p.Topic, p.Payload, false)
		}
	}
}

// pass lets time pass, second by second.
func (w *world) pass(d time.Duration) {
	for range d / time.Second {
		w.now = w.now.Add(time.Second)
		for _, n := range w.nodes {
			n.carry()
			n.step()
		}
	}
}

func (n *node) step() {
	todo := n.Step(n.in.now, Learnt{Labels: n.labels, Nats: n.nats, Ready: n.labels > 0})
	n.open = slices.DeleteFunc(n.open, func(f string) bool { return slices.Contains(todo.Enough, f) })
	for _, filter := range todo.Ask {
		if slices.Contains(n.open, filter) {
			n.in.t.Errorf("%s is asked for, and the subscription lasts: the client sends no request", filter)
		}
		n.retained(strings.TrimPrefix(filter, "edge/fleet/c/"))
	}
	n.asked, n.open = append(n.asked, todo.Ask...), append(n.open, todo.Ask...)
	if todo.Epoch > 0 {
		n.EpochDurable(todo.Epoch)
	}
	if todo.Publish {
		n.published++
		c := contribution(n.in.t, n.Name(), n.labels, n.size)
		c.BasisEpoch = n.birth.ID()
		all, err := n.Publish(n.in.now, c)
		if err != nil {
			n.in.t.Fatal(err)
		}
		n.send(all)
	}
	if todo.Merge != nil {
		sum := &fleet.Merge{}
		var names []string
		for _, c := range todo.Merge.Members() {
			sum.Members = append(sum.Members, fleet.Member{Name: c.Member, Version: c.Version, N: c.N})
			names = append(names, fmt.Sprint(c.Member, c.N))
		}
		n.merges = append(n.merges, strings.Join(names, " "))
		n.share(todo.Merge, sum)
		n.Merged(n.in.now, sum)
	}
	if len(todo.Announce) > 0 {
		n.announced++
	}
	n.send(todo.Announce)
}

// share does to the basis of the model what a learner does.
func (n *node) share(set *fleet.Set, sum *fleet.Merge) {
	if n.Config().Basis != BasisShared {
		return
	}
	common := set.Common()
	announce := func(b fleet.Birth) {
		n.birth = b
		c := contribution(n.in.t, n.Name(), n.labels, n.size)
		sum.Announce = &fleet.Common{Birth: b, Features: c.Features, Classes: c.Classes, Counts: c.Counts, Basis: c.Basis}
	}
	sum.Sharing = &fleet.Sharing{Members: 1}
	switch ready := n.labels > 0; {
	case ready && set.Rebase != "":
		announce(fleet.Birth{Number: max(n.birth.Number, common.Number) + 1, Author: n.Name(), Tag: set.Tag})
	case n.vain:
	case ready && common == nil && set.Vacant:
		if n.birth.Number == 0 {
			n.birth = fleet.Birth{Number: 1, Author: n.Name(), Tag: set.Tag}
		}
		announce(n.birth)
	case common != nil && n.birth.Before(common.Birth):
		if sum.Unfit = common.Unfit(contribution(n.in.t, n.Name(), n.labels, n.size)); sum.Unfit == fleet.None {
			n.birth, sum.Sharing.Start = common.Birth, common
		}
	}
	sum.Sharing.Birth, sum.Sharing.Settled = n.birth, set.Settled
}

// happened returns the kinds of the events, without fleet_member.
func (n *node) happened() (kinds []string) {
	for _, e := range n.events {
		if kind, _, _ := strings.Cut(e, " "); kind != "fleet_member" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
