package stream

import (
	"container/list"
	"slices"
	"time"

	"edge/online"
)

// waiterBytes is what a waiting sample takes beside its numbers and its label.
const pendingBytes = 256

const maxDroppedKeys = 4096 // samples; one more, and all are forgotten

// waiting holds the samples of one model that wait for their label, bounded by
// number, bytes and age, and the latest that were taught one, for corrections.
// One goroutine owns it.
//
// Age is counted on a clock of its own: the time that the node has run, which
// goes on after a restart from the latest arrival that the journal knows. Time
// in which the node does not run ages nothing, nor does a clock that is set.
type pendingStore struct {
	limits Pending
	start  time.Time     // monotonic
	base   time.Duration // of the clock at start

	unlabelled, labelled list.List // of *waiter, oldest first
	byKey                map[uint64]*list.Element
	byID                 map[uint64][]uint64 // keys of the samples that share an id
	bytes                int
	droppedKeys          map[uint64]bool // latest samples that were labelled and are not kept any more; at most maxForgotten

	changes []change // since keep
}

// change is a sample that came or went.
type change struct {
	sample *pendingSample
	gone   bool
}

type pendingSample struct {
	sample  online.Pending
	version uint64 // labels that the model had learnt when it was predicted
	seq     uint64 // of its prediction
	fresh   bool   // it came in this run: version and seq are known
	stored  bool   // the journal has it
}

func newPendingStore(limits Pending, recovered []online.Pending, now time.Time) (w *pendingStore, dropped []*pendingSample) {
	w = &pendingStore{limits: limits, start: now, byKey: map[uint64]*list.Element{}, byID: map[uint64][]uint64{}}
	for i := range recovered {
		w.base = max(w.base, recovered[i].Clock)
	}
	for i := range recovered {
		w.insert(&pendingSample{sample: recovered[i], stored: true})
	}
	dropped = w.shrink()
	w.commit()
	return w, dropped
}

func (w *pendingStore) clock(now time.Time) time.Duration { return w.base + now.Sub(w.start) }

// len is the number of samples that wait for their label.
func (w *pendingStore) len() int { return w.unlabelled.Len() }

// list is where a sample is.
func (w *pendingStore) list(p *pendingSample) *list.List {
	if p.sample.Label != "" {
		return &w.labelled
	}
	return &w.unlabelled
}

func (p *pendingSample) size() int {
	return pendingBytes + 8*(len(p.sample.X)+len(p.sample.Probs)) + len(p.sample.Label)
}

func (w *pendingStore) insert(p *pendingSample) {
	if e := w.byKey[p.sample.Key]; e != nil {
		w.remove(e)
	}
	l := w.list(p)
	at := l.Back()
	for at != nil && at.Value.(*pendingSample).sample.Clock > p.sample.Clock {
		at = at.Prev()
	}
	if at != nil {
		w.byKey[p.sample.Key] = l.InsertAfter(p, at)
	} else {
		w.byKey[p.sample.Key] = l.PushFront(p)
	}
	w.changes = append(w.changes, change{p, false})
	w.bytes += p.size()
	id := idPart(p.sample.Key)
	w.byID[id] = append(w.byID[id], p.sample.Key)
}

// limit changes the limits, and returns those that there is no room for.
func (w *pendingStore) setLimits(limits Pending) (dropped []*pendingSample) {
	w.limits = limits
	return w.shrink()
}

// keep makes what has changed stay; undo takes back what has changed since.
func (w *pendingStore) commit() {
	clear(w.changes)
	w.changes = w.changes[:0]
}

func (w *pendingStore) rollback() {
	for _, c := range slices.Backward(w.changes) {
		if c.gone {
			w.insert(c.sample)
		} else if e := w.byKey[c.sample.sample.Key]; e != nil && e.Value == c.sample {
			w.remove(e)
		}
	}
	w.commit()
}

// add takes a sample up and returns those that make room for it. Its age is
// counted from now.
func (w *pendingStore) add(p pendingSample, now time.Time) (kept *pendingSample, dropped []*pendingSample) {
	p.sample.Clock = w.clock(now)
	w.insert(&p)
	return &p, w.shrink()
}

// shrink drops the oldest samples that are too many, those that were taught first.
func (w *pendingStore) shrink() (dropped []*pendingSample) {
	for w.labelled.Len() > w.limits.Corrections || w.labelled.Len() > 0 && w.bytes > int(w.limits.MaxBytes) {
		p := w.remove(w.labelled.Front())
		w.noteDropped(p.sample.Key)
		dropped = append(dropped, p)
	}
	for w.unlabelled.Len() > w.limits.Max || w.unlabelled.Len() > 0 && w.bytes > int(w.limits.MaxBytes) {
		dropped = append(dropped, w.remove(w.unlabelled.Front()))
	}
	return dropped
}

// expire drops the samples that have been here too long.
func (w *pendingStore) expire(now time.Time) (dropped []*pendingSample) {
	for _, l := range []*list.List{&w.unlabelled, &w.labelled} {
		for e := l.Front(); e != nil && w.clock(now)-e.Value.(*pendingSample).sample.Clock > w.limits.TTL; e = l.Front() {
			dropped = append(dropped, w.remove(e))
		}
	}
	return dropped
}

// forgot reports whether the sample under a key was labelled in this run, and is
// not kept any more.
func (w *pendingStore) wasDropped(key uint64) bool { return w.droppedKeys[key] }

// forget notes that a labelled sample is not kept any more.
func (w *pendingStore) noteDropped(key uint64) {
	if len(w.droppedKeys) == maxDroppedKeys || w.droppedKeys == nil {
		w.droppedKeys = map[uint64]bool{}
	}
	w.droppedKeys[key] = true
}

// get returns the sample under a key, nil if there is none. It stays.
func (w *pendingStore) get(key uint64) *pendingSample {
	e := w.byKey[key]
	if e == nil {
		return nil
	}
	return e.Value.(*pendingSample)
}

// sharing returns the keys of the samples that wait under the id of key; of
// those that were taught under it, if none waits.
func (w *pendingStore) sameID(key uint64) (keys []uint64) {
	taught := true
	for _, k := range w.byID[idPart(key)] {
		switch waits := w.get(k).sample.Label == ""; {
		case waits && taught:
			keys, taught = append(keys[:0], k), false
		case waits || taught:
			keys = append(keys, k)
		}
	}
	return keys
}

// take returns the sample under a key, which is here no longer; nil if there is none.
func (w *pendingStore) removeKey(key uint64) *pendingSample {
	e := w.byKey[key]
	if e == nil {
		return nil
	}
	return w.remove(e)
}

func (w *pendingStore) remove(e *list.Element) *pendingSample {
	p := e.Value.(*pendingSample)
	w.list(p).Remove(e)
	delete(w.byKey, p.sample.Key)
	w.changes = append(w.changes, change{p, true})
	w.bytes -= p.size()
	id := idPart(p.sample.Key)
	keys := w.byID[id]
	for i, k := range keys {
		if k == p.sample.Key {
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
