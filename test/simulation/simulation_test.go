package simulation

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	firstSeed = flag.Uint64("seed", 1, "first `SEED` to simulate")
	seeds     = flag.Uint64("seeds", 100, "`NUMBER` of seeds to simulate")
	hashes    = flag.Bool("hashes", false, "print a hash of the events of each seed")
	verbose   = flag.Bool("trace", false, "print the events")
)

// faults are the kinds of faults; repeated ones are more frequent.
var faults = []string{
	"cut", "cut", "cut", "stall", "refuse", "kill", "kill before", "kill after", "power", "stop",
	"slow disk", "broken disk", "reload", "broker restart", "takeover",
}

// number returns the number of seeds: a quarter of those asked for with -short, as
// beside the race detector.
func number() uint64 {
	if testing.Short() {
		return max(*seeds/4, 1)
	}
	return *seeds
}

// TestSimulation simulates seeds.
func TestSimulation(t *testing.T) {
	oneProcessor(t)
	began, excused, failed := time.Now(), 0, 0
	for seed := *firstSeed; seed < *firstSeed+number(); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var out io.Writer
			if *verbose {
				out = os.Stdout
			}
			w := simulate(t, seed, out)
			excused += w.skipped
			for _, f := range w.failures {
				t.Error(f)
			}
			if len(w.failures) > 0 {
				failed++
				t.Logf("%v; %s identifiers, window %d", w.plan, w.broker.ids, w.broker.window)
				t.Logf("exact replay: make simulate SEED=%d SEEDS=1", seed)
			}
			if *hashes {
				fmt.Printf("%d %016x %d events\n", seed, w.trace, w.events)
			}
		})
		if seed%16 == 0 {
			runtime.GC()
		}
	}
	fmt.Printf("%d seeds in %v, %d failed, %d messages skipped\n", *seeds, time.Since(began).Round(time.Millisecond), failed, excused)
}

// oneProcessor runs one goroutine at a time, without garbage collection, until the test
// ends. It simulates some seeds first, so that one-time initialisations are complete.
func oneProcessor(t *testing.T) {
	processors, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(processors)
		debug.SetGCPercent(percent)
	})
	for seed := range uint64(3) {
		simulate(t, seed, nil)
	}
}

// simulate runs one world to its end.
func simulate(t *testing.T, seed uint64, out io.Writer) *world {
	folder, err := os.MkdirTemp(memory(), "simulation")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	w := newWorld(newScene(seed, out), nodeID)
	synctest.Test(t, func(*testing.T) {
		w.began = time.Now()
		w.plan = newPlan(w)
		w.net, w.broker, w.disk = newNetwork(w), newBroker(w), newDisk(w, filepath.Join(folder, "edge.db"))
		w.truth, w.unproven = newTruth(w), &unproven{world: w}
		w.scene.run()
	})
	return w
}

// memory returns a folder in memory, "" if the system has none.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// run executes the schedule, waits until all queues are empty, and checks the result.
// It stops at the first failure.
func (s *scene) run() {
	base := runtime.NumGoroutine()
	s.deaths = make(chan *world, 1000) // of this bubble
	rested := s.schedule()
	for _, w := range s.nodes {
		if w.process == nil || w.left {
			continue
		}
		w.mu.Lock()
		if !rested {
			w.process.kill("")
		}
		w.mu.Unlock()
		if err := w.process.stop(); err != nil && rested {
			w.fail("%v", err)
		}
	}
	time.Sleep(5 * time.Second) // paho closes its connection asynchronously
	synctest.Wait()
	if n := runtime.NumGoroutine(); n > base {
		s.fail("%d goroutines remain", n-base)
	}
	for _, w := range s.nodes {
		if rested && !w.left {
			w.check()
		}
	}
}

// schedule executes the plans, and reports whether they completed and all queues became
// empty.
func (s *scene) schedule() bool {
	type ofNode struct {
		*world
		fault
	}
	var faults []ofNode
	length := time.Duration(0)
	for _, w := range s.nodes {
		for _, m := range w.plan.messages {
			time.AfterFunc(m.at, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.log("publish %s %s", m.topic, m.payload)
				s.broker.route(m.publication)
			})
		}
		for _, f := range w.plan.faults {
			faults = append(faults, ofNode{w, f})
		}
		length = max(length, w.plan.length)
	}
	slices.SortStableFunc(faults, func(a, b ofNode) int { return cmp.Compare(a.at, b.at) })
	for _, w := range s.nodes {
		if !w.startProcess() {
			return false
		}
	}
	for _, f := range faults {
		if !s.runUntil(f.at) {
			return false
		}
		s.lockAndLog("fault %s %v", f.what, f.long)
		if !f.inject(f.fault) {
			return false
		}
	}
	if !s.runUntil(length + 10*time.Second) {
		return false
	}
	s.endFaults()
	if !s.drain() || s.fleet != nil && !s.fleet.rest() {
		return false
	}
	for _, w := range s.nodes {
		if !w.left {
			w.checkQueues()
			w.checkSubscriptions()
			w.checkState()
		}
	}
	return len(s.failures) == 0
}

// checkQueues checks that the node's queues are empty at rest.
func (w *world) checkQueues() {
	s := w.process.node.Stats()
	if s.Unacked != 0 || s.Ring != 0 || s.Commit != 0 {
		w.fail("at rest %d messages are not acknowledged, %d wait for an answer, %d for a commit", s.Unacked, s.Ring, s.Commit)
	}
	if s.PendingEvicted+s.UnconfirmedDropped > 0 {
		w.fail("%d samples and %d taken messages were dropped within the bounds", s.PendingEvicted, s.UnconfirmedDropped)
	}
}

// checkState checks that the retained state is online at rest.
func (w *world) checkState() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state := string(w.broker.retained[w.topic("state")].payload); state != "online" {
		w.fail("at rest the node's state is %q", state)
	}
}

// checkSubscriptions checks that the session has exactly the subscriptions of the
// configuration, unless the store has lost the list of earlier ones.
func (w *world) checkSubscriptions() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var want, got []string
	for name, s := range w.plan.node.Streams {
		if len(w.plan.modelsOf(name)) > 0 {
			want = append(want, s.Topics...)
		}
	}
	for f := range w.broker.sessions[w.name].filters {
		if strings.HasPrefix(f, w.plan.prefix+"in/") && !(w.plan.earlierSession && f == "in/#") {
			got = append(got, f)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) && !w.disk.filtersLost {
		w.fail("the session is subscribed to %q, want %q", got, want)
	}
}

// runUntil runs until a time, and starts a new process after a kill.
func (s *scene) runUntil(at time.Duration) bool {
	timer := time.NewTimer(time.Until(s.began.Add(at)))
	defer timer.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			for _, w := range s.nodes {
				if !w.left {
					w.process.checkQueues()
				}
			}
		case <-timer.C:
			return len(s.failures) == 0
		case w := <-s.deaths:
			if w.process.isKilled() && !w.restart() { // it may have been restarted since
				return false
			}
		}
	}
}

// restart stops the process, which may have been killed, and starts a new one.
func (w *world) restart() bool {
	w.process.stop()
	return w.startProcess()
}

func (w *world) startProcess() bool {
	w.mu.Lock()
	w.runs++
	w.unproven.restarted()
	w.mu.Unlock()
	w.process = w.start()
	w.mu.Lock()
	w.truth.cut = false
	w.mu.Unlock()
	return w.process != nil && len(w.failures) == 0
}

// inject causes a fault.
func (w *world) inject(f fault) bool {
	w.mu.Lock()
	locked := true
	unlock := func() {
		if locked {
			w.mu.Unlock()
		}
		locked = false
	}
	defer unlock()
	later := func(do func()) {
		time.AfterFunc(f.long, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			do()
		})
	}
	switch f.what {
	case "cut":
		for _, k := range w.links() {
			k.cut()
		}
	case "cut behind cursor":
		w.cutting = true
	case "stall":
		for _, k := range w.links() {
			k.stalled = true
			later(func() { k.resume() })
		}
	case "refuse":
		w.refusing = true
		for _, k := range w.links() {
			k.cut()
		}
		later(func() { w.refusing = false })
	case "missing":
		w.missing = true
		later(func() { w.missing = false })
	case "kill":
		w.process.kill("")
	case "kill before", "kill after", "power":
		w.disk.fault = f.what
	case "slow disk":
		w.disk.slow = pick(w.disk.rng, 200*time.Millisecond, 3*time.Second)
		later(func() { w.disk.slow = 0 })
	case "broken disk":
		w.disk.broken = true
		later(func() { w.disk.broken = false })
	case "failing sync":
		w.disk.failSync.Store(true)
		later(func() { w.disk.failSync.Store(false) })
	case "broker restart":
		w.broker.stop()
		later(func() { w.broker.down = false })
	case "retained lost":
		w.broker.stop()
		w.broker.dropRetained()
		later(func() { w.broker.down = false })
	case "restored backup":
		if b := w.backUp(); b != nil && !w.process.killed {
			later(func() { w.restore(b) })
		}
	case "impostor":
		w.fleet.impersonate(w)
	case "takeover":
		if s := w.broker.sessions[w.name]; s != nil && s.peer != nil {
			w.broker.disconnect(s.peer)
		}
	case "stop":
		unlock()
		return w.restart()
	case "reload":
		unlock()
		w.plan.change()
		w.process.reload()
	}
	return true
}

// endFaults ends every fault.
func (s *scene) endFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broker.down = false
	for _, w := range s.nodes {
		w.refusing, w.missing, w.cutting = false, false, false
		w.disk.slow, w.disk.broken, w.disk.fault = 0, false, ""
		w.disk.failSync.Store(false)
	}
	s.log("healed")
}

// drain waits until the broker's queues for the nodes are empty, and no node starts for three seconds: a
// late fault may restart one.
func (s *scene) drain() bool {
	starts := func() (n int) {
		for _, w := range s.nodes {
			n += w.runs
		}
		return n
	}
	for range 1200 {
		if !s.runUntil(time.Since(s.began) + time.Second/2) {
			return false
		}
		s.mu.Lock()
		done := !slices.ContainsFunc(s.nodes, func(w *world) bool { return !w.drained() })
		s.mu.Unlock()
		before := starts()
		if done && !s.runUntil(time.Since(s.began)+3*time.Second) {
			return false
		}
		if done && starts() == before {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(s.out, "%s\n", stacks[:runtime.Stack(stacks, true)])
	}
	for _, w := range s.nodes {
		if at := s.broker.sessions[w.name]; at == nil {
			s.fail("the node never connects again")
		} else if !w.drained() {
			s.fail("the node does not acknowledge all messages: %d in flight, %d queued, connected: %v", len(at.inflight), len(at.waiting), at.peer != nil)
		}
	}
	return false
}

// drained reports whether the broker's queue for the node is empty. The caller holds mu.
func (w *world) drained() bool {
	s := w.broker.sessions[w.name]
	return s != nil && s.peer != nil && len(s.inflight)+len(s.waiting) == 0
}

// check compares the learnt records with the published messages.
func (w *world) check() {
	for i := range w.plan.models {
		m := w.plan.models[i].name
		if _, err := w.checkModel(m); err != nil {
			w.fail("%v", err)
		}
		got := w.process.loops[i].Learner().Digest()
		want, err := w.truth.models[m].digest()
		if err != nil || got != want {
			w.fail("the digest of %s is %s, that of the reference learner %s, %v", m, got, want, err)
		}
	}
	if w.fleet != nil {
		w.checkFleet()
	}
	if state := string(w.broker.retained[w.topic("state")].payload); state != "offline" {
		w.fail("after the end the node's state is %q", state)
	}
}

// change chooses the configuration after a reload.
func (p *plan) change() {
	p.node.MQTT.InflightWindow = pick(p.rng, 1, 8, 50)
	p.node.JournalFlush = pick(p.rng, 0, 20*time.Millisecond, time.Second)
	p.node.MQTT.Ring.MaxMessages = pick(p.rng, 20, 100, 1000)
	p.node.Streams = maps.Clone(p.node.Streams) // the node reads the current map
	for name, s := range p.node.Streams {
		if in := p.prefix + "in/" + name; p.topics > 0 {
			s.Topics = [][]string{{in + "/+"}, {in + "/#"}, {in + "/s", in + "/q"}}[p.topics%3]
			p.node.Streams[name] = s
		}
	}
	p.topics += min(p.topics, 1)
}

// resume ends the stall of a link.
func (k *link) resume() {
	if !k.stalled || k.broken {
		return
	}
	k.stalled = false
	for _, p := range []*pipe{k.up, k.down} {
		for len(p.inTransit) > 0 && !k.broken {
			p.arrive()
		}
	}
}
