package stream

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"edge/stream/mqtt"
)

// step is one thing that happens between a broker and a node without a network.
type step struct {
	id      uint16
	dup     bool
	x       int          // of the labelled sample that comes; equal ones are equal messages
	again   *mqtt.Cursor // not nil: a new connection comes first
	crash   bool         // the node ends before, and its set is read from the journal
	confirm bool         // before, the broker has read all acknowledgements
	learnt  bool         // expected
}

func brokerKeeps(sequence uint64) *mqtt.Cursor { return &mqtt.Cursor{Found: true, Sequence: sequence} }

// A message is learnt unless the broker sends it again after it was learnt.
// Long: a list of independent cases.
func TestUnconfirmed(t *testing.T) {
	unknown, fresh := &mqtt.Cursor{}, &mqtt.Cursor{Fresh: true}
	for name, steps := range map[string][]step{
		"another identifier is another message, on one connection": {
			{id: 1, x: 7, learnt: true}, {id: 2, dup: true, x: 7, learnt: true},
		},
		"the same identifier with DUP is a repetition": {
			{id: 1, x: 7, learnt: true}, {id: 1, dup: true, x: 7}, {id: 1, dup: true, x: 7},
		},
		"the same identifier without DUP is a new message": {
			{id: 1, x: 7, learnt: true}, {id: 1, x: 7, learnt: true},
		},
		"the same identifier with other content is a new message": {
			{id: 1, x: 7, learnt: true}, {id: 1, dup: true, x: 8, learnt: true},
		},
		"acknowledgements that the broker has read free the identifier": {
			{id: 1, x: 7, learnt: true}, {id: 1, dup: true, x: 7, confirm: true, learnt: true},
		},
		"identifiers that are kept: a window that was taken and one that was not": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 2, dup: true, x: 7, again: unknown}, {id: 3, dup: true, x: 7, learnt: true}, {id: 4, dup: true, x: 7, learnt: true}, {id: 5, x: 7, learnt: true},
		},
		"the same over a crash": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 2, dup: true, x: 7, again: unknown, crash: true}, {id: 3, dup: true, x: 7, learnt: true}, {id: 4, dup: true, x: 7, learnt: true}, {id: 5, x: 7, learnt: true},
		},
		"a repetition is one after each of several losses": {
			{id: 5, x: 7, learnt: true},
			{id: 5, dup: true, x: 7, again: unknown}, {id: 5, dup: true, x: 7, again: unknown, crash: true}, {id: 5, dup: true, x: 7, again: unknown},
			{id: 6, dup: true, x: 7, learnt: true}, {id: 6, dup: true, x: 7, again: unknown, crash: true},
		},
		"over a crash, a new message under the identifier of another: acknowledgements before it were read": {
			{id: 5, x: 5, learnt: true}, {id: 7, x: 7, learnt: true},
			{id: 7, x: 8, again: brokerKeeps(0), crash: true, learnt: true}, {id: 5, dup: true, x: 5, learnt: true},
		},
		"the same, but not those over an earlier connection": {
			{id: 5, x: 5, learnt: true}, {id: 7, x: 7, again: brokerKeeps(0), learnt: true},
			{id: 7, x: 8, again: brokerKeeps(0), crash: true, learnt: true}, {id: 5, dup: true, x: 5},
		},
		"identifiers from 1 on: the cursor tells that both were read": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 1, dup: true, x: 7, again: brokerKeeps(2), learnt: true}, {id: 2, dup: true, x: 7, learnt: true}, {id: 3, x: 7, learnt: true},
		},
		"the same, by the cursor of a connection without messages, which the broker has lost": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 1, dup: true, x: 7, again: &mqtt.Cursor{Earlier: brokerKeeps(2)}, crash: true, learnt: true}, {id: 2, dup: true, x: 7, learnt: true}, {id: 3, x: 7, learnt: true},
		},
		"identifiers from 1 on: the cursor tells that the first was read": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 1, dup: true, x: 7, again: brokerKeeps(1)}, {id: 2, dup: true, x: 7, learnt: true}, {id: 3, x: 7, learnt: true},
		},
		"the same over a crash, and over another": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 1, dup: true, x: 7, again: brokerKeeps(1), crash: true}, {id: 2, dup: true, x: 7, learnt: true}, {id: 3, x: 7, learnt: true},
			{id: 1, dup: true, x: 7, again: brokerKeeps(3), crash: true}, {id: 2, dup: true, x: 7}, {id: 3, dup: true, x: 7, learnt: true},
		},
		"identifiers from 1 on, without a cursor: one for one, also after new ones": {
			{id: 1, x: 5, learnt: true}, {id: 2, x: 7, learnt: true}, {id: 3, x: 7, learnt: true},
			{id: 1, dup: true, x: 7, again: unknown}, {id: 2, dup: true, x: 7}, {id: 3, dup: true, x: 7, learnt: true},
			{id: 4, x: 7, learnt: true}, {id: 5, dup: true, x: 5}, {id: 6, dup: true, x: 5, learnt: true},
		},
		"a broker that keeps identifiers and sets no DUP flag": {
			{id: 40, x: 7, learnt: true}, {id: 41, x: 7, learnt: true},
			{id: 41, x: 7, again: brokerKeeps(1)}, {id: 42, x: 7, learnt: true}, {id: 9, x: 7, learnt: true},
		},
		"the same, and its cursor is not known": {
			{id: 40, x: 7, learnt: true}, {id: 41, x: 7, learnt: true},
			{id: 41, x: 7, again: unknown}, {id: 42, x: 7, learnt: true}, {id: 9, x: 7, learnt: true},
			{id: 42, x: 7, again: unknown, crash: true}, {id: 9, x: 7}, {id: 10, x: 7, learnt: true},
		},
		"identifiers that are assigned again, and no DUP flag yet": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 1, x: 7, again: unknown, learnt: true}, {id: 2, x: 7, learnt: true},
		},
		"a broker that sets the DUP flag, and has read one of two acknowledgements": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 8, learnt: true},
			{id: 2, dup: true, x: 8, again: brokerKeeps(0)}, {id: 1, x: 7, learnt: true},
		},
		"without a session nothing comes again": {
			{id: 1, x: 7, learnt: true}, {id: 1, x: 7, again: fresh, learnt: true}, {id: 1, dup: true, x: 7},
		},
		"a broker that says it has no session, and sends again": {
			{id: 1, x: 7, learnt: true}, {id: 2, x: 7, learnt: true},
			{id: 2, dup: true, x: 7, again: fresh}, {id: 3, dup: true, x: 7, learnt: true}, {id: 4, x: 7, learnt: true},
			{id: 4, dup: true, x: 7, again: fresh, crash: true}, {id: 5, dup: true, x: 7, learnt: true}, {id: 6, x: 7, learnt: true},
		},
		"the cursor with which a session began is beyond all commits, and comes too late once": {
			{id: 5, x: 7, again: unknown, learnt: true},
			{id: 5, dup: true, x: 7, again: brokerKeeps(mqtt.SessionGap)}, {id: 6, dup: true, x: 7, learnt: true},
		},
		"a restored backup lacks the commits before the cursor, and knows what the broker has not read": {
			{id: 5, x: 5, learnt: true}, {id: 6, x: 6, learnt: true},
			{id: 5, dup: true, x: 5, again: brokerKeeps(0)}, {id: 7, x: 7, learnt: true},
			{id: 6, dup: true, x: 6, again: brokerKeeps(5), crash: true}, {id: 8, dup: true, x: 8, learnt: true},
		},
		"a restored backup, and a cursor of a later connection, which tells nothing of it": {
			{id: 5, x: 5, learnt: true}, {id: 6, x: 6, learnt: true},
			{id: 6, dup: true, x: 6, again: &mqtt.Cursor{Found: true, Sequence: 5, Before: 2}, crash: true}, {id: 8, dup: true, x: 8, learnt: true},
			{id: 8, dup: true, x: 8, again: &mqtt.Cursor{Found: true, Sequence: 6, Before: 5}}, {id: 6, dup: true, x: 6, learnt: true},
		},
		"the same, after a cursor that came too late": {
			{id: 5, x: 5, learnt: true}, {id: 6, x: 6, learnt: true},
			{id: 6, dup: true, x: 6, again: &mqtt.Cursor{Found: true, Sequence: 3 + 2*mqtt.SessionGap, Before: 2}, crash: true}, {id: 5, dup: true, x: 5},
		},
		"a restored backup from before a session": {
			{id: 5, x: 5, learnt: true}, {id: 6, x: 6, learnt: true},
			{id: 6, dup: true, x: 6, again: &mqtt.Cursor{Found: true, Sequence: 5 + mqtt.SessionGap, Before: 3 + mqtt.SessionGap, Session: 2 + mqtt.SessionGap}, crash: true, learnt: true},
		},
		"a cursor tells nothing about what was acknowledged before its connection": {
			{id: 1, x: 1, learnt: true}, {id: 2, x: 2, learnt: true},
			{id: 3, x: 3, again: brokerKeeps(0), learnt: true}, // the third commit
			{id: 1, dup: true, x: 1, again: brokerKeeps(3), crash: true}, {id: 2, dup: true, x: 2}, {id: 3, dup: true, x: 3, learnt: true},
		},
	} {
		in(name, t, func(t *testing.T) {
			journal := newFakeJournal()
			cfg, m := testConfig()
			r := newRig(t, journal, cfg, m)
			learnt := func() int { return len(r.models["bearing"].learnt()) }
			for i, s := range steps {
				if s.crash {
					r.stop()
					taken := *journal.commits[len(journal.commits)-1].Taken
					m.Model = newFakeModel(2)
					r = newRig(t, journal, cfg, m)
					r.node.committer.unconfirmed.load(taken)
				}
				if s.again != nil {
					r.reconnect(s.again)
				}
				before := learnt()
				msg := &mqtt.Message{ID: s.id, Dup: s.dup, Topic: p7, Payload: []byte(labelled(s.x)), QoS: 1}
				if s.confirm {
					msg.Confirmed = 1 << 40
				}
				r.sendMessage(msg)
				time.Sleep(time.Second)
				if got := learnt() - before; got != map[bool]int{true: 1}[s.learnt] {
					t.Fatalf("step %d, %+v: learnt %d times", i, s, got)
				}
			}
		})
	}
}

// Uncommitted messages leave the set, and the messages that they repeated return to it.
func TestUnconfirmedUndo(t *testing.T) {
	u, conn := testSet(), newFakeOrigin()
	msg := func(id uint16) *mqtt.Message { return &mqtt.Message{ID: id, Dup: true, QoS: 1, From: conn} }
	u.beginConnection(msg(1), mqtt.Cursor{})
	u.add(msg(1), false, true)
	u.add(msg(2), false, true)
	u.commit()
	acknowledge(u)
	if !u.isRepetition(msg(1)) {
		t.Error("a repetition was not known")
	}
	u.add(msg(1), false, true)
	u.add(msg(3), false, true)
	u.commit()
	u.rollback()
	if u.isRepetition(msg(3)) || !u.isRepetition(msg(2)) || !u.isRepetition(msg(1)) {
		t.Errorf("after an undo: %+v", u.messages)
	}
}

// The set is bounded in number, and in age for earlier connections.
func TestUnconfirmedIsBounded(t *testing.T) {
	u, conn := testSet(), newFakeOrigin()
	msg := func(id int) *mqtt.Message {
		return &mqtt.Message{ID: uint16(id), QoS: 1, From: conn, Payload: fmt.Append(nil, id)}
	}
	for i := range maxUnconfirmed + 10 {
		u.isRepetition(msg(i + 1))
		u.add(msg(i+1), false, true)
	}
	if n := u.dropped.Load(); len(u.messages) != maxUnconfirmed || n != 10 {
		t.Errorf("%d messages, %d dropped, want %d and 10", len(u.messages), n, maxUnconfirmed)
	}
	conn = newFakeOrigin()
	u.beginConnection(msg(1), mqtt.Cursor{})
	for i := range 1<<15 + 1<<11 {
		u.isRepetition(msg(i%1000 + 20_000))
	}
	if len(u.messages) != 0 {
		t.Errorf("%d messages of an earlier connection after many of a later one", len(u.messages))
	}
}

func testSet() *unconfirmed {
	return &unconfirmed{dropped: new(atomic.Uint64), size: new(atomic.Int64), newest: new(atomic.Uint64)}
}

// acknowledge is acknowledged without a connection.
func acknowledge(u *unconfirmed) {
	for i := range u.messages {
		u.messages[i].staged = false
	}
	u.removed = u.removed[:0]
}

// A connection that is being closed accepts no acknowledgement, some time before it is
// known to be lost. An unwritten acknowledgement proves nothing.
func TestUnwrittenAcknowledgements(t *testing.T) {
	conn := newFakeOrigin()
	u := testSet()
	msg := func(id uint16) *mqtt.Message {
		return &mqtt.Message{ID: id, Dup: true, QoS: 1, From: conn, Payload: []byte("20.5"), Confirmed: conn.Confirmed()}
	}
	u.beginConnection(msg(1), mqtt.Cursor{})
	settle := func(id uint16) {
		u.add(msg(id), false, true)
		u.commit()
		if !conn.closed {
			conn.write()
		}
		u.acknowledged(true)
	}
	settle(1)
	conn.read()
	conn.closed = true
	settle(2)
	if u.isRepetition(msg(1)) {
		t.Error("an acknowledgement that was read is not known as read")
	}
	if !u.isRepetition(msg(2)) {
		t.Error("an acknowledgement that was not written is taken for one that was read")
	}
}
