package stream

import (
	"sync/atomic"

	"edge/stream/field"
)

// commitQueue hands messages from the worker to the committer. It is bounded by their number and
// by the bytes of what they were decoded to: a message of many rows takes several times its
// payload. One message is taken whatever its size.
type commitQueue struct {
	items chan *item
	most  int64 // bytes
	bytes atomic.Int64
	room  chan struct{} // has an element after the committer has taken a message
}

// Bounds of the queue.
const (
	maxQueued      = 64      // messages
	maxQueuedBytes = 2 << 20 // or those of a smaller ring
)

func newCommitQueue(ring field.ByteSize) *commitQueue {
	return &commitQueue{items: make(chan *item, maxQueued), most: min(maxQueuedBytes, int64(ring)), room: make(chan struct{}, 1)}
}

// open returns the channel to send the item to, or nil while there is no room for its bytes. Only
// the worker sends. It calls sent afterwards.
func (q *commitQueue) open(it *item) chan<- *item {
	if waiting := q.bytes.Load(); waiting > 0 && waiting+int64(it.bytes) > q.most {
		return nil
	}
	return q.items
}

// offer sends the item, if there is room for it.
func (q *commitQueue) offer(it *item) bool {
	to := q.open(it)
	if to == nil {
		return false
	}
	bytes := it.bytes // the item belongs to the committer after the send
	select {
	case to <- it:
		q.sent(bytes)
		return true
	default:
		return false
	}
}

// sent counts an item of that many bytes.
func (q *commitQueue) sent(bytes int) { q.bytes.Add(int64(bytes)) }

// taken makes room after the committer has received the item.
func (q *commitQueue) taken(it *item) {
	q.bytes.Add(-int64(it.bytes))
	wake(q.room)
}
