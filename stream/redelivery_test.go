package stream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
	"edge/stream/mqtt"
)

// Messages that were not committed when a node ends leave no trace in the next one.
func TestUncommittedLeavesNoTrace(t *testing.T) {
	for name, fail := range map[string]error{"the journal fails": errDiskFull, "the group waits": nil} {
		in(name, t, func(t *testing.T) {
			journal := newFakeJournal()
			journal.set(fail, nil)
			cfg, m := testConfig()
			cfg.Control.Enabled = true
			cfg.JournalFlush = 10 * time.Second
			if fail != nil {
				cfg.JournalFlush = 0
			}
			node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: journal})
			c, model := node.committer, node.models[0]
			queue := make(chan *item)
			c.in = &commitQueue{items: queue}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c.run(ctx, ctx)
			}()
			conn := newFakeOrigin()
			conn.settle(mqtt.Cursor{Fresh: true})
			classes := model.classes.count()
			msg := &mqtt.Message{Topic: p7, QoS: 1, ID: 1, From: conn, Ack: func() { t.Error("it was acknowledged") }}
			queue <- &item{msg: msg, examples: []example{{from: node.sources[0], to: model, x: []float64{7, 0}, label: "new", weight: 1, key: 9}}}
			synctest.Wait()
			if fail == nil { // the queue has another item, and ctx has ended
				cancel()
				queue <- &item{msg: &mqtt.Message{From: conn, Ack: func() {}}}
			}
			cancel()
			<-ended
			if !model.last.none || model.classes.count() != classes || len(c.unconfirmed.messages) != 0 {
				t.Errorf("latest sample %+v, %d classes, %d messages taken", model.last, model.classes.count(), len(c.unconfirmed.messages))
			}
		})
	}
}

// A request that switches learning off applies in its turn, also if earlier messages
// come again after it.
func TestLearningOffKeepsItsPlace(t *testing.T) {
	in("the connection is lost before anything was committed", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		r := newRig(t, newFakeJournal(), cfg, m)
		r.conn = newFakeOrigin() // its cursor is not known yet
		lost := r.conn
		send := func(dup bool) {
			r.sendMessage(&mqtt.Message{ID: 1, Dup: dup, Topic: p7, Payload: []byte(labelled(7)), QoS: 1})
			r.sendMessage(&mqtt.Message{ID: 2, Dup: dup, Topic: "edge/n1/request/learning/bearing", Payload: []byte("OFF"), QoS: 1})
		}
		send(false)
		time.Sleep(time.Second)
		close(lost.lost)
		time.Sleep(time.Second)
		r.reconnect(brokerKeeps(0))
		send(true)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 7"})
	})
}

// A message of a connection that was lost before its cursor was known comes again,
// whichever of the two is noticed first.
func TestAwaitCursorOfALostConnection(t *testing.T) {
	in("known and lost", t, func(t *testing.T) {
		for range 20 { // select takes either
			r := one(t)
			r.conn = newFakeOrigin()
			r.conn.settle(mqtt.Cursor{})
			close(r.conn.lost)
			r.send(p7, labelled(7))
			time.Sleep(time.Second)
			if got := r.models["bearing"].learnt(); len(got) != 0 {
				t.Fatalf("learnt %q", got)
			}
		}
	})
}

// A session that began after all commits has nothing of the one before; a later
// cursor of the same session proves only the commits up to it.
func TestCursorOfANewSession(t *testing.T) {
	conn, began := newFakeOrigin(), mqtt.Cursor{Fresh: true, Sequence: 3 + 1<<20}
	first := &mqtt.Message{ID: 1, Dup: true, QoS: 1, From: conn}
	kept := mqtt.Cursor{Found: true, Sequence: began.Sequence, Before: began.Sequence, Session: began.Sequence}
	for cursor, left := range map[mqtt.Cursor]int{*brokerKeeps(2): 1, *brokerKeeps(3): 0, kept: 0} {
		u := testSet()
		u.load(online.Taken{Sequence: 3, Messages: []online.TakenMessage{{ID: 1, Sequence: 3}}})
		u.beginConnection(first, cursor)
		if len(u.messages) != left {
			t.Errorf("cursor %+v: %d messages are left, want %d", cursor, len(u.messages), left)
		}
	}
	u := testSet()
	u.load(online.Taken{Sequence: 3, Messages: []online.TakenMessage{{ID: 1, Sequence: 0}}}) // no cursor of its own session proves it
	u.beginConnection(first, kept)
	if len(u.messages) != 0 || u.sequence < began.Sequence {
		t.Errorf("%d messages of an earlier session, sequence %d", len(u.messages), u.sequence)
	}
}

// A message that was not learnt is in the set, and is acknowledged without a commit.
// The next commit has it, and a cursor follows that proves it.
func TestTakenBeforeTheCommit(t *testing.T) {
	u, conn := testSet(), newFakeOrigin()
	msg := func(id uint16) *mqtt.Message { return &mqtt.Message{ID: id, QoS: 1, From: conn} }
	u.beginConnection(msg(1), mqtt.Cursor{Fresh: true})
	u.add(msg(1), false, false)
	conn.write()
	u.acknowledged(false)
	if u.needsCommit || len(u.messages) != 1 || len(conn.cursors) != 0 {
		t.Fatalf("due %v, %d messages, %d cursors", u.needsCommit, len(u.messages), len(conn.cursors))
	}
	u.add(msg(2), true, true)
	if note := u.commit(); len(note.Messages) != 2 {
		t.Fatalf("the commit has %+v", note)
	}
	conn.write()
	u.acknowledged(true)
	if len(conn.cursors) != 1 {
		t.Errorf("%d cursors", len(conn.cursors))
	}
	conn.read()
	u.add(msg(3), true, true)
	if note := u.commit(); len(note.Messages) != 1 || note.Messages[0].ID != 3 {
		t.Errorf("a commit after the broker has read two of three: %+v", note)
	}
}

// A cursor has the newest commit before its connection, and the number of the session where
// the node has heard it.
func TestCursorOfACommit(t *testing.T) {
	const session = 4 + mqtt.SessionGap
	u, last := testSet(), uint64(0)
	u.load(online.Taken{Sequence: 4})
	for i, c := range []struct {
		began         mqtt.Cursor
		first, before uint64 // of the cursor that is published
		session       uint64
	}{
		{mqtt.Cursor{Fresh: true, Sequence: session, Before: session, Session: session}, session + 1, 4, session},
		{mqtt.Cursor{}, session + 1 + 2*mqtt.SessionGap + 1, session + 1, session}, // heard before
		{mqtt.Cursor{Found: true, Sequence: session + 1}, session + 1 + 2*mqtt.SessionGap + 2, session + 1 + 2*mqtt.SessionGap + 1, 0},
	} {
		conn := newFakeOrigin()
		msg := &mqtt.Message{ID: 7, QoS: 1, From: conn, Payload: []byte{byte(i)}}
		u.beginConnection(msg, c.began)
		u.add(msg, false, true)
		u.commit()
		u.acknowledged(true)
		want := mqtt.Cursor{Sequence: c.first, Before: c.before, Session: c.session}
		if len(conn.cursors) != 1 || conn.cursors[0] != want {
			t.Errorf("connection %d: cursors %+v, want %+v", i, conn.cursors, want)
		}
		if last >= want.Sequence {
			t.Errorf("connection %d: the numbers fall", i)
		}
		last = want.Sequence
	}
}

// An acknowledgement that was not written proves nothing.
func TestUnwrittenAcknowledgement(t *testing.T) {
	u, conn := testSet(), newFakeOrigin()
	msg := &mqtt.Message{ID: 1, QoS: 1, From: conn}
	u.beginConnection(msg, mqtt.Cursor{Fresh: true})
	u.add(msg, false, true)
	u.commit()
	conn.write() // another one
	close(conn.lost)
	u.acknowledged(true)
	conn.read()
	u.prune(conn.Confirmed())
	if len(u.messages) != 1 || u.messages[0].position != 0 {
		t.Errorf("%+v", u.messages)
	}
}

// A message that the broker keeps is no repetition of the one that it kept.
func TestRetainedCopyIsAnother(t *testing.T) {
	if keyOf(&mqtt.Message{Topic: "a", Payload: []byte("b")}) == keyOf(&mqtt.Message{Topic: "a", Payload: []byte("b"), Retained: true}) {
		t.Error("they have one key")
	}
}

// Acknowledgements that the broker has read by the end of a connection, also after the
// last message of it, free their messages for the next connection.
func TestReadByTheEndOfAConnection(t *testing.T) {
	u, conn := testSet(), newFakeOrigin()
	msg := &mqtt.Message{ID: 1, QoS: 1, From: conn}
	u.beginConnection(msg, mqtt.Cursor{Fresh: true})
	u.add(msg, false, true)
	u.commit()
	conn.write()
	u.acknowledged(true)
	conn.read()
	u.beginConnection(&mqtt.Message{ID: 1, Dup: true, QoS: 1, From: newFakeOrigin()}, mqtt.Cursor{})
	if len(u.messages) != 0 {
		t.Errorf("%+v", u.messages)
	}
}
