package stream

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"edge/stream/mqtt"
)

// ErrReplaced as the cause of the end of Run's ctx says that another node follows
// which has this one's name, broker and session.
var ErrReplaced = errors.New("replaced by another node")

// Replaces reports whether a node of this configuration takes over the name and
// the session of one of another: the same broker knows it under the same id, and
// others know its state under the same topic.
func (c Config) Replaces(other Config) bool {
	return c.Node == other.Node && c.MQTT.BaseTopic == other.MQTT.BaseTopic && c.MQTT.ClientID == other.MQTT.ClientID &&
		slices.Equal(c.MQTT.Servers, other.MQTT.Servers)
}

// count lets a source count under its name.
func (n *Node) withCounts(s *source) *source {
	if s.sourceCounts = n.sourceCounts[s.name]; s.sourceCounts == nil {
		s.sourceCounts = newSourceCounts()
		n.sourceCounts[s.name] = s.sourceCounts
	}
	return s
}

// identities returns the names that the keys of the streams' samples have. A new
// stream that listens where one did that has gone is the same under another
// name: its samples that wait find their labels, and those that the broker
// repeats are not taught twice.
func (n *Node) identities() map[string]string {
	of, taken := map[string]string{}, map[string]bool{}
	if n.previous != nil {
		for _, old := range n.previous.sources {
			was, there := n.previous.cfg.Streams[old.name]
			if !there {
				continue
			}
			name := old.name
			if _, stays := n.cfg.Streams[name]; !stays {
				name = ""
				for _, now := range slices.Sorted(maps.Keys(n.cfg.Streams)) {
					_, had := n.previous.cfg.Streams[now]
					shared := slices.ContainsFunc(n.cfg.Streams[now].Topics, func(f string) bool { return slices.Contains(was.Topics, f) })
					if !had && of[now] == "" && shared {
						name = now
						break
					}
				}
			}
			if name != "" {
				of[name], taken[old.identity] = old.identity, true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.cfg.Streams)) {
		if of[name] == "" {
			of[name] = name
			for taken[of[name]] { // by a stream that had this name before
				of[name] += "'"
			}
			taken[of[name]] = true
		}
	}
	return of
}

// model returns what the node keeps of a model, nil if it has none of that name,
// or if there is no node.
func (n *Node) model(name string) *modelState {
	if n == nil {
		return nil
	}
	for _, m := range n.models {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// TakeOver carries on where Deps.After ended, which must have returned from Run:
// its predictions are counted on, its samples wait on for their labels, what it
// did not publish is published. It is called before Run, and before anybody else
// uses the node.
func (n *Node) Inherit() {
	old := n.previous
	if old == nil {
		return
	}
	n.previous, old.previous = nil, nil
	n.report.started, n.worker.started = old.report.started, old.worker.started
	n.committer.unconfirmed = old.committer.unconfirmed
	for _, m := range n.models {
		o := old.model(m.Name)
		if o == nil {
			continue
		}
		m.seq, m.inFlight, m.version, m.repetitions, m.frozen = o.seq, o.inFlight, o.version, o.repetitions, o.learningOff()
		m.pendingStore, m.last, m.committedLast, m.open, m.Mark, m.owed = o.pendingStore, o.last, o.committedLast, o.open, o.mark, o.owed
		m.late, m.delays = o.late, o.delays
		if reflect.DeepEqual(m.Active, o.Active) {
			m.asker = o.asker
		}
		if o.latest.there {
			m.latest.set(&o.latest.p)
		}
		m.learning.Store(!m.frozen)
		m.knowClasses()
		m.classes.add(o.classes.names()...) // that the learner has not come to yet
	}
	for _, src := range n.sources {
		for _, o := range old.sources {
			if src.joiner != nil && src.identity == o.identity && reflect.DeepEqual(n.cfg.Streams[src.name], old.cfg.Streams[o.name]) {
				src.joiner = o.joiner // and the values that wait for others
			}
		}
	}
	for m, ok := old.outbox.Pop(); ok; m, ok = old.outbox.Pop() {
		n.outbox.Push(m)
	}
	stays := n.retained()
	for topic := range old.retained() {
		if !stays[topic] { // nobody would ever take it away
			n.outbox.Push(&mqtt.Publication{Topic: topic, QoS: n.report.qos, Retained: true})
		}
	}
}

// retained returns the topics on which the broker keeps what the node says.
func (n *Node) retained() map[string]bool {
	topics := map[string]bool{n.report.prefix + "state": true, n.report.prefix + "info": true, n.client.CursorTopic: true}
	for _, m := range n.models {
		topics[m.latestTopic], topics[m.metricsTopic] = true, true
		if n.report.home.Enabled {
			topics[n.report.home.topic(m.Name)] = true
		}
	}
	return topics
}

// names returns the names of the classes.
func (c *classes) names() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range maps.Keys(c.known) {
		if c.known[name] {
			names = append(names, name)
		}
	}
	return names
}

// Reconfigured publishes that the program around the node works under another
// configuration. Settings identify it, detail says what has changed.
func (n *Node) Reconfigured(settings, detail string) {
	n.report.settings.Store(&settings)
	n.report.info()
	n.report.event("", "config_reloaded", detail)
}

// Refused publishes why the program around the node does not work under another
// configuration.
func (n *Node) Refused(detail string) { n.report.event("", "config_refused", detail) }
