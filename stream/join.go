package stream

import (
	"container/list"
	"time"

	"edge/online"
)

// waiting holds the samples of one model that wait for their label, bounded by
// number and age. One goroutine owns it.
type waiting struct {
	max   int
	ttl   time.Duration
	order list.List // of *waiter, oldest first
	byKey map[uint64]*list.Element
	byID  map[uint64][]uint64 // keys of the samples that share an id
}

type waiter struct {
	sample online.Pending
	since  time.Time // monotonic; for a recovered sample the start of this run
}

func newWaiting(limits Pending, recovered []online.Pending, now time.Time) (w *waiting, evicted []online.Pending) {
	w = &waiting{max: limits.Max, ttl: limits.TTL, byKey: map[uint64]*list.Element{}, byID: map[uint64][]uint64{}}
	for _, p := range recovered {
		if w.max == 0 {
			evicted = append(evicted, p)
			continue
		}
		evicted = append(evicted, w.add(p, now)...)
	}
	return w, evicted
}

func (w *waiting) len() int { return w.order.Len() }

func (w *waiting) has(key uint64) bool { return w.byKey[key] != nil }

// add lets a sample wait and returns those that make room for it.
func (w *waiting) add(p online.Pending, now time.Time) (evicted []online.Pending) {
	if e := w.byKey[p.Key]; e != nil {
		w.remove(e)
	}
	for w.order.Len() >= w.max {
		evicted = append(evicted, w.remove(w.order.Front()))
	}
	w.byKey[p.Key] = w.order.PushBack(&waiter{p, now})
	w.byID[idPart(p.Key)] = append(w.byID[idPart(p.Key)], p.Key)
	return evicted
}

// expire returns the samples that have waited too long.
func (w *waiting) expire(now time.Time) (expired []online.Pending) {
	for e := w.order.Front(); e != nil && now.Sub(e.Value.(*waiter).since) > w.ttl; e = w.order.Front() {
		expired = append(expired, w.remove(e))
	}
	return expired
}

// take returns the sample under a key, which then waits no longer.
func (w *waiting) take(key uint64) (online.Pending, bool) {
	e := w.byKey[key]
	if e == nil {
		return online.Pending{}, false
	}
	return w.remove(e), true
}

// get returns the sample under a key, which goes on waiting.
func (w *waiting) get(key uint64) (online.Pending, bool) {
	e := w.byKey[key]
	if e == nil {
		return online.Pending{}, false
	}
	return e.Value.(*waiter).sample, true
}

// sharing returns the keys of the samples that wait under the id of key.
func (w *waiting) sharing(key uint64) []uint64 { return w.byID[idPart(key)] }

func (w *waiting) remove(e *list.Element) online.Pending {
	p := w.order.Remove(e).(*waiter).sample
	delete(w.byKey, p.Key)
	id := idPart(p.Key)
	keys := w.byID[id]
	for i, k := range keys {
		if k == p.Key {
			keys = append(keys[:i], keys[i+1:]...)
			break
		}
	}
	if len(keys) == 0 {
		delete(w.byID, id)
	} else {
		w.byID[id] = keys
	}
	return p
}
