package simulation

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// scene is what the nodes of a simulation share.
type scene struct {
	seed  uint64
	began time.Time
	out   io.Writer // receives the trace; nil: only its hash is computed

	mu       sync.Mutex // guards broker, network, disks and truths
	trace    uint64     // hash of all events
	events   int
	failures []string

	net    *network
	broker *broker
	nodes  []*world
	fleet  *fleetScene // nil: the nodes are in no fleet
	deaths chan *world // nodes whose process was killed
}

// world is a node with its disk, as one sees it in the simulation.
type world struct {
	*scene
	name string // of the node
	runs int    // number of processes so far
	traffic

	refusing bool // the node's connections are refused
	missing  bool // the broker does not send the node what other members publish, and keeps it
	cutting  bool // the connection ends once the broker has read the next cursor
	left     bool // the node has ended for good, and was checked
	plan     *plan
	disk     *disk
	truth    *truth
	unproven *unproven
	process  *process
}

// traffic holds the messages to the node, for the oracle.
type traffic struct {
	acknowledged int
	history      []*delivery            // of the node's session, in order
	losses       int                    // number of losses: of that session, or of acknowledged messages by a restored backup
	limits       map[int]map[string]int // loss by a backup → records of each model in the backup
	qos0         []publication          // messages of QoS 0, which may be learnt once or not
	skipped      int                    // ambiguous or optional messages without an effect
}

// newWorld adds a node to a scene.
func newWorld(s *scene, name string) *world {
	w := &world{scene: s, name: name, traffic: traffic{limits: map[int]map[string]int{}}}
	s.nodes = append(s.nodes, w)
	return w
}

// newScene returns a scene without a node.
func newScene(seed uint64, out io.Writer) *scene {
	return &scene{seed: seed, out: out}
}

// node returns the node with a client id, or with a second connection of that name.
func (s *scene) node(client string) *world {
	for _, w := range s.nodes {
		if client == w.name || strings.HasPrefix(client, w.name+"-") {
			return w
		}
	}
	panic("a connection of " + client)
}

// topic is one of the node's own topics.
func (w *world) topic(rest string) string { return "edge/" + w.name + "/" + rest }

// links are the node's connections.
func (w *world) links() (links []*link) {
	for _, k := range w.net.links {
		if k.process.world == w {
			links = append(links, k)
		}
	}
	return links
}

// random returns the source of random numbers of one part of the simulation.
func (w *world) random(part string) *rand.Rand {
	h := fnv.New64a()
	if w != w.nodes[0] {
		io.WriteString(h, w.name+" ")
	}
	io.WriteString(h, part)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// oneIn reports true for about one seed in n. It has its own random numbers, so that it
// does not change the rest of the simulation.
func (w *world) oneIn(what string, n int) bool { return w.random(what).IntN(n) == 0 }

// log adds an event to the trace. The caller holds mu.
func (s *scene) log(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	at := time.Since(s.began)
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %d %s", s.trace, at, line)
	s.trace = h.Sum64()
	s.events++
	if s.out != nil {
		fmt.Fprintf(s.out, "%12.6f %s\n", at.Seconds(), line)
	}
}

// lockAndLog is log for callers that do not hold mu.
func (s *scene) lockAndLog(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log(format, args...)
}

// fail records a failure. The caller may hold mu.
func (s *scene) fail(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.failures = append(s.failures, line)
	if s.out != nil {
		fmt.Fprintf(s.out, "FAIL %s\n", line)
	}
}

// lost records that the broker has lost a session.
func (w *world) lost(s *session) {
	if s.id != w.name {
		return
	}
	w.losses++
	for _, d := range slices.Concat(s.inflight, s.waiting) {
		if !d.acked {
			d.lost = w.losses
		}
	}
	w.log("session lost with %d messages", len(s.inflight)+len(s.waiting))
}

// repeats records that the broker is about to send the messages in flight again, which
// the node cannot know, since it has neither DUP nor a cursor. The node may have learnt
// the first of them before, and learns all of them now.
func (w *world) repeats(s *session) {
	if len(s.inflight) == 0 {
		return
	}
	w.losses++
	var again []*delivery
	last := 0
	for i, d := range s.inflight {
		if d.released || d.sent == 0 {
			continue
		}
		copied := *d
		d.lost, last = w.losses, slices.Index(w.history, d)
		copied.sent, copied.ambiguous = 1, nil
		s.inflight[i] = &copied
		again = append(again, &copied)
	}
	if len(again) > 0 {
		w.history = slices.Insert(w.history, last+1, again...)
	}
}

// pick returns one of several values.
func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }
