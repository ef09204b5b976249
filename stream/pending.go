package stream

import (
	"container/list"
	"slices"
	"time"

	"edge/online"
)

// pendingBytes is the memory of a pending sample beside its numbers and its label.
const pendingBytes = 256

const maxDroppedKeys = 4096 // keys; at one more, all are dropped

// pendingStore holds the samples of one model that wait for their label, bounded by
// number, bytes and age, and the newest labelled ones, for corrections. One goroutine
// owns it.
//
// Age is measured in running time of the node, which continues after a restart from the
// latest arrival in the journal. Neither a stop of the node nor a change of the clock
// ages a sample.
type pendingStore struct {
	limits Pending
	start  time.Time     // monotonic
	base   time.Duration // of the clock at start

	unlabelled, labelled list.List // of *pendingSample, oldest first
	byKey                map[uint64]*list.Element
	byID                 map[uint64][]uint64 // keys of the samples with one id
	bytes                int
	droppedKeys          map[uint64]bool // keys of labelled samples that are not kept any more; at most maxDroppedKeys

	gone []goneSample // the latest samples of stages that are not kept any more; at most maxGone

	changes []change // since commit
}

// maxGone is the number of samples that made room or waited too long, which a label of a
// range counts.
const maxGone = 4096

// goneSample is a sample that is not kept any more.
type goneSample struct {
	device   string
	from, to int64
	label    string
}

// noteGone notes that a sample of a stage is not kept any more.
func (w *pendingStore) noteGone(p *pendingSample) {
	if p.sample.To == 0 {
		return
	}
	if len(w.gone) == maxGone {
		w.gone = slices.Delete(w.gone, 0, maxGone/4)
	}
	w.gone = append(w.gone, goneSample{p.sample.Device, p.sample.From, p.sample.To, p.sample.Label})
}

// all yields every sample: first those that wait, then the labelled ones, each oldest
// first.
func (w *pendingStore) all(yield func(*pendingSample) bool) {
	for _, l := range []*list.List{&w.unlabelled, &w.labelled} {
		for e := l.Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(*pendingSample)) {
				return
			}
		}
	}
}

// change is an insertion or a removal.
type change struct {
	sample *pendingSample
	gone   bool
}

type pendingSample struct {
	sample online.Pending
	seq    uint64 // of the prediction
	device string // of a fresh sample
	fresh  bool   // the sample came in this run: seq is known
	stored bool   // the journal has the sample
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

// len returns the number of samples that wait for their label.
func (w *pendingStore) len() int { return w.unlabelled.Len() }

// list returns the list of a sample.
func (w *pendingStore) list(p *pendingSample) *list.List {
	if p.sample.Label != "" {
		return &w.labelled
	}
	return &w.unlabelled
}

func (p *pendingSample) size() int {
	return pendingBytes + 8*(len(p.sample.X)+len(p.sample.Probs)) + 4*len(p.sample.Parts) + len(p.sample.Label) + max(len(p.sample.Device), len(p.device))
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

// setLimits changes the limits, and returns the samples that exceed them.
func (w *pendingStore) setLimits(limits Pending) (dropped []*pendingSample) {
	w.limits = limits
	return w.shrink()
}

// commit makes the changes permanent; rollback undoes the changes since.
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

// add inserts a sample and returns the samples that made room for it. The age of the
// sample starts now.
func (w *pendingStore) add(p pendingSample, now time.Time) (kept *pendingSample, dropped []*pendingSample) {
	p.sample.Clock = w.clock(now)
	w.insert(&p)
	return &p, w.shrink()
}

// oldest returns the oldest samples that may go, labelled ones first, until they have a
// number of bytes together.
func (w *pendingStore) oldest(bytes int, may func(*pendingSample) bool) (all []*pendingSample) {
	for _, l := range []*list.List{&w.labelled, &w.unlabelled} {
		for e := l.Front(); e != nil && bytes > 0; e = e.Next() {
			if p := e.Value.(*pendingSample); may(p) {
				all, bytes = append(all, p), bytes-p.size()
			}
		}
	}
	return all
}

// drop removes samples for good: no rollback brings them back.
func (w *pendingStore) drop(gone []*pendingSample) {
	n := len(w.changes)
	for _, p := range gone {
		w.discard(w.byKey[p.sample.Key])
	}
	w.changes = w.changes[:n]
}

// discard removes a sample that is not kept any more, and notes that it was there.
func (w *pendingStore) discard(e *list.Element) *pendingSample {
	p := w.remove(e)
	w.noteGone(p)
	if p.sample.Label != "" {
		w.noteDropped(p.sample.Key)
	}
	return p
}

// shrink removes the oldest samples above the limits, labelled ones first.
func (w *pendingStore) shrink() (dropped []*pendingSample) {
	for w.labelled.Len() > w.limits.Corrections || w.labelled.Len() > 0 && w.bytes > int(w.limits.MaxBytes) {
		dropped = append(dropped, w.discard(w.labelled.Front()))
	}
	for w.unlabelled.Len() > w.limits.Max || w.unlabelled.Len() > 0 && w.bytes > int(w.limits.MaxBytes) {
		dropped = append(dropped, w.discard(w.unlabelled.Front()))
	}
	return dropped
}

// forgetLearnt removes the labelled samples.
func (w *pendingStore) forgetLearnt() []*pendingSample {
	limits := w.limits
	w.limits.Corrections = 0
	dropped := w.shrink()
	w.limits = limits
	return dropped
}

// expire removes the samples that exceed the TTL.
func (w *pendingStore) expire(now time.Time) (dropped []*pendingSample) {
	for _, l := range []*list.List{&w.unlabelled, &w.labelled} {
		for e := l.Front(); e != nil && w.clock(now)-e.Value.(*pendingSample).sample.Clock > w.limits.TTL; e = l.Front() {
			dropped = append(dropped, w.discard(e))
		}
	}
	return dropped
}

// wasDropped reports whether the sample of a key was labelled in this run and is not
// kept any more.
func (w *pendingStore) wasDropped(key uint64) bool { return w.droppedKeys[key] }

// droppedWithID returns the keys of such samples with the id of key.
func (w *pendingStore) droppedWithID(key uint64) (keys []uint64) {
	for k := range w.droppedKeys {
		if idPart(k) == idPart(key) {
			keys = append(keys, k)
		}
	}
	return keys
}

// noteDropped notes that a labelled sample is not kept any more.
func (w *pendingStore) noteDropped(key uint64) {
	if len(w.droppedKeys) == maxDroppedKeys || w.droppedKeys == nil {
		w.droppedKeys = map[uint64]bool{}
	}
	w.droppedKeys[key] = true
}

// get returns the sample of a key, nil without one.
func (w *pendingStore) get(key uint64) *pendingSample {
	e := w.byKey[key]
	if e == nil {
		return nil
	}
	return e.Value.(*pendingSample)
}

// sameID returns the keys of the unlabelled samples with the id of key; without any,
// those of the labelled ones.
func (w *pendingStore) sameID(key uint64) (keys []uint64) {
	labelled := true
	for _, k := range w.byID[idPart(key)] {
		switch waits := w.get(k).sample.Label == ""; {
		case waits && labelled:
			keys, labelled = append(keys[:0], k), false
		case waits || labelled:
			keys = append(keys, k)
		}
	}
	return keys
}

// removeKey removes and returns the sample of a key, nil without one.
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
	if w.byID[id] = slices.DeleteFunc(w.byID[id], func(key uint64) bool { return key == p.sample.Key }); len(w.byID[id]) == 0 {
		delete(w.byID, id)
	}
	return p
}
