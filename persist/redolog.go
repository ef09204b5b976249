package persist

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"go.etcd.io/bbolt"
)

// redoLog mirrors the redo log of the open file. Store.write guards it.
type redoLog struct {
	redo
	at      int64    // file's offset of the first half, 0: the file has no log
	failed  bool     // a frame may be in the file that was reported as failed: the next write is a transaction
	last    uint32   // checksum of the last page of the last frame
	latest  changes  // of all frames, and of later
	later   []change // of commits that become durable with the next
	buffer  []byte   // the payload and the pages of a frame
	written int64    // bytes since Open
	commits int64    // since Open
}

// locateRedo finds the redo log of the database. A log that was copied with its tree
// keeps its frames.
func (s *Store) locateRedo() error {
	l := &s.log
	return viewTx(s.db, func(tx *bbolt.Tx) error {
		l.at = 0
		b, key := tx.Bucket([]byte(bucketRedo)), []byte(keyEpoch)
		if b == nil {
			return nil // an earlier format version
		}
		payload, err := unseal(kindEpoch, bucketLedger, key, tx.Bucket([]byte(bucketLedger)).Get(key))
		if err != nil {
			return damaged("redo log", err)
		}
		epoch, err := decodeNumber(payload)
		if err != nil {
			return damaged("redo log", err)
		}
		if len(b.Get([]byte(keyRedo))) != redoSize {
			return damaged("redo log", errEncoding)
		}
		if epoch != l.epoch {
			l.clear(epoch)
		}
		l.at = (int64(b.Root()) + 1) * pageSize
		dropCache(s.file, l.at, 2*redoPages*pageSize)
		return nil
	})
}

// clear removes the frames from the mirror.
func (l *redoLog) clear(epoch uint64) {
	l.redo, l.failed, l.latest = redo{epoch: epoch}, false, changes{}
	l.latest.add(l.later)
}

// folded begins the next epoch, after a transaction.
func (l *redoLog) folded() {
	if l.at > 0 {
		l.later = nil
		l.clear(l.epoch + 1)
	}
}

// maxLater bounds the changes that wait for the next commit.
const maxLater = 64

// postpone keeps changes for the next commit. It reports false if there are too many.
func (l *redoLog) postpone(list []change) bool {
	if l.at == 0 || len(l.later)+len(list) > maxLater {
		return false
	}
	for _, c := range list {
		c.value = slices.Clone(c.value)
		l.later = append(l.later, c)
	}
	l.latest.add(l.later)
	return true
}

// fold applies the frames to the tree of a transaction, which begins the next epoch.
func (l *redoLog) fold(tx *bbolt.Tx) error {
	if l.at == 0 {
		return nil
	}
	if err := l.latest.apply(tx); err != nil {
		return err
	}
	return putEpoch(tx, l.epoch+1)
}

// fold moves the frames of the redo log to the tree.
func (s *Store) fold() error {
	if l := &s.log; s.readOnly || l.frames == 0 && len(l.later) == 0 && !l.failed {
		return nil
	}
	return s.update(func(*bbolt.Tx) error { return nil })
}

// errNoRoom reports that a commit does not fit in the redo log.
var errNoRoom = errors.New("no room in the redo log")

// appendRedo makes changes, and those that waited, durable in one frame of the redo log. It returns
// errNoRoom if they need a transaction. The caller holds s.write.
func (s *Store) appendRedo(list []change) error {
	l := &s.log
	l.buffer = appendChanges(appendChanges(l.buffer[:0], l.later), list)
	if n := framePages(len(l.buffer)); l.at == 0 || l.failed || n > min(redoFrame, redoPages-l.pages) {
		if cap(l.buffer) > maxBuffer {
			l.buffer = nil
		}
		return errNoRoom
	}
	if err := s.ensureAtPath(); err != nil {
		return err
	}
	payload := len(l.buffer)
	l.buffer = appendFrame(l.buffer, l.epoch, l.frames+1, l.buffer)
	pages := l.buffer[payload:]
	at := l.at + int64(int(l.epoch%2)*redoPages+l.pages)*pageSize
	err := s.opts.Fault("write")
	if err == nil {
		_, err = s.file.WriteAt(pages, at)
	}
	if err == nil {
		err = syncData(s.file)
	}
	if err == nil {
		err = s.opts.Fault("commit")
	}
	if err == nil {
		// Another process may have replaced the file after ensureAtPath.
		err = s.checkUnchanged()
	}
	if err != nil {
		l.failed = true
		return s.fullError(err)
	}
	l.frames++
	l.pages += len(pages) / pageSize
	l.last = crc32.Checksum(pages[len(pages)-pageSize:], castagnoli)
	for _, c := range list {
		l.latest[c.place] = slices.Clone(c.value)
	}
	l.later = l.later[:0]
	l.written += int64(len(pages))
	l.commits++
	return nil
}

// checkRedo compares the last page of the redo log with the one that this store wrote.
func (s *Store) checkRedo() error {
	l := &s.log
	if l.frames == 0 {
		return nil
	}
	sum, err := s.pageChecksum(uint64(l.at/pageSize) + uint64(int(l.epoch%2)*redoPages+l.pages-1))
	if err == nil && sum != l.last {
		err = s.writtenOver()
	}
	return err
}

// loadRedo reads the frames of the open file, and moves them to the tree: those of a
// killed process may not be durable.
func (s *Store) loadRedo() error {
	l := &s.log
	if l.at == 0 {
		return nil
	}
	half := make([]byte, redoPages*pageSize)
	if _, err := s.file.ReadAt(half, l.at+int64(int(l.epoch%2)*len(half))); err != nil {
		return fmt.Errorf("redo log: %w", err)
	}
	l.redo = readHalf(half, l.epoch, anyFrame, l.latest.add)
	if l.frames > 0 {
		l.last = crc32.Checksum(half[(l.pages-1)*pageSize:][:pageSize], castagnoli)
	}
	if s.readOnly || l.frames == 0 {
		return nil
	}
	err := s.overLimit(s.fold)
	if errors.Is(err, ErrFull) {
		return syncData(s.file)
	}
	return err
}
