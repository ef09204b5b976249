package simulation

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
	"edge/online/fleet"
	"edge/stream"
	"edge/stream/membership"
)

const (
	fleetShare = 10 // of so many seeds one simulates a fleet as well
	fleetTopic = "edge/fleet/c/"
	fleetEvery = 5 // labels between publications
)

var fleetTopics = membership.NewTopics("edge", "c")

// fleetFaults are the faults of one member; those of the broker are planned for the first.
var fleetFaults = []string{
	"cut", "stall", "refuse", "refuse", "kill", "kill", "kill before", "kill after", "power", "stop", "slow disk", "broken disk", "reload",
}

// fleetScene is a fleet of all nodes of a scene.
type fleetScene struct {
	*scene
	all   map[string][]*fleet.Contribution // every one that was published, by name and version
	parts *membership.Collector            // what was published last on each topic

	merges, leavers int // for the report
}

// newFleetPlan plans the labels and faults of one member of a fleet.
func newFleetPlan(w *world) *plan {
	rng := w.random("plan")
	often := func(percent int) bool { return rng.IntN(100) < percent }
	p := &plan{
		name: w.name, rng: rng,
		traits: traits{ids: often(50), late: often(30), corrected: often(30), batches: often(30), requests: often(20), repeated: often(30),
			values: pick(rng, "coarse", "fine", "fine")},
		classes: []string{"a", "b"}, pending: stream.DefaultPending(), dedupe: 4096,
		every: pick(rng, 0, time.Second, time.Minute), samples: pick[uint64](rng, 0, 1, 10, 50),
	}
	if w != w.nodes[0] {
		p.prefix = w.name + "/"
	}
	p.configure()
	p.models = p.models[:1]
	m := &p.models[0]
	m.fleet = membership.Default()
	m.fleet.Concept, m.fleet.Every, m.fleet.Interval, m.fleet.MergeEvery = "c", fleetEvery, time.Second, pick(rng, time.Second, 5*time.Second)
	m.fleet.Unseen = pick(rng, online.ReportUnseen, online.MixUnseen)
	m.learner.Fleet, m.learner.Warmup = m.fleet.Learner(), 12
	p.publish(30 + rng.IntN(25))
	for range rng.IntN(3) {
		p.faults = append(p.faults, fault{
			at: time.Duration(rng.Int64N(int64(p.length))), what: pick(rng, fleetFaults...), long: time.Duration(rng.Int64N(int64(8 * time.Second))),
		})
	}
	p.planFault(w, "restored backup", 8)
	p.planFault(w, "impostor", 8)
	p.planFault(w, "missing", 4)
	if w == w.nodes[0] {
		p.planFault(w, "broker restart", 3)
		p.planFault(w, "retained lost", 3)
	}
	return p
}

// simulateFleet runs a fleet of two to eight nodes to its end.
func simulateFleet(t *testing.T, seed uint64, out io.Writer) *fleetScene {
	folder, err := os.MkdirTemp(memory(), "simulation")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	s := &fleetScene{scene: newScene(seed, out), all: map[string][]*fleet.Contribution{}, parts: membership.NewCollector(fleetTopics)}
	s.fleet = s
	first := newWorld(s.scene, nodeID)
	for i := range pick(first.random("size"), 2, 2, 2, 3, 3, 4, 4, 5, 6, 8) - 1 {
		newWorld(s.scene, string(rune('b'+i)))
	}
	synctest.Test(t, func(*testing.T) {
		s.began = time.Now()
		for _, w := range s.nodes {
			w.plan = newFleetPlan(w)
		}
		s.net, s.broker = newNetwork(first), newBroker(first)
		for _, w := range s.nodes {
			w.disk, w.truth, w.unproven = newDisk(w, filepath.Join(folder, w.name+".db")), newTruth(w), &unproven{world: w}
		}
		s.run()
	})
	return s
}

// seen notes a publication of a contribution.
func (s *fleetScene) seen(m publication) {
	name, part, ok := fleetTopics.Read(m.topic)
	if s.parts.Receive(m.topic, m.payload); !ok || part >= 0 || len(m.payload) == 0 {
		return
	}
	c, _, err := s.parts.Contribution(name)
	if err != nil {
		s.fail("on %s: %v", m.topic, err)
		return
	}
	key := versionOf(c.Member, c.Version)
	s.all[key] = append(s.all[key], c)
}

func versionOf(name string, v fleet.Version) string {
	return fmt.Sprint(name, " ", v.Epoch, ".", v.Sequence)
}

// kept returns what the broker keeps of a member, nil for nothing.
func (s *fleetScene) kept(name string) *fleet.Contribution {
	all := membership.NewCollector(fleetTopics)
	for topic, m := range s.broker.retained {
		all.Receive(topic, m.payload)
	}
	c, _, err := all.Contribution(name)
	if err != nil {
		return nil
	}
	return c
}

// impersonate publishes as another process of a member's name does. The caller holds mu.
func (s *fleetScene) impersonate(w *world) {
	c := s.kept(w.name)
	if c == nil {
		return
	}
	c.Instance, c.Sequence = w.random("instance").Uint64(), c.Sequence+3
	data, err := c.AppendBinary(nil)
	if err != nil {
		s.fail("%v", err)
	}
	s.broker.route(publication{topic: fleetTopic + w.name, payload: data, retained: true})
}

// rest waits until each member has merged what the broker keeps of the others. Then a
// member leaves.
func (s *fleetScene) rest() bool {
	return s.await(time.Hour, s.unsettled) && s.leave()
}

// await waits until missing returns "".
func (s *fleetScene) await(long time.Duration, missing func() string) bool {
	what := ""
	for end := time.Since(s.began) + long; time.Since(s.began) < end; {
		if !s.runUntil(time.Since(s.began) + time.Second) {
			return false
		}
		if what = missing(); what == "" {
			return true
		}
	}
	s.fail("after %v: %s", long, what)
	return false
}

// unsettled returns what has not been published or merged yet.
func (s *fleetScene) unsettled() string {
	stopped := map[string]bool{} // another process of the name may have published last
	for _, w := range s.nodes {
		view, _ := w.process.node.Fleet("m")
		stopped[w.name] = view.Stopped != ""
		status := w.process.loops[0].Status()
		s.mu.Lock()
		c := s.kept(w.name)
		s.mu.Unlock()
		if view.Stopped == "" && status.WarmedUp && (c == nil || status.Learned-c.N >= fleetEvery) {
			return fmt.Sprintf("%s has learnt %d labels, the broker keeps %+v", w.name, status.Learned, c)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.nodes {
		for filter := range s.broker.sessions[w.name].filters {
			if rest, ok := strings.CutPrefix(filter, fleetTopic); ok && rest != "+" && rest != "+/+" && !w.disk.filtersLost {
				return fmt.Sprintf("%s is still subscribed to %s", w.name, filter)
			}
		}
		merged, _ := w.newest()
		for _, other := range s.nodes {
			if c := s.kept(other.name); other != w && c != nil && !stopped[other.name] && !slices.ContainsFunc(merged.Members, func(m fleet.Member) bool {
				return m.Name == other.name && m.Version == c.Version
			}) {
				return fmt.Sprintf("%s has merged %+v, the broker keeps %s", w.name, merged.Members, versionOf(other.name, c.Version))
			}
		}
	}
	return ""
}

// newest returns the newest merge in the node's journal, and its place; an empty one if
// there is none.
func (w *world) newest() (m *fleet.Merge, at int) {
	records := w.truth.models["m"].records
	for at = len(records) - 1; at >= 0; at-- {
		if records[at].Kind == online.Merge {
			m, err := fleet.DecodeMerge(records[at].State)
			if err != nil {
				w.fail("%s: %v", w.name, err)
			}
			return m, at
		}
	}
	return &fleet.Merge{}, -1
}

// leave ends the last member for good, and removes its message. It is then in no merge.
func (s *fleetScene) leave() bool {
	gone := s.nodes[len(s.nodes)-1]
	s.mu.Lock()
	published := s.kept(gone.name) != nil
	s.mu.Unlock()
	if len(s.nodes) < 3 || !published {
		return true
	}
	gone.checkQueues()
	if err := gone.process.stop(); err != nil {
		s.fail("%v", err)
	}
	gone.left = true
	if gone.check(); len(s.failures) > 0 {
		return false
	}
	s.leavers++
	s.mu.Lock()
	s.log("%s leaves", gone.name)
	s.broker.route(publication{topic: fleetTopic + gone.name, retained: true})
	s.mu.Unlock()
	return s.await(time.Minute, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, w := range s.nodes {
			merged, _ := w.newest()
			if w != gone && slices.ContainsFunc(merged.Members, func(m fleet.Member) bool { return m.Name == gone.name }) {
				return fmt.Sprintf("%s has left, %s has merged %+v", gone.name, w.name, merged.Members)
			}
		}
		return ""
	})
}

// checkFleet checks that a node's own sites are those of one without a fleet, and that its
// newest merge is the function of a state that it had and of the set of contributions.
func (w *world) checkFleet() {
	r := w.truth.models["m"]
	alone, err := online.NewLearner(r.plan.learner)
	if err != nil {
		w.fail("%v", err)
		return
	}
	for i := range r.records {
		if r.records[i].Kind == online.Merge {
			w.fleet.merges++
			continue
		}
		alone.Add(&r.records[i].Event)
	}
	// Classes that a merge brought come before those of later requests: their order is another
	// one then, and so are the sums over them.
	if own, same := ownSites(r.learner, w.name), ownSites(alone, w.name); !bytes.Equal(own, same) && slices.Equal(classesOf(own), classesOf(same)) {
		w.fail("after %d records %s has other sites of its own than without a fleet", len(r.records), w.name)
	}
	if newest, at := w.newest(); at >= 0 {
		w.fleet.checkMerge(r, at, w.name, newest)
	}
}

// classesOf returns the classes of an encoded contribution.
func classesOf(data []byte) []string {
	c, err := fleet.Decode(data)
	if err != nil {
		return nil
	}
	return c.Classes
}

// ownSites returns the learner's encoded contribution, nil if it has none.
func ownSites(l *online.Learner, name string) []byte {
	c, err := l.Contribution(name)
	if err != nil {
		return nil
	}
	c.SetForest(nil)    // it depends on the list of classes as well, which merges extend
	c.SetExponents(nil) // they depend on the answers of the fleet as well
	data, err := c.AppendBinary(nil)
	if err != nil {
		return nil
	}
	return data
}

// checkMerge checks that a merge, record number at, is that of its members' contributions
// for a state of the node before it, to the last bit.
func (s *fleetScene) checkMerge(r *record, at int, name string, m *fleet.Merge) {
	set := fleet.NewSet(0)
	for _, v := range slices.Backward(m.Members) { // whatever the order
		versions := s.all[versionOf(v.Name, v.Version)]
		if len(versions) != 1 { // a restored backup has led to another one of that number
			return
		}
		set.Put(versions[0])
		set.Put(versions[0])
	}
	const soon = 10 // records in which nearly all merges are journalled
	for _, from := range []int{max(at-soon, 0), 0} {
		learner, err := online.NewLearner(r.plan.learner)
		if err != nil {
			s.fail("%v", err)
			return
		}
		for i := range at + 1 {
			if i >= from {
				if got, err := learner.Merge(name, set); err == nil {
					if data, _ := got.AppendBinary(nil); bytes.Equal(data, r.records[at].State) {
						return
					}
				}
			}
			learner.Add(&r.records[i].Event)
		}
	}
	s.fail("record %d of %s is no merge of the contributions %+v", at+1, name, m.Members)
}

// TestFleetSimulation simulates a fleet for every tenth seed.
func TestFleetSimulation(t *testing.T) {
	oneProcessor(t)
	began, simulated, merges, leavers := time.Now(), 0, 0, 0
	for seed := *firstSeed; seed < *firstSeed+number(); seed++ {
		if seed%fleetShare > 0 {
			continue
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var out io.Writer
			if *verbose {
				out = os.Stdout
			}
			s := simulateFleet(t, seed, out)
			for _, f := range s.failures {
				t.Error(f)
			}
			if len(s.failures) > 0 {
				for _, w := range s.nodes {
					t.Logf("%s: %v", w.name, w.plan)
				}
				t.Logf("exact replay: make simulate SEED=%d SEEDS=1", seed)
			}
			if *hashes {
				fmt.Printf("fleet %d %016x %d events\n", seed, s.trace, s.events)
			}
			merges, leavers = merges+s.merges, leavers+s.leavers
			if simulated++; simulated%4 == 0 {
				runtime.GC()
			}
		})
	}
	fmt.Printf("%d fleets in %v, %d merges, %d members left\n", simulated, time.Since(began).Round(time.Millisecond), merges, leavers)
	if simulated >= 5 && (merges < 5*simulated || leavers == 0) {
		t.Errorf("%d merges, %d members left: the plans check nothing", merges, leavers)
	}
}
