package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"edge/online"
)

// errPanic reports that bbolt panicked, or that its map of the file could not be read.
var errPanic = errors.New("bbolt gave up")

// guard runs fn and turns a panic, or a fault in bbolt's memory map, into an error.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return fn()
}

// join joins errors as errors.Join does. It is not inlined, as errors.Join is: so each of its 15
// callers is 350 bytes smaller.
//
//go:noinline
func join(errs ...error) error { return errors.Join(errs...) }

// viewTx runs fn in a read transaction of bbolt, behind a guard.
func viewTx(db *bbolt.DB, fn func(*bbolt.Tx) error) error {
	return guard(func() error { return db.View(fn) })
}

// update runs fn in one transaction, which is durable when update returns nil,
// and invisible when it returns an error. The caller holds s.write.
func (s *Store) update(fn func(*bbolt.Tx) error) error {
	if s.readOnly {
		return fs.ErrPermission
	}
	if err := s.ready(); err != nil {
		return err
	}
	if err := s.ensureAtPath(); err != nil {
		return err
	}
	var id uint32
	err := guard(func() error {
		// Not db.Update: after a fault it would roll back, for which bbolt reads
		// the whole tree in a goroutine that no guard protects.
		tx, err := s.db.Begin(true)
		if err != nil {
			return err
		}
		id = uint32(tx.ID())
		if err := s.fill(tx, fn); err != nil {
			return join(err, tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		return s.opts.Fault("commit")
	})
	if err == nil {
		// Another process may have replaced the file after ensureAtPath.
		if err = s.check(id); err != nil {
			s.rollBackDue, s.lastGood = true, id-1
		}
		if err == nil {
			s.log.folded()
		}
		return err
	}
	if errors.Is(err, errPanic) {
		return s.panicked(err)
	}
	// bbolt writes the meta page, then syncs it. If that sync fails, the
	// transaction is visible although it may never reach the disk, and the next
	// one would overwrite pages that the disk's tree still needs.
	if visible, e := s.newestTx(); e != nil || visible == id {
		s.rollBackDue, s.lastGood = true, id-1
	}
	return s.fullError(err)
}

// panicked ends the use of bbolt, which may hold its own locks for ever now.
func (s *Store) panicked(err error) error {
	if why := s.checkUnchanged(); errors.Is(why, ErrReplaced) {
		return why // another program wrote over the file after ensureAtPath
	}
	s.broken = fmt.Errorf("%w: %w; restart to check and repair the file", ErrDamaged, err)
	return s.broken
}

// fill applies the redo log and the changes of fn to the tree of a transaction.
func (s *Store) fill(tx *bbolt.Tx, fn func(*bbolt.Tx) error) error {
	if err := s.log.fold(tx); err != nil {
		return err
	}
	return join(fn(tx), stamp(tx), s.opts.Fault("write"))
}

// ready rolls back a failed transaction that is visible in the file. The caller
// holds s.write.
func (s *Store) ready() error {
	if s.broken != nil || !s.rollBackDue {
		return s.broken
	}
	if err := s.checkUnchanged(); err != nil && !errors.Is(err, ErrMissing) {
		return err
	}
	return s.rollBack()
}

// rollBack writes the tree of the last transaction that succeeded to a new file,
// every page of it, and syncs that file. The caller holds s.write.
func (s *Store) rollBack() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	for n := range int64(2) {
		m, err := readMeta(s.file, n)
		if err != nil || uint32(m.txid) != s.lastGood {
			continue
		}
		c := surveyUpTo(s.file, info.Size(), m, true, s.log.frames)
		if len(c.problems) > 0 {
			return fmt.Errorf("roll back to the last good transaction: %s: %w", c.problems[0], ErrDamaged)
		}
		if err := s.build(func(db *bbolt.DB) error { return restore(db, c, c.models, c.taken) }); err != nil {
			return fmt.Errorf("roll back to the last good transaction: %w", err)
		}
		s.log.clear(s.log.epoch)
		s.rollBackDue = false
		return nil
	}
	return fmt.Errorf("roll back to the last good transaction: its meta page is gone: %w", ErrDamaged)
}

// newestTx returns the number of the newest transaction that is visible.
func (s *Store) newestTx() (id uint32, err error) {
	err = viewTx(s.db, func(tx *bbolt.Tx) error {
		id = uint32(tx.ID())
		return nil
	})
	return id, err
}

// view runs fn in a read transaction. The caller holds s.write, so that the
// database is not replaced meanwhile.
func (s *Store) view(fn func(tree) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	return viewTx(s.db, func(tx *bbolt.Tx) error { return fn(tree{tx, s.log.latest}) })
}

// overLimit calls fn, during which the file may outgrow its limit.
func (s *Store) overLimit(fn func() error) error {
	s.db.MaxSize = 0
	err := fn()
	s.db.MaxSize = s.opts.maxSize()
	return err
}

// fullError wraps an error that reports a lack of room in ErrFull. It names the file as the user knows
// it, since a new one keeps its temporary name in the errors of its operations.
func (s *Store) fullError(err error) error {
	err = Named(err, s.path)
	if text, ok := strings.CutSuffix(err.Error(), ": "+syscall.EFBIG.Error()); ok && !errors.Is(err, syscall.EFBIG) {
		// Of the error with which a file cannot grow, bbolt keeps the text alone.
		err = fmt.Errorf("%s: %w", strings.ReplaceAll(text, s.path+temporary, s.path), syscall.EFBIG)
	}
	switch {
	case errors.Is(err, berrors.ErrMaxSizeReached):
		return fmt.Errorf("%w: the file has reached its %w of %d bytes; checkpoint, or raise the limit", ErrFull, online.ErrLimit, s.opts.MaxSize)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free space on the disk: %w", ErrFull, err)
	}
	return err
}
