package stream

import (
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"edge/online"
	"edge/stream/mqtt"
)

const (
	maxUnconfirmed = 4096 // messages in the set; full, the oldest leaves it
	// Messages of QoS 1 and 2 after which those of an earlier connection are given
	// up: a broker that keeps identifiers gives them out again after twice as many;
	// one that does not sends again within its window, or nearly so.
	maxAge        = 1 << 15
	maxAgeRenewed = 1 << 10
	// The sequence of a message of which a cursor has told, when a later connection
	// began, that the broker had not read its acknowledgement. No later cursor reaches it.
	unread = mqtt.MaxSequence
)

// unconfirmed is the set of messages of QoS 1 and 2 which the node has taken and
// whose acknowledgement may not have reached the broker. The broker sends such a
// message again (MQTT 3.1.1, section 4.4), and it must not be learnt twice, nor
// once if it was not learnt the first time: a label that the sample had already
// would then take a later correction back. Every other message is new, also with
// the DUP flag: a broker sets it on all that it has sent before, whether it
// arrived or not.
//
// A repetition has the packet identifier, the topic and the payload of a message
// in the set. Some brokers number the messages of each connection from 1 on,
// also those that they send again; there, topic and payload have to do, one for
// one and against this set alone.
//
// A message leaves the set once the broker has provably read its
// acknowledgement. A broker reads in order, so it has read all that was written
// before
//
//   - an acknowledgement whose identifier it gives to a new message,
//   - a packet that it has answered on the same connection,
//   - the cursor that it keeps (cursor.go), which outlives a crash of the node.
//
// The set is part of each commit. The committer's goroutine owns it.
type unconfirmed struct {
	messages    []unconfirmedMessage // oldest first
	removed     []unconfirmedMessage // repeated since the last commit
	changed     bool                 // messages were taken since the last commit
	needsCommit bool                 // a message was taken that taught something: the set needs a commit
	sequence    uint64               // of the newest commit that took messages
	count       uint64               // messages of QoS 1 and 2 so far

	conn      mqtt.Origin // that the newest message came over
	confirmed uint64      // acknowledgements over conn that the broker has read
	renumbers bool        // conn's broker may give new identifiers to what it sends again: it began with 1
	setsDUP   bool        // the broker sets DUP: a message without it is new

	dropped *atomic.Uint64 // messages that left the full set
	size    *atomic.Int64  // of the set
	newest  *atomic.Uint64 // sequence, for the client

	committed online.Taken // of the last commit
}

// takenMessage is a message in the set.
type unconfirmedMessage struct {
	id       uint16
	key      uint64 // identity of topic and payload
	named    bool   // all that it labels has an id, which tells a repetition as well
	staged   bool   // not committed yet
	conn     mqtt.Origin
	position uint64 // of its acknowledgement among those of conn; 0: not written yet
	sequence uint64 // as in online.TakenMessage
	at       uint64 // count when it came
}

// load takes over what an earlier run has noted.
func (u *unconfirmed) load(t online.Taken) {
	u.advance(t.Sequence)
	for _, m := range t.Messages {
		u.messages = append(u.messages, unconfirmedMessage{id: m.ID, key: m.Key, named: m.Named, sequence: m.Sequence})
	}
	u.size.Store(int64(len(u.messages)))
}

// advance raises the sequence.
func (u *unconfirmed) advance(to uint64) {
	u.sequence = max(u.sequence, to)
	if u.sequence > u.newest.Load() {
		u.newest.Store(u.sequence)
	}
}

// meets reports whether a message is the first one over its connection.
func (u *unconfirmed) isFirst(msg *mqtt.Message) bool {
	return msg.QoS > 0 && msg.From != nil && msg.From != u.conn
}

// begin prepares the set for the messages of another connection, of which first
// is the first.
func (u *unconfirmed) beginConnection(first *mqtt.Message, c mqtt.Cursor) {
	if u.conn != nil { // what the broker has told last over the connection before
		u.prune(u.conn.Confirmed())
	}
	// Without a session there is nothing to send again. A cursor that no commit has
	// had is that of a session which has begun later than all of them.
	if c.Fresh || c.Found && c.Sequence > u.sequence {
		u.messages = u.messages[:0]
	}
	u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool {
		return c.Found && m.sequence > 0 && m.sequence <= c.Sequence
	})
	for i := range u.messages {
		switch m := &u.messages[i]; {
		case m.sequence == unread:
		case c.Found && m.sequence > 0:
			m.sequence = unread
		default: // a later cursor says nothing about it
			m.sequence = 0
		}
	}
	u.conn, u.confirmed = first.From, 0
	u.advance(c.Sequence)
	u.renumbers = first.ID == 1
}

// repeats reports whether a message was taken before. It then leaves the set,
// until it is taken again.
func (u *unconfirmed) isRepetition(msg *mqtt.Message) bool {
	if msg.QoS == 0 || msg.From == nil {
		return false
	}
	u.count++
	u.setsDUP = u.setsDUP || msg.Dup
	u.prune(msg.Confirmed)
	if len(u.messages) == 0 {
		return false
	}
	if at := u.find(msg.ID); at >= 0 {
		m := &u.messages[at]
		switch same := m.key == keyOf(msg); {
		case m.conn == msg.From && same && msg.Dup, m.conn != msg.From && same && (msg.Dup || m.sequence == unread && !u.renumbers && !u.setsDUP):
			u.remove(at)
			return true
		case m.conn == msg.From, !u.renumbers: // a new message has the identifier
			u.dropRead(at)
		}
	}
	if !u.renumbers || !msg.Dup {
		return false
	}
	key := keyOf(msg)
	at := slices.IndexFunc(u.messages, func(m unconfirmedMessage) bool { return m.conn != u.conn && m.key == key })
	if at >= 0 {
		u.remove(at)
	}
	return at >= 0
}

// remove takes a message out of the set because it was repeated.
func (u *unconfirmed) remove(at int) {
	if m := u.messages[at]; !m.staged {
		u.removed = append(u.removed, m)
	}
	u.messages = slices.Delete(u.messages, at, at+1)
}

// find returns where the newest message with an identifier is, −1 if there is none.
func (u *unconfirmed) find(id uint16) int {
	for i := len(u.messages) - 1; i >= 0; i-- {
		if u.messages[i].id == id {
			return i
		}
	}
	return -1
}

// read drops a message whose acknowledgement the broker has read, and those
// that were acknowledged before it over the same connection.
func (u *unconfirmed) dropRead(at int) {
	last := u.messages[at]
	i := 0
	u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool {
		i++
		return i-1 == at || i-1 < at && m.conn == last.conn
	})
}

// prune drops the messages whose acknowledgements are among the first confirmed
// ones of the connection, and now and then those that are too old to come again.
func (u *unconfirmed) prune(confirmed uint64) {
	if confirmed > u.confirmed {
		u.confirmed = confirmed
		u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool {
			return m.conn == u.conn && m.position > 0 && m.position <= confirmed
		})
	}
	if u.count%maxAgeRenewed == 0 {
		age := uint64(maxAge)
		if u.renumbers {
			age = maxAgeRenewed
		}
		u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool { return m.conn != u.conn && u.count-m.at > age })
	}
}

// take puts a message into the set, named if all that it labels has an id. One
// that taught nothing needs no commit of its own: until the next one nothing has
// changed, and it would teach nothing again.
func (u *unconfirmed) add(msg *mqtt.Message, named, taught bool) {
	if msg.QoS == 0 || msg.From == nil {
		return
	}
	if len(u.messages) >= maxUnconfirmed {
		u.messages = slices.Delete(u.messages, 0, 1)
		u.dropped.Add(1)
	}
	u.messages = append(u.messages, unconfirmedMessage{
		id: msg.ID, key: keyOf(msg), named: named, staged: true, conn: msg.From, at: u.count,
	})
	u.needsCommit = u.needsCommit || taught
	u.changed = true
}

// commit returns the set for the next commit; nil if nothing was taken since the
// last one. What the broker has provably read by now will not come again after a
// restart. What is on its way from it may still be a repetition, so that the set
// itself keeps those until prune.
func (u *unconfirmed) commit() *online.Taken {
	if !u.changed {
		return nil
	}
	u.advance(u.sequence + 1)
	u.committed.Sequence, u.committed.Messages = u.sequence, u.committed.Messages[:0]
	confirmed := u.conn.Confirmed()
	for i := range u.messages {
		m := &u.messages[i]
		if m.conn == u.conn && m.sequence == 0 {
			m.sequence = u.sequence
		}
		if m.conn != u.conn || m.position == 0 || m.position > confirmed {
			u.committed.Messages = append(u.committed.Messages, online.TakenMessage{ID: m.id, Key: m.key, Named: m.named, Sequence: m.sequence})
		}
	}
	return &u.committed
}

// hold lets the acknowledgements of a commit and the cursor leave in one piece,
// when the function that it returns is called.
func (u *unconfirmed) hold(committed bool) (release func()) {
	if !committed || !u.changed {
		return func() {}
	}
	u.conn.Hold()
	return u.conn.Release
}

// acknowledged notes that what was taken has been acknowledged, and, where that
// was needed, committed before. The cursor proves what the commit is the first to
// have, also what was acknowledged before it.
func (u *unconfirmed) acknowledged(committed bool) {
	u.removed = u.removed[:0]
	if u.conn == nil {
		return
	}
	position := u.conn.Written()
	select {
	case <-u.conn.Lost(): // they were not written
		position = 0
	default:
	}
	for i := len(u.messages) - 1; i >= 0; i-- { // the newest ones
		m := &u.messages[i]
		if m.conn != u.conn || m.position > 0 {
			break
		}
		m.position = position
		m.staged = false
	}
	if committed && u.changed {
		u.needsCommit, u.changed = false, false
		if slices.ContainsFunc(u.messages, func(m unconfirmedMessage) bool { return m.sequence == u.sequence && m.conn == u.conn && !m.named }) {
			u.conn.PublishCursor(u.sequence)
		}
	}
	u.size.Store(int64(len(u.messages)))
}

// undo takes back what has come since the last commit, which will come again.
func (u *unconfirmed) rollback() {
	u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool { return m.staged })
	u.messages = append(u.messages, u.removed...)
	u.removed, u.needsCommit = u.removed[:0], false
}

// keyOf identifies the topic and the payload of a message, and whether the broker
// had kept it: one that it keeps is no repetition of the one that it kept. The key
// is the same after a restart.
func keyOf(msg *mqtt.Message) uint64 {
	key := mix(xxhash.Sum64String(msg.Topic)) ^ xxhash.Sum64(msg.Payload)
	if msg.Retained {
		key = mix(key)
	}
	return key
}
