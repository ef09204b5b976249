package simulation

import (
	"bytes"
	"cmp"
	"slices"
)

// unproven holds the acknowledgements of a session that the broker has read although
// the node cannot know it. If the broker then sends another message again with the
// same topic, payload and, if the broker keeps them, identifier, the node may take it
// for a repetition of the acknowledged one: MQTT 3.1.1 does not distinguish the two.
type unproven struct {
	world        *world
	acknowledged []*delivery // messages, in the order of their acknowledgements
	proven       int         // number of the first ones that the node can know to be read, on the connection
	durable      int         // number of those that the node can know after a restart
	previous     int         // durable before the last commit
	answers      []answer    // that the broker has sent on the connection
	conn         *peer       // the current connection
	cursor       int         // number of acknowledgements that precede the retained cursor
	cursorConn   *peer       // the connection that carried the retained cursor to the broker
	openAtStart  []*delivery // messages whose acknowledgement was unproven when the connection began
	dropped      []*delivery // messages of a session that the broker has lost, see drop
	droppedIn    *session    // that session
	restored     *backup     // what the disk knows, until the next commit; nil: it is not that of a backup
	restoredThen *backup     // restored before the last commit
}

// answer is a packet that proves to the node that the broker has read its earlier
// packets.
type answer struct {
	offset int   // position in the connection's bytes at which it ends
	total  int   // acknowledgements that the broker read before the answered packet
	conn   *peer // connection of the answered packet; for the cursor an earlier one
}

// ambiguity bounds the number of messages of equal topic and payload that the node may
// take for repetitions.
type ambiguity struct{ left int }

// add records that the broker has read the acknowledgement of a message.
func (u *unproven) add(s *session, d *delivery) {
	if s.id != u.world.name {
		return
	}
	u.settleAnswers()
	d.adrift = false
	u.acknowledged = append(u.acknowledged, d)
}

// answer records that the packet just written by the broker answers a packet that the
// node wrote after total acknowledgements.
func (u *unproven) answer(p *peer, total int) {
	if p.session == nil || p.session.id != u.world.name {
		return
	}
	u.addAnswer(p, answer{offset: p.written, total: total, conn: p})
}

// cursorSent records that the broker has just sent its retained cursor. The node
// accepts no message of a connection before it has read the cursor, if one is retained.
// If the connection ends before, and the broker loses the cursor, it never reads it.
func (u *unproven) cursorSent(p *peer) {
	if p.session.id == u.world.name {
		u.addAnswer(p, answer{offset: p.written, total: u.cursor, conn: u.cursorConn})
	}
}

func (u *unproven) addAnswer(p *peer, a answer) {
	if u.conn != p {
		u.conn, u.answers = p, nil
	}
	u.answers = append(u.answers, a)
}

// cursorStored records that the broker retains a new cursor: the number of a commit,
// which the node wrote after its latest acknowledgements, or 0, which proves none.
func (u *unproven) cursorStored(p *peer, commit bool) {
	u.cursor, u.cursorConn = 0, p
	if commit {
		u.cursor = len(u.acknowledged)
	}
}

// open returns the messages whose acknowledgement remains unproven after the node has
// read the cursor. No cursor proves that of a message which the node had taken over an earlier
// connection, if a restored backup makes it forget that it has acknowledged it again.
func (u *unproven) open() (open []*delivery) {
	for i, d := range u.acknowledged {
		if !d.proven && (d.adrift || i >= u.cursor || d.conn != u.cursorConn) {
			open = append(open, d)
		}
	}
	return open
}

// drop records the messages in flight of a session that the broker loses, if it hides its
// sessions. Until a commit after messages of the next session the node's disk holds them,
// and after a crash the node takes the next session for that one.
func (u *unproven) drop(s *session) {
	if u.world.broker.hides && s.id == u.world.name {
		u.droppedIn, u.dropped = s, append(u.dropped, s.inflight...)
	}
}

// prove marks those of the first total acknowledgements that were sent over a
// connection as proven.
func (u *unproven) prove(total int, over *peer) {
	for _, d := range u.acknowledged[:total] {
		d.proven = d.proven || d.conn == over
	}
}

// settleAnswers handles the answers that have arrived, and returns the number of
// acknowledgements that the node can know to be read.
func (u *unproven) settleAnswers() int {
	for u.conn != nil && len(u.answers) > 0 && u.answers[0].offset <= u.conn.link.client.read {
		a := u.answers[0]
		u.prove(a.total, a.conn)
		u.proven = max(u.proven, a.total)
		u.answers = u.answers[1:]
	}
	return u.proven
}

// committed records that the list of taken messages is on the disk. The list certainly
// lacks the messages proven when the latest acknowledged message was first sent.
func (u *unproven) committed() {
	u.previous, u.restoredThen, u.restored = u.durable, u.restored, nil
	if s := u.world.broker.sessions[u.world.name]; s != nil && s != u.droppedIn && slices.ContainsFunc(s.inflight, func(d *delivery) bool { return d.received }) {
		u.dropped = nil
	}
	if n := len(u.acknowledged); n > 0 {
		u.durable = u.acknowledged[n-1].provenBefore
	}
}

// cut records that a power cut may have lost the last commit.
func (u *unproven) cut() {
	u.durable, u.restored = min(u.durable, u.previous), cmp.Or(u.restored, u.restoredThen)
}

// restarted resets the node's knowledge to the contents of its disk.
func (u *unproven) restarted() {
	u.proven, u.conn, u.answers = min(u.proven, u.durable), nil, nil
	if u.restored != nil {
		for _, d := range u.acknowledged[:u.durable] {
			d.proven = u.restored.proven[d]
		}
	}
	for _, d := range u.acknowledged[u.durable:] {
		d.proven = false
	}
}

// fromOne reports whether the first message that is sent again has identifier 1, after
// which the node cannot rely on identifiers.
func (s *session) fromOne() bool {
	i := slices.IndexFunc(s.inflight, func(d *delivery) bool { return !d.released })
	return i >= 0 && s.inflight[i].id == 1
}

// markResent marks the messages, of those that the broker is about to send again, that
// are ambiguous. The broker may have lost its cursor since they were marked: then they are like more.
func (u *unproven) markResent(s *session, keeps bool) {
	if s.id != u.world.name {
		return
	}
	u.settleAnswers()
	keeps = keeps && !s.fromOne()
	u.conn, u.answers = nil, nil
	groups := map[string]*ambiguity{}
	u.openAtStart = u.open()
	for _, d := range slices.Concat(s.inflight, s.waiting) {
		if d.sent == 0 || d.released {
			continue
		}
		alike := 0
		for _, old := range slices.Concat(u.openAtStart, u.dropped) {
			if old.topic == d.topic && bytes.Equal(old.payload, d.payload) && (!keeps || old.id == d.id) {
				alike++
			}
		}
		if alike == 0 {
			continue
		}
		key := d.topic + "\x00" + string(d.payload)
		if groups[key] == nil {
			groups[key] = &ambiguity{}
		}
		if keeps {
			groups[key].left++
		} else {
			groups[key].left = alike
		}
		if d.ambiguous == nil || !keeps && d.ambiguous.left < alike {
			d.ambiguous = groups[key]
		}
	}
}

// markFirst marks a message that a broker without DUP sends for the first time as
// ambiguous if an equal message with an unproven acknowledgement had its identifier.
func (u *unproven) markFirst(s *session, d *delivery) {
	if s.id != u.world.name || d.ambiguous != nil {
		return
	}
	for _, old := range u.openAtStart {
		if old.id == d.id && old.topic == d.topic && bytes.Equal(old.payload, d.payload) {
			d.ambiguous = &ambiguity{left: 1}
		}
	}
}
