package online

import "context"

// backlog counts groups of records, and about the bytes of their memory.
type backlog struct{ groups, bytes int }

// Learn hands committed records over, in order. The loop keeps the slice. It
// blocks while the queue is full (the back-pressure) and returns ctx.Err() if it is full
// when ctx has ended; the records are then learnt from the journal after the next start.
// While the loop recovers it keeps no records, but reads them from the journal.
func (lp *Loop) Learn(ctx context.Context, records []Record) error {
	if left, err := lp.leave(ctx, records); left {
		return err
	}
	size := memoryOf(records)
	if err := lp.reserve(ctx, size); err != nil {
		return err
	}
	select {
	case lp.in <- records:
		return nil
	default:
	}
	select {
	case lp.in <- records:
		return nil
	case <-ctx.Done():
		lp.finished(size)
		return ctx.Err()
	}
}

// recordSize is about the memory of a record beyond Event.Size, in bytes.
const recordSize = 220

// memoryOf is about the memory of records, in bytes.
func memoryOf(records []Record) int {
	n := recordSize * len(records)
	for i := range records {
		n += records[i].Size()
	}
	return n
}

// reserve waits until a group of that many bytes may wait to be learnt, or ctx ends, and counts
// it as waiting.
func (lp *Loop) reserve(ctx context.Context, size int) error {
	lp.mu.Lock()
	defer lp.mu.Unlock()
	full := func() bool {
		return lp.opts.QueueBytes > 0 && lp.waiting.groups > 0 && lp.waiting.bytes+size > lp.opts.QueueBytes
	}
	if full() {
		defer context.AfterFunc(ctx, lp.wake)()
		for full() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			lp.drained.Wait()
		}
	}
	lp.waiting.groups++
	lp.waiting.bytes += size
	return nil
}

// finished ends the wait of a group of that many bytes.
func (lp *Loop) finished(size int) {
	lp.mu.Lock()
	defer lp.mu.Unlock()
	lp.waiting.groups--
	lp.waiting.bytes -= size
	lp.drained.Broadcast()
}

// Busy reports whether records that were handed over, or are in the journal, wait to be learnt.
func (lp *Loop) Busy() bool {
	lp.mu.Lock()
	defer lp.mu.Unlock()
	return lp.waiting.groups > 0 || lp.recovering()
}

// Idle blocks until all records handed over have been learnt, or ctx ends. It returns
// ErrRecovering at once while the loop recovers.
func (lp *Loop) Idle(ctx context.Context) error {
	if lp.recovering() {
		return ErrRecovering
	}
	defer context.AfterFunc(ctx, lp.wake)()
	lp.mu.Lock()
	defer lp.mu.Unlock()
	for lp.waiting.groups > 0 && ctx.Err() == nil {
		lp.drained.Wait()
	}
	return ctx.Err()
}
