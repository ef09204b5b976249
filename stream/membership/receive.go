package membership

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"edge/online"
	"edge/online/fleet"
)

// Receive takes a message of the fleet's topics. It keeps nothing of payload.
func (m *Member) Receive(now time.Time, topic string, payload []byte, retained bool) {
	m.link.arrived = now
	m.counts.Received += uint64(len(payload))
	name, part, ok := m.topics.Read(topic)
	if retained && !m.asked(name) {
		m.link.retained++
	}
	if own := name == m.name; retained && !(own && (m.link.kept || !m.asking.own.Before(m.link.at))) { // else it was asked for
		if gap := now.Sub(latest(m.link.at, m.link.brought)); gap <= maxGap {
			m.link.gap = max(m.link.gap, gap)
		}
		m.link.brought = now
	}
	switch {
	case !ok:
		m.refuse(now, BadName, topic, "no topic of a member")
	case name == BasisName && !m.shares():
	case len(payload) == 0 && part >= 0: // of a larger one before; the list names the present parts
	case len(payload) == 0:
		delete(m.assemblies, name)
		switch {
		case name == m.name:
			m.own.cleared = m.own.known
			m.OtherEnded()
		case name == BasisName:
			m.set.Withdraw()
		default:
			m.leave(now, name, "it has cleared its message")
		}
	case name != m.name && name != BasisName && !m.listed(name):
		m.see(name, retained)
		m.refuse(now, NotListed, name, "the configuration names other members")
	case part >= 0, isList(payload):
		m.collect(now, name, part, payload, retained)
	default:
		m.whole(now, name, payload, retained)
	}
}

// listed reports whether contributions of a member may be used.
func (m *Member) listed(name string) bool {
	return len(m.cfg.Members) == 0 || slices.Contains(m.cfg.Members, name)
}

// collect takes a list of parts, or a part.
func (m *Member) collect(now time.Time, name string, part int, payload []byte, retained bool) {
	a := m.assemblies[name]
	if a == nil {
		others := len(m.assemblies)
		if m.assemblies[BasisName] != nil {
			others--
		}
		if name != BasisName && others >= maxAssemblies {
			m.refuse(now, NoRoom, name, fmt.Sprintf("parts of more than %d members", maxAssemblies))
			return
		}
		a = &assembly{latest: name == BasisName}
	}
	var err error
	if part < 0 {
		var l list
		if l, err = decodeList(payload); err == nil {
			m.parted, a.live = true, !retained
			a.addList(l)
			m.see(name, retained)
		}
	} else {
		err = a.addPart(part, payload, MaxHeld-m.held-m.collected()-partMemory, !retained)
	}
	if err != nil {
		reason := Malformed
		if errors.Is(err, errRoom) {
			reason = NoRoom
		}
		m.refuse(now, reason, name, err.Error())
		return
	}
	m.assemblies[name] = a
	if data := a.whole(); data != nil {
		m.whole(now, name, data, retained && !a.live)
	}
}

// collected is about the number of bytes of memory that the parts of all members take.
func (m *Member) collected() (bytes int) {
	for _, a := range m.assemblies {
		bytes += a.held()
	}
	return bytes
}

// see notes that the broker has sent a member's message.
func (m *Member) see(name string, retained bool) {
	m.link.others = m.link.others || retained && name != m.name && name != BasisName
	if p := m.peers[name]; p != nil {
		p.seen = m.link.number
	}
}

// whole takes an encoded contribution. Of a member whose newest one is refused the version before
// stays in the set: until the next connection, or until the broker has another message.
func (m *Member) whole(now time.Time, name string, data []byte, retained bool) {
	if name == BasisName {
		m.receiveBasis(now, data, retained)
		return
	}
	c, err := decode(fleet.Decode, data)
	reason := Malformed
	switch {
	case len(data) > fleet.MaxBytes:
		reason = TooLarge
	case err != nil:
	case c.Member != name:
		reason, err = BadName, fmt.Errorf("it is of %.40q", c.Member)
	case c.Epoch >= maxEpoch:
		err = fmt.Errorf("epoch %d", c.Epoch)
	case name == m.name:
		m.receiveOwn(now, c, len(data), retained)
		return
	default:
		m.put(now, c, len(data), retained)
		return
	}
	if p := m.peers[name]; p != nil {
		p.unread = reason
	}
	m.refuse(now, reason, name, err.Error())
}

// decode calls of with data. A panic is its error: the broker would send the message again
// after every restart.
func decode[T any](of func(data []byte) (*T, error), data []byte) (v *T, err error) {
	defer online.Recover(&err)
	return of(data)
}

// put adds a contribution of another member to the set. An older version counts if another
// process has just published it: it has the name now, and an old state file, and found
// no message of its own at the broker.
func (m *Member) put(now time.Time, c *fleet.Contribution, bytes int, retained bool) {
	m.see(c.Member, retained)
	before := 0
	if p := m.peers[c.Member]; p != nil {
		before = p.held
	}
	held := c.Held()
	if m.held+m.collected()+held-before > MaxHeld {
		m.refuse(now, NoRoom, c.Member, fmt.Sprintf("more than %d bytes of contributions and parts", MaxHeld))
		return
	}
	if p := m.peers[c.Member]; p != nil {
		p.unread = fleet.None
	}
	if old := m.set.Get(c.Member); old != nil && !c.Newer(old.Version) {
		if retained || c.Instance == old.Instance {
			return
		}
		m.set.Remove(c.Member)
	}
	if !m.set.Put(c) {
		m.outnumbered(now, c.Member)
		return
	}
	p := m.peers[c.Member]
	if p == nil {
		p = &peer{}
		m.peers[c.Member] = p
		if !retained || !m.first() || m.awaited(c.Member) {
			m.note(now, "fleet_member", c.Member, fmt.Sprintf("%s: %d labels of %d classes", c.Member, c.N, len(c.Classes)))
		}
	}
	m.noteNewer(now, p, c, retained)
	p.received, p.bytes, p.held, p.seen = now, bytes, held, m.link.number
	m.held += held - before
	m.merge.changed = true
	for _, name := range m.forgetPeers() {
		m.outnumbered(now, name)
	}
}

// outnumbered refuses a member for which there is no room.
func (m *Member) outnumbered(now time.Time, name string) {
	m.refuse(now, NoRoom, name, fmt.Sprintf("%d members with more labels", m.cfg.MaxMembers))
}

// forgetPeers drops the members that are not in the set any more, and returns their
// names.
func (m *Member) forgetPeers() (gone []string) {
	for name, p := range m.peers {
		if m.set.Get(name) == nil {
			m.held -= p.held
			delete(m.peers, name)
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone
}

// leave removes a member from the set. Those that were left out for want of room are asked
// for.
func (m *Member) leave(now time.Time, name, why string) {
	if !m.set.Remove(name) {
		return
	}
	m.forgetPeers()
	m.merge.changed = true
	m.note(now, "fleet_left", name, name+": "+why)
	m.asking.vacated = m.asking.crowded
}

// Forget removes a member, and returns the publications that remove its messages from
// the broker.
func (m *Member) Forget(now time.Time, name string) []Publication {
	parts := 0
	if a := m.assemblies[name]; a != nil {
		parts = max(a.list.parts, len(a.parts))
		delete(m.assemblies, name)
	}
	m.leave(now, name, "it was forgotten by request")
	return m.removal(name, parts)
}

// keeps reports whether the broker has not lost its retained messages: it has the own one,
// or, where it had none before, one of another member.
func (m *Member) keeps() bool { return m.link.kept || m.link.others && !m.link.owns }

// checkKept removes the members whose message the broker does not keep any more: it has not
// lost its retained messages, and it was asked for theirs once more.
func (m *Member) checkKept(now time.Time) {
	if m.link.checked || now.Sub(latest(m.link.at, m.link.asked, m.link.brought)) < keptWithin+m.link.gap {
		return
	}
	var gone []string
	for name, p := range m.peers {
		if p.seen != m.link.number {
			gone = append(gone, name)
		}
	}
	switch {
	case !m.keeps():
		gone = nil
	case len(gone) > 0 && m.link.asked.IsZero():
		m.link.asked, m.asking.due = now, append(m.asking.due, gone...)
		return
	}
	m.link.checked = true
	slices.Sort(gone)
	for _, name := range gone {
		why := "the broker does not keep its message any more"
		if reason := m.peers[name].unread; reason != fleet.None {
			why = fmt.Sprintf("its message at the broker is refused: %s", reason)
		}
		m.leave(now, name, why)
	}
}
