package mqtt

import (
	"slices"
	"sync"

	"edge/stream/codec"
)

// fifo is a queue that is bounded by messages and by bytes. One goroutine
// waits on ready and pops; any may push. What has been popped and is kept for
// later takes up room until it is released.
type Queue[T any] struct {
	maxItems int
	maxBytes int
	Size     func(T) int // bytes of an item

	mu       sync.Mutex
	items    []T // items[head:] wait, the oldest first; a queue that has warmed up allocates nothing
	head     int
	bytes    int
	reserved struct{ items, bytes int } // popped, and not released
	wakes    chan struct{}              // has an element when there may be something to pop
}

func NewQueue[T any](maxItems int, maxBytes codec.ByteSize, size func(T) int) *Queue[T] {
	return &Queue[T]{maxItems: maxItems, maxBytes: int(min(maxBytes, 1<<31-1)), Size: size, wakes: make(chan struct{}, 1)}
}

// push appends v. Where that goes beyond the bounds, the oldest items that
// mayDrop allows make room; if they do not make enough, nothing is dropped and
// v is not taken. Where mayDrop is nil nothing makes room, and what is kept
// takes up room as well.
func (q *Queue[T]) Push(v T, mayDrop func(T) bool) (taken bool, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, bytes := len(q.items)-q.head+1, q.bytes+q.Size(v)
	if mayDrop != nil && (items > q.maxItems || bytes > q.maxBytes) {
		return q.makeRoom(v, items, bytes, mayDrop)
	}
	if mayDrop == nil && (items+q.reserved.items > q.maxItems || bytes+q.reserved.bytes > q.maxBytes) {
		return false, 0
	}
	q.append(v)
	q.bytes = bytes
	q.wake()
	return true, 0
}

// force makes room for v, or changes nothing. The arguments are what the queue
// would be with v.
func (q *Queue[T]) makeRoom(v T, items, bytes int, mayDrop func(T) bool) (taken bool, dropped int) {
	last := q.head // item after the last one that goes
	for i := q.head; i < len(q.items) && (items > q.maxItems || bytes > q.maxBytes); i++ {
		if mayDrop(q.items[i]) {
			items, bytes = items-1, bytes-q.Size(q.items[i])
			last, dropped = i+1, dropped+1
		}
	}
	if items > q.maxItems || bytes > q.maxBytes {
		return false, 0
	}
	head := last
	for i := last - 1; i >= q.head; i-- {
		if !mayDrop(q.items[i]) {
			head--
			q.items[head] = q.items[i]
		}
	}
	clear(q.items[q.head:head])
	q.head = head
	q.append(v)
	q.bytes = bytes
	q.wake()
	return true, dropped
}

// append adds v at the end. Room that was left at the front is used again.
func (q *Queue[T]) append(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) && q.head >= len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// replace puts v in the place of the item that same allows, if there is one.
func (q *Queue[T]) replace(v T, same func(T) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, old := range q.items[q.head:] {
		if same(old) {
			q.bytes += q.Size(v) - q.Size(old)
			q.items[q.head+i] = v
			return true
		}
	}
	return false
}

// unpop puts items back at the front, in their order, whatever the bounds: they
// were inside them a moment ago.
func (q *Queue[T]) pushFront(items []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.head = slices.Concat(items, q.items[q.head:]), 0
	for _, v := range items {
		q.bytes += q.Size(v)
	}
	if len(items) > 0 {
		q.wake()
	}
}

// ready returns a channel that has an element when there may be something to pop.
func (q *Queue[T]) Ready() <-chan struct{} { return q.wakes }

// pop removes and returns the oldest item.
func (q *Queue[T]) Pop() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return v, false
	}
	var none T
	v, q.items[q.head] = q.items[q.head], none
	q.bytes -= q.Size(v)
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else {
		q.wake()
	}
	return v, true
}

// keep lets an item that was popped take up room.
func (q *Queue[T]) Reserve(v T) { q.count(1, q.Size(v)) }

// release ends keep, of an item of that size.
func (q *Queue[T]) Release(size int) { q.count(-1, -size) }

// crowded reports whether what is kept takes up more than half of the room.
func (q *Queue[T]) Crowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return 2*q.reserved.items > q.maxItems || 2*q.reserved.bytes > q.maxBytes
}

func (q *Queue[T]) count(items, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved.items += items
	q.reserved.bytes += bytes
}

func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) - q.head
}

func (q *Queue[T]) wake() {
	select {
	case q.wakes <- struct{}{}:
	default: // whoever waits will see it anyway
	}
}
