package membership

import (
	"fmt"
	"time"

	"edge/online/fleet"
)

// merging is the sum of the contributions.
type merging struct {
	changed bool      // the set differs from the merged one
	running bool      // a merge is on its way
	at      time.Time // of the latest one; zero: none by this process
	taken   int       // members whose sites are in it
	members int       // whose contributions it has looked at
	joined  bool      // the model was in a fleet when the process began
	warming bool      // the model was in its warm-up at the latest step
	few     bool      // it had too few labels to test members then
	scales  scales
}

// Joined notes that the model's state has sums of a fleet.
func (m *Member) Joined() { m.merge.joined = true }

// Moved notes that these sums are of another fleet. The next merge ends or replaces them.
func (m *Member) Moved() {
	m.merge.changed, m.merge.joined = m.merge.joined, false
}

// Again notes that the model's state was replaced: the sums in it are not the latest ones.
func (m *Member) Again() {
	if len(m.peers) > 0 || m.merge.taken > 0 {
		m.merge.changed, m.merge.at = true, time.Time{}
	}
}

// mergeDue returns the set to merge; nil for none.
func (m *Member) mergeDue(now time.Time, learnt Learnt) *fleet.Set {
	m.findStale(now)
	g, ready, few := &m.merge, learnt.Ready, learnt.Labels < fleet.MinWindow
	g.changed = g.changed || (g.warming && ready || g.few && !few) && g.taken > 0 // own labels can test the members now
	g.warming, g.few = !ready, few
	if g.running || !m.gathered(now) {
		return nil
	}
	if g.joined && g.at.IsZero() && m.keeps() && m.link.checked { // all members may have left meanwhile, or the configuration lists them no more
		g.changed, g.joined = true, false
	}
	every := m.cfg.MergeEvery
	basis := m.basisDue(now, ready)
	if m.cfg.Follows() || basis && !m.basis.vain || m.basis.urgent { // the merges of a follower are not journalled
		every = min(every, m.cfg.Interval)
	}
	if n := len(m.set.Members()); n > 0 && n >= 2*g.members { // a fleet that starts: the latest sum is of a few
		every = min(every, keptWithin)
	}
	if !g.changed && !basis || !g.at.IsZero() && now.Sub(g.at) < every {
		return nil
	}
	set := m.set.Clone()
	for name, p := range m.peers {
		if p.stale {
			set.Remove(name)
		}
	}
	if !basis && set.Common() == nil && len(set.Members()) == 0 && g.taken == 0 && g.at.IsZero() && !m.link.checked {
		return nil
	}
	g.changed, g.running = false, true
	return m.request(now, set)
}

// gathered reports whether the retained messages of the first connection have come. A model
// that has sums of before waits longer: where the broker has lost its messages, those of the first
// that publish again are a small part of them.
func (m *Member) gathered(now time.Time) bool {
	if m.link.number == 0 || m.link.number == 1 && m.link.up && now.Sub(m.link.arrived) < quietFor && now.Sub(m.link.at) < gatherWithin {
		return false
	}
	if m.merge.joined && m.merge.at.IsZero() && m.link.lasted(now) < keptWithin {
		return false
	}
	return m.cfg.Follows() || m.own.durable
}

// findStale looks for members that have published nothing for too long, in one connection.
func (m *Member) findStale(now time.Time) {
	after := m.cfg.StaleAfter
	connected := m.link.up && now.Sub(m.link.at) >= after
	for _, p := range m.peers {
		stale := after > 0 && now.Sub(p.received) >= after && (connected || p.stale)
		if stale != p.stale {
			p.stale, m.merge.changed = stale, true
		}
	}
}

// Merged notes a merge that the model has carried out, or will.
func (m *Member) Merged(now time.Time, sum *fleet.Merge) {
	g := &m.merge
	g.running, g.at, g.taken, g.members = false, now, sum.Taken(), len(sum.Members)
	m.counts.Merges++
	m.compareScales(sum.Comparison)
	m.mergedBasis(now, sum)
	for _, p := range m.peers { // an earlier merge is not valid any more for those that are left out
		p.result, p.merged = fleet.Member{}, false
	}
	for _, v := range sum.Members {
		if p := m.peers[v.Name]; p != nil {
			p.result, p.merged = v, true
		}
		if v.Refused != fleet.None && v.Refused != fleet.Own {
			m.refuse(now, v.Refused, v.Name, explain(v))
		}
	}
}

// explain returns the reason why a merge left a member out.
func explain(v fleet.Member) (why string) {
	why = "its sites cannot be added"
	switch v.Refused {
	case fleet.Distrusted:
		why = fmt.Sprintf("the own labels contradict it, by %.1f standard errors", v.Trust)
	case fleet.Misleading:
		why = "its forest answers own labels worse than their frequencies would, as if its labels were random, or its features in other units"
	case fleet.Contradicted:
		why = "the other members contradict it, and this model has too few labels to decide"
	case fleet.OtherInputs:
		why = "its features differ from those of this model in number, name or order, or in how they are made of signals"
	case fleet.OtherShape:
		why = "it has no horizon in common with this model"
	case fleet.TooSure:
		why = "it claims more than its labels can teach"
	case fleet.TooManyNames:
		why = "with it the fleet has more classes than a model may have"
	}
	return why
}

// MergeFailed notes that a merge was not carried out; it is tried again later. err is not nil
// if the contributions cannot be added.
func (m *Member) MergeFailed(now time.Time, err error) {
	if err != nil {
		m.refuse(now, fleet.NotFactored, m.cfg.Concept, fmt.Sprintf("the contributions cannot be added: %v", err))
	}
	m.merge.running, m.merge.changed, m.merge.at = false, true, now
	m.basis.rebase, m.basis.asked = max(m.basis.rebase, m.basis.asked), fleet.NoRebase
}
