package stream

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
)

// linked is a connection with a network that takes everything.
func linked() *connection {
	conn := &connection{
		client: &client{counters: new(counters), cursorTopic: "edge/n1/cursor"}, lost: make(chan struct{}),
		net: newFrameConn(sink{Reader: strings.NewReader("")}, 100, time.Second),
	}
	conn.cursor.known = make(chan struct{})
	return conn
}

// answered lets the broker have read all acknowledgements over conn.
func answered(conn *connection) {
	conn.net.acks.ping()
	conn.net.acks.pong()
}

// What was not committed when a node ends leaves no trace in what it hands over.
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
			c.in = queue
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c.run(ctx)
			}()
			conn := linked()
			conn.cursor.settle(true, false, 0)
			classes := model.classes.count()
			msg := &message{topic: p7, qos: 1, id: 1, conn: conn, ack: func() { t.Error("it was acknowledged") }}
			queue <- &item{msg: msg, lessons: []lesson{{from: node.sources[0], to: model, x: []float64{7, 0}, label: "new", weight: 1, key: 9}}}
			synctest.Wait()
			if fail == nil { // the queue has another item, and ctx has ended
				cancel()
				queue <- &item{msg: &message{conn: conn, ack: func() {}}}
			}
			cancel()
			<-ended
			if !model.last.none || model.classes.count() != classes || len(c.unconfirmed.messages) != 0 {
				t.Errorf("latest sample %+v, %d classes, %d messages taken", model.last, model.classes.count(), len(c.unconfirmed.messages))
			}
		})
	}
}

// A request that switches learning off applies in its turn, also where what came
// before it comes again after it.
func TestLearningOffKeepsItsPlace(t *testing.T) {
	in("the connection is lost before anything was committed", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.Control.Enabled = true
		r := newRig(t, newFakeJournal(), cfg, m)
		r.conn = linked() // its cursor is not known yet
		lost := r.conn
		send := func(dup bool) {
			r.sendMessage(&message{id: 1, dup: dup, topic: p7, payload: []byte(labelled(7)), qos: 1})
			r.sendMessage(&message{id: 2, dup: dup, topic: "edge/n1/request/learning/bearing", payload: []byte("OFF"), qos: 1})
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

// A message of a connection that was lost while the cursor was waited for comes
// again, whatever became known first.
func TestMeetLostConnection(t *testing.T) {
	in("known and lost", t, func(t *testing.T) {
		for range 20 { // select takes either
			r := one(t)
			r.conn = linked()
			r.conn.cursor.settle(false, false, 0)
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
	conn := linked()
	conn.cursor.begin(3)
	if !conn.cursor.fresh || conn.cursor.sequence <= 3 {
		t.Fatalf("%+v", &conn.cursor)
	}
	first := &message{id: 1, dup: true, qos: 1, conn: conn}
	for sequence, left := range map[uint64]int{2: 1, 3: 0, conn.cursor.sequence: 0} {
		u := testSet()
		u.load(online.Taken{Sequence: 3, Messages: []online.TakenMessage{{ID: 1, Sequence: 3}}})
		u.begin(first, brokerKeeps(sequence))
		if len(u.messages) != left {
			t.Errorf("cursor %d: %d messages are left, want %d", sequence, len(u.messages), left)
		}
	}
	u := testSet()
	u.load(online.Taken{Sequence: 3, Messages: []online.TakenMessage{{ID: 1, Sequence: 0}}}) // no cursor of its own session proves it
	u.begin(first, brokerKeeps(conn.cursor.sequence))
	if len(u.messages) != 0 || u.sequence < conn.cursor.sequence {
		t.Errorf("%d messages of an earlier session, sequence %d", len(u.messages), u.sequence)
	}
}

// What taught nothing is in the set, and is acknowledged without a commit. The
// next commit has it, and a cursor follows that proves it.
func TestTakenBeforeTheCommit(t *testing.T) {
	u, conn := testSet(), linked()
	msg := func(id uint16) *message { return &message{id: id, qos: 1, conn: conn} }
	u.begin(msg(1), &cursor{fresh: true})
	u.take(msg(1), false, false)
	conn.net.acknowledge(1, 1)
	u.acknowledged(false)
	if u.due || len(u.messages) != 1 || len(conn.cursors) != 0 {
		t.Fatalf("due %v, %d messages, %d cursors", u.due, len(u.messages), len(conn.cursors))
	}
	u.take(msg(2), true, true)
	if note := u.commit(); len(note.Messages) != 2 {
		t.Fatalf("the commit has %+v", note)
	}
	conn.net.acknowledge(2, 1)
	u.acknowledged(true)
	if len(conn.cursors) != 1 {
		t.Errorf("%d cursors", len(conn.cursors))
	}
	answered(conn)
	u.take(msg(3), true, true)
	if note := u.commit(); len(note.Messages) != 1 || note.Messages[0].ID != 3 {
		t.Errorf("a commit after the broker has read two of three: %+v", note)
	}
}

// An acknowledgement that was not written proves nothing.
func TestUnwrittenAcknowledgement(t *testing.T) {
	u, conn := testSet(), linked()
	msg := &message{id: 1, qos: 1, conn: conn}
	u.begin(msg, &cursor{fresh: true})
	u.take(msg, false, true)
	u.commit()
	conn.net.acknowledge(9, 1) // another one
	close(conn.lost)
	u.acknowledged(true)
	answered(conn)
	u.prune(conn.confirmed())
	if len(u.messages) != 1 || u.messages[0].position != 0 {
		t.Errorf("%+v", u.messages)
	}
}

// A message that the broker keeps is no repetition of the one that it kept.
func TestRetainedCopyIsAnother(t *testing.T) {
	if keyOf(&message{topic: "a", payload: []byte("b")}) == keyOf(&message{topic: "a", payload: []byte("b"), retained: true}) {
		t.Error("they have one key")
	}
}

// The learner's word about a class comes late: it may have been removed since.
func TestRemovedClassStaysRemoved(t *testing.T) {
	cfg, m := testConfig()
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	classes := node.models[0].classes
	if err := classes.declare("x"); err != nil {
		t.Fatal(err)
	}
	if err := classes.remove("x"); err != nil {
		t.Fatal(err)
	}
	node.Notify(online.Notice{Kind: online.NoticeClassAdded, Model: m.Name, Detail: "x"})
	if err := classes.remove("x"); err == nil {
		t.Error("it is known again")
	}
}

// An answer is waited for as long as bytes arrive, and then no longer than quiet.
func TestAwaits(t *testing.T) {
	for name, c := range map[string]struct {
		arrives time.Duration // bytes do, once a second
		answer  time.Duration
		want    bool
		ends    time.Duration
	}{
		"at once":                     {0, time.Second, true, time.Second},
		"nothing arrives":             {0, time.Minute, false, 2 * time.Second},
		"behind much else":            {20 * time.Second, 19500 * time.Millisecond, true, 19500 * time.Millisecond},
		"what arrives ends":           {10500 * time.Millisecond, time.Hour, false, 14 * time.Second},
		"for ever, without an answer": {time.Hour, time.Hour, false, time.Minute},
	} {
		in(name, t, func(t *testing.T) {
			conn, answer, began := linked(), make(chan struct{}), time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer time.Sleep(2 * time.Second) // until nothing arrives any more
			defer cancel()
			go func() {
				for time.Since(began) < c.arrives && ctx.Err() == nil {
					time.Sleep(time.Second - time.Millisecond)
					conn.net.arrived.Add(1)
					time.Sleep(time.Millisecond)
				}
			}()
			late := time.AfterFunc(c.answer, func() { close(answer) })
			defer late.Stop()
			got := conn.awaits(ctx, answer, 2*time.Second)
			if took := time.Since(began); got != c.want || took != c.ends {
				t.Errorf("%v after %v, want %v after %v", got, took, c.want, c.ends)
			}
		})
	}
}

// A reconnect for the sake of redelivery waits until the broker has read the
// acknowledgements.
func TestAllAcknowledgementsAreRead(t *testing.T) {
	var a acks
	a.wrote()
	a.published(40_000)
	a.wrote()
	read := a.all()
	a.ping()
	isRead := func() bool {
		select {
		case <-read:
			return true
		default:
			return false
		}
	}
	if a.answered(40_000); isRead() {
		t.Error("one of two is enough")
	}
	if a.pong(); !isRead() {
		t.Error("the answer to a later ping is not enough")
	}
	select {
	case <-a.all():
	default:
		t.Error("what was read already is waited for")
	}
}

// A message that arrives after a ping answers it: the broker's own answer may be
// behind much else.
func TestMessageAnswersPing(t *testing.T) {
	packet := "\x30\x04\x00\x01ax" // after a CONNACK
	f := conversation(t, strings.NewReader("\x20\x02\x00\x00"+packet+packet), 100)
	f.take = func(*message) {}
	f.Write([]byte{packetPingreq << 4, 0})
	buf := make([]byte, 10)
	io.ReadFull(f, buf[:4]) // CONNACK
	if n, err := f.Read(buf); err != nil || string(buf[:n]) != string(pong) {
		t.Errorf("read % x, %v", buf[:n], err)
	}
	if n, err := f.Read(buf); err == nil {
		t.Errorf("read % x more", buf[:n])
	}
}

// A cursor of 0 is that of no commit. It does not tell which messages come again.
func TestUnknownCursor(t *testing.T) {
	for payload, want := range map[string]bool{"0": false, "1": true, "7": true} {
		c := &cursor{known: make(chan struct{})}
		c.answer([]byte(payload))
		if c.found != want || c.fresh {
			t.Errorf("cursor %s: found %v, fresh %v", payload, c.found, c.fresh)
		}
	}
}

// What the broker has read by the end of a connection, also after the last message
// that came over it, is not held against the next one.
func TestReadByTheEndOfAConnection(t *testing.T) {
	u, conn := testSet(), linked()
	msg := &message{id: 1, qos: 1, conn: conn}
	u.begin(msg, &cursor{fresh: true})
	u.take(msg, false, true)
	u.commit()
	conn.net.acknowledge(1, 1)
	u.acknowledged(true)
	answered(conn)
	u.begin(&message{id: 1, dup: true, qos: 1, conn: linked()}, &cursor{})
	if len(u.messages) != 0 {
		t.Errorf("%+v", u.messages)
	}
}
