package mqtt

import (
	"slices"
	"sync"

	"edge/stream/field"
)

// Queue is a queue that is bounded by number and by bytes. One goroutine receives
// from Ready and calls Pop; any goroutine may call Push. An item that was popped and
// is still held takes up room between Reserve and Release.
type Queue[T any] struct {
	maxItems int
	maxBytes int
	size     func(T) int // bytes of an item

	mu       sync.Mutex
	items    []T // items[head:] are queued, oldest first; a queue in steady use allocates nothing
	head     int
	bytes    int
	reserved struct{ items, bytes int } // room of popped items
	wakes    chan struct{}              // has an element when the queue may not be empty
}

// NewQueue returns an empty queue with these bounds; size returns the bytes of an item.
func NewQueue[T any](maxItems int, maxBytes field.ByteSize, size func(T) int) *Queue[T] {
	return &Queue[T]{maxItems: maxItems, maxBytes: int(min(maxBytes, 1<<31-1)), size: size, wakes: make(chan struct{}, 1)}
}

// Push appends v. If that exceeds the bounds, it discards the oldest items that
// mayDrop allows; if these are not enough, it discards nothing and does not take v.
// If mayDrop is nil, no item is discarded, and reserved room counts. An item alone is taken
// whatever its size: it would never find more room.
func (q *Queue[T]) Push(v T, mayDrop func(T) bool) (taken bool, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, bytes := len(q.items)-q.head+1, q.bytes+q.size(v)
	switch alone := items+q.reserved.items == 1; {
	case alone:
	case mayDrop != nil && (items > q.maxItems || bytes > q.maxBytes):
		return q.makeRoom(v, items, bytes, mayDrop)
	case mayDrop == nil && (items+q.reserved.items > q.maxItems || bytes+q.reserved.bytes > q.maxBytes):
		return false, 0
	}
	q.append(v)
	q.bytes = bytes
	wake(q.wakes)
	return true, 0
}

// makeRoom appends v after discarding items, or changes nothing. items and bytes are
// the totals with v.
func (q *Queue[T]) makeRoom(v T, items, bytes int, mayDrop func(T) bool) (taken bool, dropped int) {
	last := q.head // index after the last discarded item
	for i := q.head; i < len(q.items) && (items > q.maxItems || bytes > q.maxBytes); i++ {
		if mayDrop(q.items[i]) {
			items, bytes = items-1, bytes-q.size(q.items[i])
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
	wake(q.wakes)
	return true, dropped
}

// append adds v at the end. It uses free room at the front again.
func (q *Queue[T]) append(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) && q.head >= len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// replace puts v in the position of the first item for which same is true.
func (q *Queue[T]) replace(v T, same func(T) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, old := range q.items[q.head:] {
		if same(old) {
			q.bytes += q.size(v) - q.size(old)
			q.items[q.head+i] = v
			return true
		}
	}
	return false
}

// each calls use with each item.
func (q *Queue[T]) each(use func(T)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, v := range q.items[q.head:] {
		use(v)
	}
}

// remove drops the items for which gone is true.
func (q *Queue[T]) remove(gone func(T) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(q.items[q.head:]), func(v T) bool {
		if gone(v) {
			q.bytes -= q.size(v)
			return true
		}
		return false
	})
	q.items, q.head = kept, 0
}

// pushFront returns items to the front, in their order, without a check of the bounds:
// they were popped from this queue.
func (q *Queue[T]) pushFront(items []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.head = slices.Concat(items, q.items[q.head:]), 0
	for _, v := range items {
		q.bytes += q.size(v)
	}
	if len(items) > 0 {
		wake(q.wakes)
	}
}

// Ready returns a channel that has an element when the queue may not be empty.
func (q *Queue[T]) Ready() <-chan struct{} { return q.wakes }

// Pop removes and returns the oldest item.
func (q *Queue[T]) Pop() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return v, false
	}
	var none T
	v, q.items[q.head] = q.items[q.head], none
	q.bytes -= q.size(v)
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else {
		wake(q.wakes)
	}
	return v, true
}

// Reserve counts the room of a popped item as used, with that many bytes.
func (q *Queue[T]) Reserve(size int) { q.count(1, size) }

// Release ends Reserve of an item of that size.
func (q *Queue[T]) Release(size int) { q.count(-1, -size) }

// Crowded reports whether reserved items take up more than 1/n of the room.
func (q *Queue[T]) Crowded(n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reserved.items > q.maxItems/n || q.reserved.bytes > q.maxBytes/n
}

// count changes the reserved room.
func (q *Queue[T]) count(items, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved.items += items
	q.reserved.bytes += bytes
}

// Len returns the number of queued items.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) - q.head
}

// wake makes sure that a channel of capacity 1 has an element. It is not inlined: it has many callers.
//
//go:noinline
func wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
