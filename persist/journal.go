package persist

import (
	"encoding/binary"
	"fmt"
	"strings"

	"edge/online"
)

// journalFill is the fraction of a journal's page that bbolt fills before it splits
// the page: records are only appended, so free space in the middle would be wasted.
const journalFill = 0.95

// isSequence reports whether values are only appended to a bucket.
func isSequence(bucket string) bool {
	return strings.HasPrefix(bucket, journalBucket("")) || strings.HasPrefix(bucket, pendingBucket(""))
}

// numberKey returns the key of record or arrival n: big-endian, as bbolt sorts bytes.
func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// keyNumber returns the number of a key that numberKey made, and 0, which is no
// number of a record or an arrival, for any other key.
func keyNumber(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

// Commit makes the whole of c durable at once, for several models at
// once, and sets each record's Seq: per model 1, 2, 3, … without gaps. It adds the
// samples of c.Wait, each at the end of its model's pending samples, before it
// drops those of c.Forget, so that a sample in both is dropped.
//
// After an error no part of c is visible or durable for this Store, every Seq is
// unchanged and the caller can repeat the call. The only exception is a crash
// during Commit: the next process may find the complete commit on the disk, and
// its keys are then seen.
//
// Errors: ErrFull if the disk or Options.MaxSize is exhausted; in the latter case the error
// is online.ErrLimit as well, and a commit that then only drops pending samples frees their
// pages at once, over the limit where it must. ErrMissing if the
// state file was removed or moved; the store writes it anew as soon as that is
// safe, and if no error has reported the loss by then, the next Commit returns
// ErrMissing once. ErrReplaced if the path names another file; the store can then
// only be closed.
//
// Each call costs a page and a sync, where c is small and the redo log has room for it,
// else two syncs, so callers should group records. With c.Later it costs nothing: c
// becomes durable with the next call, or with a checkpoint or Close, and an error of that
// call does not undo it. An empty commit only ensures that the file exists.
func (s *Store) Commit(c *online.Commit) error {
	s.write.Lock()
	defer s.write.Unlock()
	err := s.unreported
	switch {
	case err != nil:
		s.unreported = nil
	case len(c.Records)+len(c.Wait)+len(c.Forget)+len(c.Marks)+len(c.Windows) == 0 && c.Taken == nil:
		err = s.ensureFile()
	case s.commitFailed && onlyForgets(c):
		err = s.overLimit(func() error { return s.commit(c, inTree) })
	case c.Later:
		err = s.commit(c, later)
	default:
		err = s.commit(c, inLog)
	}
	if s.commitFailed {
		s.unreported = nil // an earlier error has reported it
	}
	if s.commitFailed = err != nil; err != nil {
		return fmt.Errorf("persist: commit %d records to %s: %w%s", len(c.Records), s.name, err, diskRemedy(err))
	}
	return nil
}

// ensureFile ensures that the file exists, and returns ErrMissing once if it did not.
func (s *Store) ensureFile() error {
	err := s.ready()
	if err == nil {
		err = s.ensureAtPath()
	}
	if err == nil && !s.commitFailed {
		err, s.unreported = s.unreported, nil
	}
	return err
}

// onlyForgets reports whether a commit only drops pending samples.
func onlyForgets(c *online.Commit) bool {
	return len(c.Forget) > 0 && len(c.Records)+len(c.Wait)+len(c.Marks)+len(c.Windows) == 0 && c.Taken == nil
}

func (s *Store) commit(c *online.Commit, how way) error {
	seqs := make([]uint64, len(c.Records))
	err := s.change(how, func(ds *drafts) error {
		for i := range c.Records {
			d, err := ds.of(c.Records[i].Model)
			if err != nil {
				return err
			}
			if seqs[i], err = d.appendRecord(&c.Records[i].Event); err != nil {
				return fmt.Errorf("record %d of %s: %w", i, d.name, err)
			}
		}
		for i := range c.Wait {
			d, err := ds.of(c.Wait[i].Model)
			if err != nil {
				return err
			}
			if err := d.addPending(&c.Wait[i]); err != nil {
				return fmt.Errorf("pending sample %d of %s: %w", i, d.name, err)
			}
		}
		for i := range c.Forget {
			d, err := ds.of(c.Forget[i].Model)
			if err != nil {
				return err
			}
			if err := d.dropPending(c.Forget[i].Key); err != nil {
				return fmt.Errorf("drop sample %d of %s: %w", i, d.name, err)
			}
		}
		for _, m := range c.Marks {
			d, err := ds.of(m.Model)
			if err != nil {
				return err
			}
			d.ledger.mark = m.Bits
		}
		for i := range c.Windows {
			if err := ds.putWindows(&c.Windows[i]); err != nil {
				return err
			}
		}
		if c.Taken != nil {
			return ds.putTaken(c.Taken)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, seq := range seqs {
		c.Records[i].Seq = seq
	}
	return nil
}

func (d *draft) appendRecord(ev *online.Event) (seq uint64, err error) {
	if err := checkEvent(ev); err != nil {
		return 0, err
	}
	bucket := journalBucket(d.name)
	seq = d.ledger.last + 1
	d.store.scratch.payload = appendRecord(d.store.scratch.payload[:0], ev)
	d.put(kindRecord, bucket, numberKey(seq), d.store.scratch.payload)
	d.ledger.last = seq
	d.keys = append(d.keys, seenKey{ev.Key, seq})
	return seq, nil
}

// truncate deletes the records up to seq.
func (d *draft) truncate(seq uint64) error {
	bucket := journalBucket(d.name)
	for ; d.first <= seq && d.first <= d.ledger.last; d.first++ {
		if err := d.delete(bucket, numberKey(d.first)); err != nil {
			return err
		}
	}
	return nil
}
