package membership

import (
	"fmt"
	"time"

	"edge/online/fleet"
)

// former is the message of another process that the broker brought last: of an earlier one,
// or of one that runs under the same name, which has displaced this one.
type former struct {
	fleet.Version
	instance, labels uint64
	bytes, parts     int
	compare          bool      // its labels with those of the model
	at               time.Time // of the latest message of the one that has displaced this one
	tried            backoff   // whether that one has ended
}

// Leave is called before the last Final. It chooses the epoch of a node that ends before
// that was due, once the broker has been quiet, and returns it to be made durable; 0: none.
func (m *Member) Leave(now time.Time) uint64 {
	if m.cfg.Follows() || !m.link.up || m.own.durable {
		return 0
	}
	within := gatherWithin
	if now.Sub(m.link.arrived) >= quietFor { // which is not before the beginning of the connection
		within = 0
	}
	m.chooseEpoch(now, within)
	return m.own.epoch
}

// chooseEpoch sets the epoch once the own retained message is known, or has not come within
// that time of all connections: each of them may be short.
func (m *Member) chooseEpoch(now time.Time, within time.Duration) {
	o := &m.own
	if o.epoch > 0 || !o.found && m.link.lasted(now) < within {
		return
	}
	o.epoch, o.parts = above(max(o.stored, o.former.Epoch)), o.former.parts
	switch {
	case !o.found || o.former.Epoch < o.stored: // killed before it published
	case o.former.Epoch == o.stored: // the broker has what this node published last
		o.Version, o.at, o.labels, o.bytes, o.known = o.former.Version, now, o.former.labels, o.former.bytes, true
		o.former.compare = true
	default:
		file := fmt.Sprintf("epoch %d", o.stored)
		if o.stored == 0 {
			file = "is new, or older than the first version"
		}
		m.regressed(file)
	}
}

// above is the epoch of a process that comes after one with that epoch. The last one that the
// others accept has none above it: its publications count as those of a restored state.
func above(epoch uint64) uint64 { return min(epoch+1, maxEpoch-1) }

// compareFormer looks whether the state file has fewer labels than this node has published
// in the same run: it is an older one, or the model was reset.
func (m *Member) compareFormer(learnt Learnt) {
	f := &m.own.former
	if !f.compare || learnt.Behind {
		return
	}
	if f.compare = false; f.labels > learnt.Labels {
		m.regressed(fmt.Sprintf("has %d", learnt.Labels))
	}
}

// regressed publishes the event that the broker knows more of this node than its state file.
func (m *Member) regressed(file string) {
	f := &m.own.former
	m.event("fleet_regressed", fmt.Sprintf("the broker knows version %d.%d of this node with %d labels, its state file %s: what the state file knows replaces it", f.Epoch, f.Sequence, f.labels, file))
}

// EpochDurable notes that the state file has the epoch.
func (m *Member) EpochDurable(epoch uint64) {
	m.own.stored = max(m.own.stored, epoch)
	m.own.durable = m.own.epoch > 0 && m.own.stored >= m.own.epoch
}

// receiveOwn takes the own contribution as the broker sent it. An older one of another process
// is of the past, which a broker that has gone back to it brings, or a bridge: the next
// publication replaces it. That of a process that runs is followed by another one.
func (m *Member) receiveOwn(now time.Time, c *fleet.Contribution, bytes int, retained bool) {
	o := &m.own
	switch {
	case m.cfg.Follows() && !retained: // of another process, which has the name
		return
	case c.Instance == m.instance && c.Version == o.Version:
		o.again, o.cleared, o.strikes = false, false, 0
		if m.cameBack(now, retained); !o.at.Before(m.link.at) { // says nothing about what the broker has kept before
			return
		}
	case c.Instance == m.instance && !o.fresh: // an older one, to which the broker has gone back
		o.again = true
		return
	case c.Instance == m.instance:
	case o.epoch == 0: // of an earlier process, or of another one that runs
		o.found, o.former = true, former{Version: c.Version, instance: c.Instance, labels: c.N, bytes: bytes}
		m.proposal = c.Proposal()
		if a := m.assemblies[m.name]; a != nil && a.listed && a.list.Version == c.Version {
			o.former.parts = a.list.parts
		}
	case !o.published && c.Instance == o.former.instance && c.Version == o.former.Version:
	case c.Instance == o.former.instance && (c.Epoch > o.epoch || !retained && c.Newer(o.former.Version)):
		if o.former.Version = c.Version; !retained {
			o.former.at = now
		}
		m.stop(fmt.Sprintf("another process publishes as %s: each needs a name and a state file of its own; this one began later, and goes on when the other one ends", m.name), "fleet_duplicate")
		return
	case c.Epoch < o.epoch || c.Epoch == o.epoch && c.Instance < m.instance:
		o.former, o.again = former{Version: c.Version, instance: c.Instance}, true
		if c.Epoch == o.Epoch { // others have it, and take no retained one that is not above it
			o.Sequence = max(o.Sequence, c.Sequence)
		}
		return
	default:
		m.note(now, "fleet_duplicate", "", fmt.Sprintf("another process publishes as %s: each needs a name and a state file of its own; the other one began later", m.name))
		o.epoch, o.again = above(c.Epoch), true
		o.durable = o.stored >= o.epoch
		return
	}
	m.link.kept = m.link.kept || retained
}

// OtherEnded notes that another process with this node's name has ended, or that a client has removed
// its contribution. If that one has displaced this one, this one publishes again; if it runs on after
// all, it contradicts.
func (m *Member) OtherEnded() {
	if m.displaced() {
		m.takeName("the other process that had its name has ended, or its contribution was removed: this one publishes again")
	}
}

// displaced reports whether another process publishes in place of this one.
func (m *Member) displaced() bool {
	return m.own.stopped != "" && m.own.strikes < maxStrikes // else the broker has stopped it
}

// tryName publishes again once the process that has displaced this one has been silent for long:
// where a bridge does not carry the topic of their state, no message shows that it has ended.
func (m *Member) tryName(now time.Time) {
	f := &m.own.former
	if since := latest(f.at, m.link.at); m.displaced() && f.tried.due(now, since, tryAfter) {
		m.takeName(fmt.Sprintf("the other process that has its name has published nothing for %v: this one publishes again, until that one contradicts", now.Sub(since).Round(time.Minute)))
	}
}

// takeName goes on to publish, with versions above those of the other process.
func (m *Member) takeName(why string) {
	o := &m.own
	o.stopped, o.epoch, o.again = "", above(max(o.epoch, o.former.Epoch)), o.known
	o.durable = o.stored >= o.epoch
	m.event("fleet_duplicate", why)
}
