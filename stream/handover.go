package stream

import (
	"errors"
	"reflect"
	"slices"

	"edge/stream/field"
)

// ErrReplaced is the cause of the end of Run's ctx if another node with the same name,
// broker and session follows.
var ErrReplaced = errors.New("replaced by another node")

// Replaces reports whether a node of this configuration continues the name and the
// session of a node of other: the same broker knows both by one client id, and other
// clients know their state by one topic.
func (c Config) Replaces(other Config) bool {
	return c.Node == other.Node && c.MQTT.BaseTopic == other.MQTT.BaseTopic && c.MQTT.ClientID == other.MQTT.ClientID &&
		slices.Equal(c.MQTT.Servers, other.MQTT.Servers)
}

// withCounts sets the counters of a source by its name.
func (n *Node) withCounts(s *source) *source {
	if s.sourceCounts = n.sourceCounts[s.name]; s.sourceCounts == nil {
		s.sourceCounts = newSourceCounts()
		n.sourceCounts[s.name] = s.sourceCounts
	}
	return s
}

// identities returns the stream names in the keys of the samples. A new stream that has
// a topic of a removed one inherits its identity: its pending samples find their labels,
// and repetitions by the broker are not learnt twice.
func (n *Node) identities() map[string]string {
	of, taken := map[string]string{}, map[string]bool{}
	if n.previous != nil {
		for _, old := range n.previous.sources {
			if taken[old.identity] { // by another input
				continue
			}
			if name := n.successor(old.name, of); name != "" {
				of[name], taken[old.identity] = old.identity, true
			}
		}
	}
	for _, name := range field.Names(n.cfg.Streams) {
		if of[name] == "" {
			of[name] = name
			for taken[of[name]] { // of a stream that had this name before
				of[name] += "'"
			}
			taken[of[name]] = true
		}
	}
	return of
}

// successor returns the stream that has the identity of a previous one: that of its name, or else
// a new one without an identity yet and with a topic of it; "" if there is none.
func (n *Node) successor(old string, of map[string]string) string {
	was, there := n.previous.cfg.Streams[old]
	if !there { // a source of no stream
		return ""
	}
	if _, stays := n.cfg.Streams[old]; stays {
		return old
	}
	for _, now := range field.Names(n.cfg.Streams) {
		if _, had := n.previous.cfg.Streams[now]; had || of[now] != "" {
			continue
		}
		if slices.ContainsFunc(n.cfg.Streams[now].Filters(), func(f string) bool { return slices.Contains(was.Filters(), f) }) {
			return now
		}
	}
	return ""
}

// Inherit continues the state of Deps.After, which must have returned from Run: the
// numbers of its predictions, its pending samples, its unpublished messages. It is
// called before Run, and before another goroutine uses the node.
func (n *Node) Inherit() {
	old := n.previous
	if old == nil {
		return
	}
	n.previous, old.previous = nil, nil
	n.report.started, n.worker.started = old.report.started, old.worker.started
	n.committer.unconfirmed = old.committer.unconfirmed
	n.committer.told, n.committer.calm = old.committer.told, old.committer.calm
	for _, m := range n.models {
		o := old.model(m.Name)
		if o == nil {
			continue
		}
		m.seq, m.inFlight, m.labels, m.repetitions = o.seq, o.inFlight, o.labels, o.repetitions
		m.pendingStore, m.last, m.committedLast, m.open, m.Mark, m.owed = o.pendingStore, o.last, o.committedLast, o.open, o.mark, o.owed
		m.late, m.delays = o.late, o.delays
		m.lag.Store(o.lag.Load())
		if reflect.DeepEqual(m.Active, o.Active) {
			m.asker = o.asker
		}
		if o.latest.there && m.latest.set(&o.latest.p) {
			wake(n.report.changed)
		}
		m.expectOff(o.mark&markFrozen != 0 || m.Fleet.Follows())
		m.classes.takeOver(o.classes)
	}
	for _, src := range n.sources {
		for _, o := range old.sources {
			if src.joiner != nil && src.identity == o.identity && reflect.DeepEqual(n.cfg.Streams[src.name], old.cfg.Streams[o.name]) {
				src.joiner = o.joiner // with its partial samples
			}
		}
	}
	n.inheritWindows(old)
	n.fleets.inherit(old.fleets)
	for m, ok := old.outbox.Pop(); ok; m, ok = old.outbox.Pop() {
		n.outbox.Push(m)
	}
	stays := n.retained()
	for topic := range old.retained() {
		if !stays[topic] { // no other client would remove it
			n.report.retain(topic, nil)
		}
	}
}

// inheritWindows continues the windows of the previous node, unless that has not
// committed all that they made, or their configuration differs.
func (n *Node) inheritWindows(old *Node) {
	for _, st := range n.worker.stages {
		for _, o := range old.worker.stages {
			if st.of.name == o.of.name {
				st.stored = o.stored || !old.committer.clean
			}
			if st.of.identity != o.of.identity || !old.committer.clean {
				continue
			}
			if err := st.inherit(o); err != nil {
				n.log.Info("the windows of a stream begin anew", "stream", st.of.name, "reason", err)
			}
		}
	}
}

// retained returns the topics on which the node publishes retained messages.
func (n *Node) retained() map[string]bool {
	topics := map[string]bool{n.report.prefix + "state": true, n.report.prefix + "info": true, n.client.CursorTopic: true}
	for _, topic := range n.fleets.retained() {
		topics[topic] = true
	}
	for _, m := range n.models {
		topics[m.latestTopic], topics[m.metricsTopic] = true, true
		if n.report.home.Enabled {
			topics[n.report.home.Topic(m.Name)] = true
		}
	}
	return topics
}

// Reconfigured publishes that the program has a new configuration. settings identifies
// it, detail describes the change.
func (n *Node) Reconfigured(settings, detail string) {
	n.report.settings.Store(&settings)
	n.report.info()
	n.report.event("", "config_reloaded", detail)
}

// Refused publishes why the program has refused a new configuration.
func (n *Node) Refused(detail string) { n.report.event("", "config_refused", detail) }
