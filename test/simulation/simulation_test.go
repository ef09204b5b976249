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
	hashes    = flag.Bool("hashes", false, "print a hash of all that happens with each seed")
	verbose   = flag.Bool("trace", false, "print what happens")
)

// faults are all that there are.
var faults = []string{
	"cut", "cut", "cut", "stall", "refuse", "kill", "kill before", "kill after", "power", "stop",
	"slow disk", "broken disk", "reload", "broker restart", "takeover",
}

// TestSimulation simulates seeds.
func TestSimulation(t *testing.T) {
	oneProcessor(t)
	began, excused, failed := time.Now(), 0, 0
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var out io.Writer
			if *verbose {
				out = os.Stdout
			}
			w := simulate(t, seed, out)
			excused += w.excused
			for _, f := range w.failures {
				t.Error(f)
			}
			if len(w.failures) > 0 {
				failed++
				t.Logf("%v; %s identifiers, window %d", w.plan, w.broker.ids, w.broker.window)
				t.Logf("to replay it exactly: make simulate SEED=%d SEEDS=1", seed)
			}
			if *hashes {
				fmt.Printf("%d %016x %d events\n", seed, w.trace, w.events)
			}
		})
		if seed%16 == 0 {
			runtime.GC()
		}
	}
	fmt.Printf("%d seeds in %v, %d failed, %d messages excused\n", *seeds, time.Since(began).Round(time.Millisecond), failed, excused)
}

// oneProcessor lets goroutines take turns, with no collection between them, until
// the test ends. What the process does once in its life it has done then.
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
	w := &world{seed: seed, out: out, limits: map[int]map[string]int{}}
	synctest.Test(t, func(*testing.T) {
		w.began = time.Now()
		w.plan = newPlan(w)
		w.net, w.broker, w.disk = newNetwork(w), newBroker(w), newDisk(w, filepath.Join(folder, "edge.db"))
		w.truth, w.doubt = newTruth(w), &doubt{world: w}
		w.run()
	})
	return w
}

// memory is a folder whose files are in memory, where there is one.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// run lets the schedule happen, lets everything come to rest, and judges. What
// fails ends at once.
func (w *world) run() {
	base := runtime.NumGoroutine()
	rested := w.schedule()
	if w.life != nil {
		w.mu.Lock()
		if !rested {
			w.life.die("")
		}
		w.mu.Unlock()
		if err := w.life.end(); err != nil && rested {
			w.fail("%v", err)
		}
	}
	time.Sleep(5 * time.Second) // paho ends its connection in its own time
	synctest.Wait()
	if n := runtime.NumGoroutine(); n > base {
		w.fail("%d goroutines are left", n-base)
	}
	if rested {
		w.judge()
	}
}

// schedule reports whether everything has happened and come to rest.
func (w *world) schedule() bool {
	for _, m := range w.plan.messages {
		time.AfterFunc(m.at, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.log("publish %s %s", m.topic, m.payload)
			w.broker.route(m.publication)
		})
	}
	slices.SortStableFunc(w.plan.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	if !w.revive() {
		return false
	}
	for _, f := range w.plan.faults {
		if !w.await(f.at) {
			return false
		}
		w.note("fault %s %v", f.what, f.long)
		if !w.disturb(f) {
			return false
		}
	}
	if !w.await(w.plan.length + 10*time.Second) {
		return false
	}
	w.heal()
	if !w.drain() {
		return false
	}
	w.bounded()
	w.subscribed()
	w.announced()
	return len(w.failures) == 0
}

// bounded checks what the node holds when it has come to rest.
func (w *world) bounded() {
	s := w.life.node.Stats()
	if s.Unacked != 0 || s.Ring != 0 || s.Commit != 0 {
		w.fail("at rest %d messages are not acknowledged, %d wait for an answer, %d for a commit", s.Unacked, s.Ring, s.Commit)
	}
	if s.PendingEvicted+s.UnconfirmedDropped > 0 {
		w.fail("%d samples and %d messages that were taken were dropped, all within the bounds", s.PendingEvicted, s.UnconfirmedDropped)
	}
}

// announced checks the node's state.
func (w *world) announced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state := string(w.broker.retained["edge/"+nodeID+"/state"].payload); state != "online" {
		w.fail("at rest the node's state is %q", state)
	}
}

// subscribed checks that the session has the subscriptions of the configuration, no
// others, unless the disk did not let the node remember them.
func (w *world) subscribed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var want, got []string
	for name, s := range w.plan.node.Streams {
		if len(w.plan.fed(name)) > 0 {
			want = append(want, s.Topics...)
		}
	}
	for f := range w.broker.sessions[nodeID].filters {
		if strings.HasPrefix(f, "in/") && !(w.plan.earlier && f == "in/#") {
			got = append(got, f)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) && !w.disk.forgetful {
		w.fail("the session is subscribed to %q, want %q", got, want)
	}
}

// await lives until some time. Whatever is killed starts again.
func (w *world) await(at time.Duration) bool {
	timer := time.NewTimer(time.Until(w.began.Add(at)))
	defer timer.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			w.life.bounded()
		case <-timer.C:
			return len(w.failures) == 0
		case <-w.life.died:
			if !w.restart() {
				return false
			}
		}
	}
}

// restart ends what was killed or is to stop, and starts anew.
func (w *world) restart() bool {
	w.life.end()
	return w.revive()
}

func (w *world) revive() bool {
	w.mu.Lock()
	w.lives++
	w.doubt.restarted()
	w.mu.Unlock()
	w.life = w.start()
	w.mu.Lock()
	w.truth.cut = false
	w.mu.Unlock()
	return w.life != nil && len(w.failures) == 0
}

// disturb lets a fault happen.
func (w *world) disturb(f fault) bool {
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
		for _, k := range slices.Clone(w.net.links) {
			k.cut()
		}
	case "stall":
		for _, k := range w.net.links {
			k.stalled = true
			later(func() { k.resume() })
		}
	case "refuse":
		w.net.refusing = true
		for _, k := range slices.Clone(w.net.links) {
			k.cut()
		}
		later(func() { w.net.refusing = false })
	case "kill":
		w.life.die("")
	case "kill before", "kill after", "power":
		w.disk.fault = f.what
	case "slow disk":
		w.disk.slow = pick(w.disk.rng, 200*time.Millisecond, 3*time.Second)
		later(func() { w.disk.slow = 0 })
	case "broken disk":
		w.disk.broken = true
		later(func() { w.disk.broken = false })
	case "failing sync":
		w.disk.unsynced = true
		later(func() { w.disk.unsynced = false })
	case "broker restart":
		w.broker.stop()
		later(func() { w.broker.down = false })
	case "retained lost":
		w.broker.stop()
		w.broker.forgetRetained()
		later(func() { w.broker.down = false })
	case "restored backup":
		if b := w.backUp(); !w.life.dead {
			later(func() { w.restore(b) })
		}
	case "takeover":
		if s := w.broker.sessions[nodeID]; s != nil && s.peer != nil {
			w.broker.ended(s.peer)
		}
	case "stop":
		unlock()
		return w.restart()
	case "reload":
		unlock()
		w.plan.change()
		w.life.reload()
	}
	return true
}

// heal ends every fault.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.net.refusing, w.broker.down = false, false
	w.disk.slow, w.disk.broken, w.disk.unsynced, w.disk.fault = 0, false, false, ""
	w.log("healed")
}

// drain waits until the broker has nothing more for the node.
func (w *world) drain() bool {
	for range 1200 {
		if !w.await(time.Since(w.began) + time.Second/2) {
			return false
		}
		w.mu.Lock()
		s := w.broker.sessions[nodeID]
		done := s != nil && s.peer != nil && len(s.inflight)+len(s.waiting) == 0
		w.mu.Unlock()
		if done {
			time.Sleep(3 * time.Second)
			return len(w.failures) == 0
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.broker.sessions[nodeID]
	if s == nil {
		w.fail("the node never connects again")
		return false
	}
	if w.out != nil {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(w.out, "%s\n", stacks[:runtime.Stack(stacks, true)])
	}
	w.fail("the node does not acknowledge all: %d in flight, %d wait, connected: %v", len(s.inflight), len(s.waiting), s.peer != nil)
	return false
}

// judge holds what was learnt against what was published.
func (w *world) judge() {
	for i := range w.plan.models {
		m := w.plan.models[i].name
		if _, err := w.verdict(m); err != nil {
			w.fail("%v", err)
		}
		got := w.life.loops[i].Learner().Digest()
		want, err := w.truth.models[m].digest()
		if err != nil || got != want {
			w.fail("the digest of %s is %s, that of an undisturbed learner %s, %v", m, got, want, err)
		}
	}
	if state := string(w.broker.retained["edge/"+nodeID+"/state"].payload); state != "offline" {
		w.fail("after the end the node's state is %q", state)
	}
}

// change chooses what a reload changes.
func (p *plan) change() {
	p.node.MQTT.InflightWindow = pick(p.rng, 1, 8, 50)
	p.node.JournalFlush = pick(p.rng, 0, 20*time.Millisecond, time.Second)
	p.node.MQTT.Ring.MaxMessages = pick(p.rng, 20, 100, 1000)
	p.node.Streams = maps.Clone(p.node.Streams) // a node has it
	for name, s := range p.node.Streams {
		if in := "in/" + name; p.topics > 0 {
			s.Topics = [][]string{{in + "/+"}, {in + "/#"}, {in + "/s", in + "/q"}}[p.topics%3]
			p.node.Streams[name] = s
		}
	}
	p.topics += min(p.topics, 1)
}

// resume lets a stalled link carry on.
func (k *link) resume() {
	if !k.stalled || k.broken {
		return
	}
	k.stalled = false
	for _, p := range []*pipe{k.up, k.down} {
		for len(p.flying) > 0 && !k.broken {
			p.arrive()
		}
	}
}
