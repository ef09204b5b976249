package mqtt

import (
	"context"
	"strconv"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const (
	CursorLevel  = "cursor"        // of the topic below that of the node
	cursorWithin = 2 * time.Second // without anything from the broker, and for the cursor once it has answered
	maxCursors   = 64              // on their way at once; full, a later one has to do
	MaxSequence  = 1 << 62
	sessionGap   = 1 << 20 // in the sequence, at which a session begins: more than there are commits on their way
)

// cursor is what the broker tells at the begin of a connection about the
// messages that were acknowledged over the one before.
//
// After each commit with a message that has no id, the node writes its
// acknowledgements and then publishes the number of the commit, retained, on
// <base>/<node>/cursor. A broker reads in order: the number that it keeps is
// that of the last commit whose acknowledgements it has certainly read. After a
// crash nothing else tells, where the broker uses identifiers again, whether
// equal readings are repetitions or new ones.
//
// A broker that has no session of the node sends nothing again. It keeps a cursor
// beyond all commits so far before it is asked for any message, so that what a
// later start knows of the session before is not held against this one.
type Cursor struct {
	Fresh    bool   // the broker has no session of before
	Found    bool   // it keeps a cursor
	Sequence uint64 // of that
}

// cursorState is a cursor that becomes known once.
type cursorState struct {
	Cursor
	known chan struct{} // closed once cursor is valid
	once  sync.Once
}

func newCursorState() *cursorState { return &cursorState{known: make(chan struct{})} }

// settle sets the cursor; the first call decides.
func (c *cursorState) set(fresh, found bool, sequence uint64) {
	c.once.Do(func() {
		c.Cursor = Cursor{fresh, found, sequence}
		close(c.known)
	})
}

// begin is settle where the broker has no session of before; sequence is that of
// the newest commit.
func (c *cursorState) setNewSession(sequence uint64) { c.set(true, false, sequence+sessionGap) }

// answer reads what the broker keeps. 0 is no commit's number: the cursor was
// unknown when the connection before began, and no commit has followed.
func (c *cursorState) setPayload(payload []byte) {
	if n, err := strconv.ParseUint(string(payload), 10, 64); err == nil && n < MaxSequence {
		c.set(false, n > 0, n)
	}
}

// readCursor asks for the cursor that the broker keeps. The answer to the request
// comes after all that the broker sends again, and the cursor with it: a request
// is waited for as long as something arrives, the cursor for cursorWithin.
func (c *Client) readCursor(ctx context.Context, conn *Conn) {
	select {
	case <-conn.cursor.known:
		return
	default:
	}
	token := conn.paho.Subscribe(c.CursorTopic, 0, nil)
	defer conn.paho.Unsubscribe(c.CursorTopic)
	if conn.await(ctx, token.Done(), cursorWithin) && token.Error() == nil && token.(*paho.SubscribeToken).Result()[c.CursorTopic] > 2 {
		c.Log.Debug("the broker does not let the node read its cursor", "topic", c.CursorTopic)
		conn.unknownCursor()
		return
	}
	late := time.NewTimer(cursorWithin)
	defer late.Stop()
	select {
	case <-conn.cursor.known:
	case <-late.C: // an error of the request alone may be that the connection is about to end
		conn.unknownCursor()
	case <-conn.lost:
	case <-ctx.Done():
	}
}

// unknownCursor is settle where the broker has sent no cursor. One that it keeps
// all the same must not be read later, as one of a session that has begun since.
func (conn *Conn) unknownCursor() {
	conn.sendCursor(0)
	conn.cursor.set(false, false, 0)
}

// beginSession lets the broker keep a cursor before it is asked for messages,
// where it has no session of before.
func (conn *Conn) beginSession() {
	select {
	case <-conn.cursor.known:
		if conn.cursor.Fresh && conn.client.CursorTopic != "" {
			conn.sendCursor(conn.cursor.Sequence)
		}
	default:
	}
}

// newestCommit returns the sequence of the newest commit.
func (c *Client) newestCommit() uint64 {
	if c.Sequence == nil {
		return 0
	}
	return c.Sequence.Load()
}

// PublishCursor implements origin.
func (conn *Conn) PublishCursor(sequence uint64) {
	if conn.client.CursorTopic == "" {
		return
	}
	select {
	case <-conn.lost:
		return
	default:
	}
	for len(conn.cursors) > 0 {
		select {
		case <-conn.cursors[0].Done():
			conn.cursors[0].Free()
			conn.cursors = conn.cursors[1:]
			continue
		default:
		}
		break
	}
	if len(conn.cursors) >= maxCursors {
		return
	}
	conn.cursors = append(conn.cursors, conn.sendCursor(sequence))
}

func (conn *Conn) sendCursor(sequence uint64) delivery {
	return conn.publish(&Publication{Topic: conn.client.CursorTopic, Payload: strconv.AppendUint(nil, sequence, 10), QoS: 1, Retained: true})
}
