package stream

import (
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"edge/online"
	"edge/stream/mqtt"
)

const (
	maxUnconfirmed = 4096 // size of the set; when it is full, the oldest message leaves it
	// maxAge is the age, in later messages of QoS 1 and 2, at which a message of an
	// earlier connection leaves the set: a broker that keeps identifiers assigns them
	// again after twice as many. A broker that renumbers sends again within its window,
	// which maxAgeRenewed exceeds.
	maxAge        = 1 << 15
	maxAgeRenewed = 1 << 10
	// unread is the sequence of a message whose acknowledgement, by the cursor at the beginning
	// of a later connection, the broker has not read. No later cursor reaches it.
	unread = mqtt.MaxSequence
)

// unconfirmed is the set of messages of QoS 1 and 2 that the node has received and whose
// acknowledgement may not have reached the broker. The broker sends such a message again
// (MQTT 3.1.1, section 4.4). It must not be learnt twice; nor at all if it was not learnt
// the first time: a label that the sample had already would undo a later correction.
// Every other message is new, even with the DUP flag: a broker sets DUP on every message
// that it has sent before, whether it arrived or not.
//
// A repetition has the packet identifier, the topic and the payload of a message in the
// set. Some brokers number the messages of each connection from 1, including repetitions;
// for them, topic and payload must suffice, one for one and within this set.
//
// A message leaves the set once the broker has provably read its acknowledgement. A
// broker reads in order, so it has read everything that was written before
//
//   - an acknowledgement whose identifier it assigns to a new message,
//   - a packet that it has answered on the same connection,
//   - the cursor that it keeps (mqtt.Cursor), which survives a crash of the node.
//
// The set is part of each commit. The committer's goroutine owns it.
type unconfirmed struct {
	messages    []unconfirmedMessage // oldest first
	removed     []unconfirmedMessage // removed as repeated since the last commit
	changed     bool                 // messages were added since the last commit
	needsCommit bool                 // an added message was learnt: the set needs a commit
	sequence    uint64               // of the newest commit with messages
	count       uint64               // messages of QoS 1 and 2 so far

	conn      mqtt.Origin // connection of the newest message
	before    uint64      // sequence when conn began
	session   uint64      // with which the session began; 0: not known
	confirmed uint64      // acknowledgements over conn that the broker has read
	renumbers bool        // the broker may assign new identifiers to repetitions: conn began with 1
	setsDUP   bool        // the broker sets DUP: a message without it is new
	omitsDUP  bool        // it does not: conn began with a repetition without it

	dropped *atomic.Uint64 // counts messages that left the full set
	size    *atomic.Int64  // of the set
	newest  *atomic.Uint64 // sequence, for the client

	committed online.Taken // content of the last commit
}

// unconfirmedMessage is a received message that the broker may send again.
type unconfirmedMessage struct {
	id     uint16
	key    uint64 // identity of topic and payload
	named  bool   // all its labels have an id, which also identifies a repetition
	staged bool   // not committed yet
	// conn is nil if it ended before that of the last commit of an earlier run.
	conn     mqtt.Origin
	position uint64 // of its acknowledgement among those of conn; 0: not written yet
	sequence uint64 // as in online.TakenMessage
	at       uint64 // value of count at its arrival
}

// load restores the set from the journal.
func (u *unconfirmed) load(t online.Taken) {
	u.advance(t.Sequence)
	latest := &struct{ mqtt.Origin }{} // stands for the connection of the last commit
	for _, m := range t.Messages {
		one := unconfirmedMessage{id: m.ID, key: m.Key, named: m.Named, sequence: m.Sequence}
		if m.Sequence > 0 && m.Sequence != unread {
			one.conn = latest
		}
		u.messages = append(u.messages, one)
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

// isFirst reports whether a message is the first one of its connection.
func (u *unconfirmed) isFirst(msg *mqtt.Message) bool {
	return msg.QoS > 0 && msg.From != nil && msg.From != u.conn
}

// beginConnection prepares the set for the messages of another connection; first is its
// first message.
func (u *unconfirmed) beginConnection(first *mqtt.Message, c mqtt.Cursor) {
	if u.conn != nil { // the last confirmations of the previous connection
		u.prune(u.conn.Confirmed())
	}
	// Without a session the broker sends nothing again: one that does has a session,
	// although it denied it. A restored backup may lack all commits of the session.
	if c.Fresh && !first.Dup || c.Found && c.Session > u.sequence {
		u.messages = u.messages[:0]
	}
	u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool { return c.Proves(m.sequence) })
	for i := range u.messages {
		switch m := &u.messages[i]; {
		case m.sequence == unread:
		case c.Found && m.sequence > c.Sequence:
			m.sequence = unread
		default: // a later cursor does not include it, nor does this one that of a restored backup
			m.sequence = 0
		}
	}
	u.conn, u.confirmed, u.before = first.From, 0, u.sequence
	if c.Fresh || c.Found {
		u.session = c.Session
	}
	u.advance(c.Sequence)
	if !c.Fresh && !c.Found {
		// The session may have begun with a cursor beyond all commits, and none has followed: the
		// next connection would take it for that of a later session.
		u.advance(u.sequence + 2*mqtt.SessionGap)
	}
	u.renumbers = first.ID == 1
	// Repetitions come first from a broker that keeps identifiers. One that assigns them again
	// at once begins with 1, or with repetitions that have DUP.
	at := u.find(first.ID)
	u.omitsDUP = !first.Dup && !u.setsDUP && !u.renumbers && at >= 0 && u.messages[at].key == keyOf(first)
}

// isRepetition reports whether a message was received before. It then leaves the set,
// until it is added again.
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
		case m.conn == msg.From && same && msg.Dup, m.conn != msg.From && same && (msg.Dup || u.omitsDUP || m.sequence == unread && !u.renumbers && !u.setsDUP):
			u.remove(at)
			return true
		case m.conn == msg.From, !u.renumbers: // the identifier was assigned to a new message
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

// remove removes a message because it was repeated.
func (u *unconfirmed) remove(at int) {
	if m := u.messages[at]; !m.staged {
		u.removed = append(u.removed, m)
	}
	u.messages = slices.Delete(u.messages, at, at+1)
}

// find returns the index of the newest message with an identifier, −1 without one.
func (u *unconfirmed) find(id uint16) int {
	for i := len(u.messages) - 1; i >= 0; i-- {
		if u.messages[i].id == id {
			return i
		}
	}
	return -1
}

// dropRead drops a message whose acknowledgement the broker has read, and those with an
// earlier acknowledgement over the same connection.
func (u *unconfirmed) dropRead(at int) {
	last := u.messages[at]
	i := 0
	u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool {
		i++
		return i-1 == at || i-1 < at && m.conn == last.conn && m.conn != nil
	})
}

// prune drops the messages whose acknowledgements are among the first confirmed ones of
// the connection, and regularly those that are too old to come again.
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

// add adds a message; named if all its labels have an id. A message that was not learnt
// needs no commit of its own: until the next commit nothing has changed, and a repetition
// would not be learnt either.
func (u *unconfirmed) add(msg *mqtt.Message, named, learnt bool) {
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
	u.needsCommit = u.needsCommit || learnt
	u.changed = true
}

// commit returns the set for the next commit; nil if no message was added since the last
// one. Messages whose acknowledgement the broker has provably read will not come again
// after a restart. A repetition may still be on its way, so the set itself keeps them
// until prune.
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

// hold delays the acknowledgements of a commit and the cursor, so that they leave in one
// piece when the returned function is called.
func (u *unconfirmed) hold(committed bool) (release func()) {
	if !committed || !u.changed {
		return func() {}
	}
	u.conn.Hold()
	return u.conn.Release
}

// acknowledged notes that the added messages were acknowledged, and committed before if
// necessary. The cursor covers every message whose first commit this is, also those that
// were acknowledged before it.
func (u *unconfirmed) acknowledged(committed bool) {
	u.removed = u.removed[:0]
	if u.conn == nil {
		return
	}
	position := u.conn.Written()
	select {
	case <-u.conn.Lost(): // the acknowledgements were not written
		position = 0
	default:
	}
	for i := len(u.messages) - 1; i >= 0; i-- { // newest first
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
			u.conn.PublishCursor(u.cursor())
		}
	}
	u.size.Store(int64(len(u.messages)))
}

// cursor is that of the newest commit.
func (u *unconfirmed) cursor() mqtt.Cursor {
	return mqtt.Cursor{Sequence: u.sequence, Before: u.before, Session: u.session}
}

// rollback undoes the changes since the last commit; the messages will come again.
func (u *unconfirmed) rollback() {
	u.messages = slices.DeleteFunc(u.messages, func(m unconfirmedMessage) bool { return m.staged })
	u.messages = append(u.messages, u.removed...)
	u.removed, u.needsCommit = u.removed[:0], false
}

// keyOf identifies the topic and the payload of a message, and its retain flag: a retained
// message is no repetition of the original one. The key is stable over restarts.
func keyOf(msg *mqtt.Message) uint64 {
	key := mix(xxhash.Sum64String(msg.Topic)) ^ xxhash.Sum64(msg.Payload)
	if msg.Retained {
		key = mix(key)
	}
	return key
}
