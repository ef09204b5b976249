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
func (s *pendingStore) noteGone(p *pendingSample) {
	if p.sample.To == 0 {
		return
	}
	if len(s.gone) == maxGone {
		s.gone = slices.Delete(s.gone, 0, maxGone/4)
	}
	s.gone = append(s.gone, goneSample{p.sample.Device, p.sample.From, p.sample.To, p.sample.Label})
}

// all yields every sample: first those that wait, then the labelled ones, each oldest
// first.
func (s *pendingStore) all(yield func(*pendingSample) bool) {
	for _, l := range []*list.List{&s.unlabelled, &s.labelled} {
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

func newPendingStore(limits Pending, recovered []online.Pending, now time.Time) (s *pendingStore, dropped []*pendingSample) {
	s = &pendingStore{limits: limits, start: now, byKey: map[uint64]*list.Element{}, byID: map[uint64][]uint64{}}
	for i := range recovered {
		s.base = max(s.base, recovered[i].Clock)
	}
	for i := range recovered {
		s.insert(&pendingSample{sample: recovered[i], stored: true})
	}
	dropped = s.shrink()
	s.commit()
	return s, dropped
}

func (s *pendingStore) clock(now time.Time) time.Duration { return s.base + now.Sub(s.start) }

// len returns the number of samples that wait for their label.
func (s *pendingStore) len() int { return s.unlabelled.Len() }

// list returns the list that holds a sample: of those that are kept for a correction, or of those
// that wait for their label.
func (s *pendingStore) list(p *pendingSample) *list.List {
	if p.sample.Label != "" {
		return &s.labelled
	}
	return &s.unlabelled
}

func (p *pendingSample) size() int {
	return pendingBytes + 8*(len(p.sample.X)+len(p.sample.Probs)) + 4*len(p.sample.Parts) + len(p.sample.Label) + max(len(p.sample.Device), len(p.device))
}

func (s *pendingStore) insert(p *pendingSample) {
	if e := s.byKey[p.sample.Key]; e != nil {
		s.remove(e)
	}
	l := s.list(p)
	at := l.Back()
	for at != nil && at.Value.(*pendingSample).sample.Clock > p.sample.Clock {
		at = at.Prev()
	}
	if at != nil {
		s.byKey[p.sample.Key] = l.InsertAfter(p, at)
	} else {
		s.byKey[p.sample.Key] = l.PushFront(p)
	}
	s.changes = append(s.changes, change{p, false})
	s.bytes += p.size()
	id := idPart(p.sample.Key)
	s.byID[id] = append(s.byID[id], p.sample.Key)
}

// setLimits changes the limits, and returns the samples that exceed them.
func (s *pendingStore) setLimits(limits Pending) (dropped []*pendingSample) {
	s.limits = limits
	return s.shrink()
}

// commit makes the changes permanent; rollback undoes the changes since.
func (s *pendingStore) commit() {
	clear(s.changes)
	s.changes = s.changes[:0]
}

func (s *pendingStore) rollback() {
	for _, c := range slices.Backward(s.changes) {
		if c.gone {
			s.insert(c.sample)
		} else if e := s.byKey[c.sample.sample.Key]; e != nil && e.Value == c.sample {
			s.remove(e)
		}
	}
	s.commit()
}

// add inserts a sample and returns the samples that made room for it. The age of the
// sample starts now.
func (s *pendingStore) add(p pendingSample, now time.Time) (kept *pendingSample, dropped []*pendingSample) {
	p.sample.Clock = s.clock(now)
	s.insert(&p)
	return &p, s.shrink()
}

// oldest returns the oldest samples that may go, labelled ones first, until they have a
// number of bytes together.
func (s *pendingStore) oldest(bytes int, may func(*pendingSample) bool) (all []*pendingSample) {
	for _, l := range []*list.List{&s.labelled, &s.unlabelled} {
		for e := l.Front(); e != nil && bytes > 0; e = e.Next() {
			if p := e.Value.(*pendingSample); may(p) {
				all, bytes = append(all, p), bytes-p.size()
			}
		}
	}
	return all
}

// drop removes samples for good: no rollback brings them back.
func (s *pendingStore) drop(gone []*pendingSample) {
	n := len(s.changes)
	for _, p := range gone {
		s.discard(s.byKey[p.sample.Key])
	}
	s.changes = s.changes[:n]
}

// discard removes a sample that is not kept any more, and notes that it was there.
func (s *pendingStore) discard(e *list.Element) *pendingSample {
	p := s.remove(e)
	s.noteGone(p)
	if p.sample.Label != "" {
		s.noteDropped(p.sample.Key)
	}
	return p
}

// shrink removes the oldest samples above the limits, labelled ones first.
func (s *pendingStore) shrink() (dropped []*pendingSample) {
	for s.labelled.Len() > s.limits.Corrections || s.labelled.Len() > 0 && s.bytes > int(s.limits.MaxBytes) {
		dropped = append(dropped, s.discard(s.labelled.Front()))
	}
	for s.unlabelled.Len() > s.limits.Max || s.unlabelled.Len() > 0 && s.bytes > int(s.limits.MaxBytes) {
		dropped = append(dropped, s.discard(s.unlabelled.Front()))
	}
	return dropped
}

// forgetLearnt removes the labelled samples.
func (s *pendingStore) forgetLearnt() []*pendingSample {
	limits := s.limits
	s.limits.Corrections = 0
	dropped := s.shrink()
	s.limits = limits
	return dropped
}

// expire removes the samples that exceed the TTL.
func (s *pendingStore) expire(now time.Time) (dropped []*pendingSample) {
	for _, l := range []*list.List{&s.unlabelled, &s.labelled} {
		for e := l.Front(); e != nil && s.clock(now)-e.Value.(*pendingSample).sample.Clock > s.limits.TTL; e = l.Front() {
			dropped = append(dropped, s.discard(e))
		}
	}
	return dropped
}

// wasDropped reports whether the sample of a key was labelled in this run and is not
// kept any more.
func (s *pendingStore) wasDropped(key uint64) bool { return s.droppedKeys[key] }

// droppedWithID returns the keys of such samples with the id of key.
func (s *pendingStore) droppedWithID(key uint64) (keys []uint64) {
	for k := range s.droppedKeys {
		if idPart(k) == idPart(key) {
			keys = append(keys, k)
		}
	}
	return keys
}

// noteDropped notes that a labelled sample is not kept any more.
func (s *pendingStore) noteDropped(key uint64) {
	if len(s.droppedKeys) == maxDroppedKeys || s.droppedKeys == nil {
		s.droppedKeys = map[uint64]bool{}
	}
	s.droppedKeys[key] = true
}

// get returns the sample of a key, nil without one.
func (s *pendingStore) get(key uint64) *pendingSample {
	e := s.byKey[key]
	if e == nil {
		return nil
	}
	return e.Value.(*pendingSample)
}

// sameID returns the keys of the unlabelled samples with the id of key; without any,
// those of the labelled ones.
func (s *pendingStore) sameID(key uint64) (keys []uint64) {
	labelled := true
	for _, k := range s.byID[idPart(key)] {
		switch waits := s.get(k).sample.Label == ""; {
		case waits && labelled:
			keys, labelled = append(keys[:0], k), false
		case waits || labelled:
			keys = append(keys, k)
		}
	}
	return keys
}

// removeKey removes and returns the sample of a key, nil without one.
func (s *pendingStore) removeKey(key uint64) *pendingSample {
	e := s.byKey[key]
	if e == nil {
		return nil
	}
	return s.remove(e)
}

func (s *pendingStore) remove(e *list.Element) *pendingSample {
	p := e.Value.(*pendingSample)
	s.list(p).Remove(e)
	delete(s.byKey, p.sample.Key)
	s.changes = append(s.changes, change{p, true})
	s.bytes -= p.size()
	id := idPart(p.sample.Key)
	if s.byID[id] = slices.DeleteFunc(s.byID[id], func(key uint64) bool { return key == p.sample.Key }); len(s.byID[id]) == 0 {
		delete(s.byID, id)
	}
	return p
}
