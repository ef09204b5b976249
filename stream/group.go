package stream

import (
	"slices"
	"time"

	"edge/online"
)

// A group that has as many records or messages, or bytes of messages, is committed at once.
const (
	maxGroupRecords  = 1000
	maxGroupMessages = 1024
	maxGroupBytes    = 2 << 20 // with late commits and a large window, a thousand long messages would wait
)

// group is the content of the next transaction.
type group struct {
	items         []*item
	unacked       int       // number of messages of QoS 1 and 2
	bytes         int       // memory of the messages
	due           time.Time // time of the commit; zero if no commit is needed
	records       []online.Record
	recorded      int // records of this group and of all before it
	size          int // bytes of records
	late          []lateLabel
	keys          map[recordKey]bool
	pending       map[recordKey]*online.Pending // nil: forget
	order         []recordKey                   // keys of pending, in order of their first change
	marks         []online.Mark
	windows       []online.Windows
	afterCommit   []func()      // see onCommit
	previousMarks []online.Mark // for rollback
}

type recordKey struct {
	model string
	key   uint64
}

// lateLabel is a record of a late label in a group.
type lateLabel struct {
	of     *modelState
	record int    // its index
	sample uint64 // number of its sample
}

// observeLags notes how late the labels of a committed group are.
func (g *group) observeLags() {
	for _, l := range g.late {
		l.of.late.Observe(g.records[l.record].Seq, l.sample)
		lag := l.of.late
		l.of.lag.Store(&lag)
	}
}

// add adds a message, and the removal of the stored windows that it makes outdated.
func (g *group) add(it *item) {
	g.items = append(g.items, it)
	g.bytes += it.bytes
	if it.msg.QoS > 0 {
		g.unacked++
	}
	for _, stream := range it.outdated {
		g.windows = append(g.windows, online.Windows{Stream: stream})
	}
}

// onCommit lets f be called once the group is committed.
func (g *group) onCommit(f func()) { g.afterCommit = append(g.afterCommit, f) }

func (g *group) needsCommit() bool {
	return len(g.records)+len(g.order)+len(g.marks)+len(g.windows) > 0
}

// closesOnly reports whether the group only closes minibatches.
func (g *group) closesOnly() bool {
	return len(g.order)+len(g.marks)+len(g.windows) == 0 &&
		!slices.ContainsFunc(g.records, func(r online.Record) bool { return r.Kind != online.Boundary })
}

// next returns the provisional sequence number of the next record, for classes.
func (g *group) next() uint64 { return uncommitted + uint64(len(g.records)) }

func (g *group) record(m *modelState, ev online.Event) {
	g.records = append(g.records, online.Record{Model: m.Name, Event: ev})
	g.recorded++
	g.size += ev.Size()
	if ev.Kind == online.Observe || ev.Kind == online.Correct {
		m.labelCount++
	}
	if ev.Key != 0 {
		g.keys[recordKey{m.Name, ev.Key}] = true
	}
}

func (g *group) storePending(p *online.Pending) { g.setPending(recordKey{p.Model, p.Key}, p) }

func (g *group) forgetPending(m *modelState, key uint64) { g.setPending(recordKey{m.Name, key}, nil) }

// setPending keeps the last change of a key, so that the order of the parts of a commit
// does not matter; nil forgets the sample.
func (g *group) setPending(k recordKey, p *online.Pending) {
	if _, ok := g.pending[k]; !ok {
		g.order = append(g.order, k)
	}
	g.pending[k] = p
}

func (g *group) reset() {
	clear(g.items) // frees the payloads
	if g.keys == nil {
		g.keys, g.pending = map[recordKey]bool{}, map[recordKey]*online.Pending{}
	}
	clear(g.keys)
	clear(g.pending)
	*g = group{items: g.items[:0], late: g.late[:0], recorded: g.recorded, keys: g.keys, pending: g.pending}
}

func (g *group) commit() *online.Commit {
	c := &online.Commit{Records: g.records, Marks: g.marks, Windows: g.windows}
	for _, k := range g.order {
		if p := g.pending[k]; p != nil {
			c.Wait = append(c.Wait, *p)
		} else {
			c.Forget = append(c.Forget, online.Pending{Model: k.model, Key: k.key})
		}
	}
	return c
}
