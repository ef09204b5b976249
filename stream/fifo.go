package stream

import (
	"container/list"
	"sync"
)

// fifo is a queue that is bounded by messages and by bytes. One goroutine
// waits on ready and pops; any may push.
type fifo[T any] struct {
	maxItems int
	maxBytes int
	size     func(T) int // bytes of an item

	mu    sync.Mutex
	items list.List // of T
	bytes int
	ready chan struct{} // has an element when there may be something to pop
}

func newFifo[T any](maxItems int, maxBytes ByteSize, size func(T) int) *fifo[T] {
	return &fifo[T]{maxItems: maxItems, maxBytes: int(min(maxBytes, 1<<31-1)), size: size, ready: make(chan struct{}, 1)}
}

// push appends v. Where that goes beyond the bounds, the oldest items that
// mayDrop allows make room (nil allows none); if they do not make enough,
// nothing is dropped and v is not taken.
func (q *fifo[T]) push(v T, mayDrop func(T) bool) (taken bool, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, bytes := q.items.Len()+1, q.bytes+q.size(v)
	var out []*list.Element
	for e := q.items.Front(); mayDrop != nil && e != nil && (items > q.maxItems || bytes > q.maxBytes); e = e.Next() {
		if old := e.Value.(T); mayDrop(old) {
			out = append(out, e)
			items, bytes = items-1, bytes-q.size(old)
		}
	}
	if items > q.maxItems || bytes > q.maxBytes {
		return false, 0
	}
	for _, e := range out {
		q.items.Remove(e)
	}
	q.items.PushBack(v)
	q.bytes = bytes
	q.wake()
	return true, len(out)
}

// replace puts v in the place of the item that same allows, if there is one.
func (q *fifo[T]) replace(v T, same func(T) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.items.Front(); e != nil; e = e.Next() {
		if old := e.Value.(T); same(old) {
			q.bytes += q.size(v) - q.size(old)
			e.Value = v
			return true
		}
	}
	return false
}

// unpop puts items back at the front, in their order, whatever the bounds: they
// were inside them a moment ago.
func (q *fifo[T]) unpop(items []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(items) - 1; i >= 0; i-- {
		q.items.PushFront(items[i])
		q.bytes += q.size(items[i])
	}
	if len(items) > 0 {
		q.wake()
	}
}

// pop removes and returns the oldest item.
func (q *fifo[T]) pop() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.items.Front()
	if e == nil {
		return v, false
	}
	v = q.items.Remove(e).(T)
	q.bytes -= q.size(v)
	if q.items.Len() > 0 {
		q.wake()
	}
	return v, true
}

func (q *fifo[T]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.items.Len()
}

func (q *fifo[T]) wake() {
	select {
	case q.ready <- struct{}{}:
	default: // whoever waits will see it anyway
	}
}
