package mqtt

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

const (
	CursorLevel  = "cursor"        // level of the topic, below that of the node
	grantWithin  = time.Minute     // longest wait for the SUBACK, and in silence for the cursor
	cursorWithin = 2 * time.Second // wait for the cursor after the SUBACK
	maxCursors   = 64              // unacknowledged cursors; above it, a cursor is skipped
	MaxSequence  = 1 << 62
	SessionGap   = 1 << 20 // a new session begins at this distance in the sequence, which exceeds the number of pending commits
)

// Cursor is the number of a commit that the broker keeps as a retained message. At
// the beginning of a connection it shows which acknowledgements of earlier connections
// the broker has read.
//
// After each commit with a message that has no id, the node writes the
// acknowledgements and then publishes the number of the commit on
// <base>/<node>/cursor, retained. A broker reads in order, so the number that it
// keeps is that of the last commit whose acknowledgements it has certainly read.
// After a crash nothing else shows, at a broker that uses packet identifiers again,
// whether equal readings are repetitions or new ones.
//
// A broker without a session of the node sends nothing again. It keeps a cursor
// beyond all commits so far before the first subscription, so that a later start
// does not mistake new messages for those of the earlier session.
//
// The payload has three numbers, or the first of them alone:
//
//	sequence before session
//
// A state file that is restored from a backup has messages of a connection before that of the cursor,
// which says nothing about them.
type Cursor struct {
	Fresh    bool   // the broker had no session of the node
	Found    bool   // the broker keeps a cursor
	Sequence uint64 // of the kept cursor
	Before   uint64 // newest commit before its connection
	Session  uint64 // with which its session began; 0: not known

	Earlier *Cursor // the one that was found last, over an earlier connection; nil: none
}

// Proves reports whether the cursor shows that the broker has read the acknowledgements of a commit.
func (c *Cursor) Proves(sequence uint64) bool {
	return c != nil && (c.Found && sequence > c.Before && sequence <= c.Sequence || c.Earlier.Proves(sequence))
}

// cursorState is a cursor that becomes known once, at the beginning of a connection.
type cursorState struct {
	Cursor
	known   chan struct{} // closed once Cursor is valid
	once    sync.Once
	earlier *Cursor
}

// newCursorState returns the cursor of a connection, which is not known yet; before is that of the
// connection before it, nil for the first one. What that one found counts further: the node uses a cursor
// with the first message of its connection, of which there may have been none, and the broker may have
// lost it since.
func newCursorState(before *cursorState) *cursorState {
	c := &cursorState{known: make(chan struct{})}
	if before == nil {
		return c
	}
	c.earlier = before.earlier
	if isClosed(before.known) && before.Found {
		found := before.Cursor
		found.Earlier, c.earlier = nil, &found
	}
	return c
}

// set sets the cursor; the first call wins.
func (c *cursorState) set(to Cursor) {
	c.once.Do(func() {
		c.Cursor = to
		c.Cursor.Earlier = c.earlier
		close(c.known)
	})
}

// setNewSession sets the cursor at a broker without a session of the node; newest is the
// number of the newest commit.
func (c *cursorState) setNewSession(newest uint64) {
	at := newest + SessionGap
	c.set(Cursor{Fresh: true, Sequence: at, Before: at, Session: at})
}

// setPayload sets the cursor that the broker keeps. 0 is not the number of a commit:
// the cursor was unknown when the previous connection began, and no commit followed.
func (c *cursorState) setPayload(payload []byte) {
	if kept, ok := parseCursor(string(payload)); ok {
		c.set(kept)
	}
}

// parseCursor reads the payload of a cursor. That of an earlier program is one number: where it is far
// beyond all commits, it is that with which a session began, or one soon after.
func parseCursor(payload string) (c Cursor, ok bool) {
	words := strings.Fields(payload)
	if len(words) == 0 || len(words) > 3 {
		return c, false
	}
	for i, to := range []*uint64{&c.Sequence, &c.Before, &c.Session}[:len(words)] {
		n, err := strconv.ParseUint(words[i], 10, 64)
		if err != nil || n >= MaxSequence {
			return c, false
		}
		*to = n
	}
	if len(words) == 1 && c.Sequence > SessionGap {
		c.Session = c.Sequence - SessionGap + 1 // the newest commit was before the session
	}
	c.Found = c.Sequence > 0
	return c, true
}

// append appends the payload of the cursor.
func (c *Cursor) append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, c.Sequence, 10)
	if c.Sequence == 0 {
		return dst
	}
	dst = strconv.AppendUint(append(dst, ' '), c.Before, 10)
	return strconv.AppendUint(append(dst, ' '), c.Session, 10)
}

// readCursor subscribes to the cursor that the broker keeps. SUBACK and cursor come
// after all messages that the broker sends again, and a link may be silent for a while:
// the wait for SUBACK ends with the connection, or after grantWithin.
func (c *Client) readCursor(ctx context.Context, conn *Conn) {
	if isClosed(conn.cursor.known) {
		return
	}
	token := conn.paho.Subscribe(c.CursorTopic, 0, nil)
	defer conn.paho.Unsubscribe(c.CursorTopic)
	late := time.NewTimer(grantWithin)
	defer late.Stop()
	select {
	case <-token.Done():
		if token.Error() == nil && token.(*paho.SubscribeToken).Result()[c.CursorTopic] > 2 {
			c.Log.Debug("the broker refuses the subscription to the cursor", "topic", c.CursorTopic)
			conn.unknownCursor()
			return
		}
	case <-late.C:
	case <-conn.lost:
		return
	case <-ctx.Done():
		return
	}
	conn.awaitCursor(ctx)
}

// awaitCursor waits for the cursor after the SUBACK. A broker that keeps one sends it
// before the answer to a ping, or soon after.
func (conn *Conn) awaitCursor(ctx context.Context) {
	began, arrived := time.Now(), conn.net.arrived.Load()
	conn.net.ping()
	late := time.NewTicker(cursorWithin)
	defer late.Stop()
	for {
		select {
		case <-conn.cursor.known:
			return
		case <-late.C: // a failed request alone may mean that the connection is about to end
			if conn.net.arrived.Load() != arrived || time.Since(began) >= grantWithin {
				conn.unknownCursor()
				return
			}
		case <-conn.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// unknownCursor sets the cursor if the broker has sent none. It overwrites a kept
// cursor, which a later connection would read as one of the current session.
func (conn *Conn) unknownCursor() {
	conn.sendCursor(&Cursor{})
	conn.cursor.set(Cursor{})
}

// beginSession publishes the cursor of a new session before the first subscription.
func (conn *Conn) beginSession() {
	if isClosed(conn.cursor.known) && conn.cursor.Fresh && conn.client.CursorTopic != "" {
		conn.sendCursor(&conn.cursor.Cursor)
	}
}

// newestCommit returns the number of the newest commit.
func (c *Client) newestCommit() uint64 {
	if c.Sequence == nil {
		return 0
	}
	return c.Sequence.Load()
}

// PublishCursor implements Origin.
func (conn *Conn) PublishCursor(c Cursor) {
	if conn.client.CursorTopic == "" || isClosed(conn.lost) {
		return
	}
	for len(conn.cursors) > 0 {
		select {
		case <-conn.cursors[0].done:
			conn.cursors[0].free()
			conn.cursors = conn.cursors[1:]
			continue
		default:
		}
		break
	}
	if len(conn.cursors) >= maxCursors {
		return
	}
	conn.cursors = append(conn.cursors, conn.sendCursor(&c))
}

// sendCursor publishes a cursor.
func (conn *Conn) sendCursor(c *Cursor) *receipt {
	return conn.retain(conn.client.CursorTopic, c.append(nil))
}
