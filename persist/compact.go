package persist

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// compactStep is how many bytes of a compaction are written per transaction.
const compactStep = 4 << 20

// compact gives the free space of the state file back to the disk. A tiny file
// may grow by a page or two.
func (s *Store) compact() error {
	if err := s.rewrite(); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}

// rewrite writes all that the open file holds to a new one.
func (s *Store) rewrite() error {
	old := s.db
	return s.build(func(db *bbolt.DB) error { return bbolt.Compact(db, old, compactStep) })
}

// build writes a new state file under a temporary name, lets fill put into it
// what it shall hold, and renames it into the place of the one before, which it
// closes, or to where there is no file. A crash at any instant leaves the one or the other, whole. The caller
// holds s.write, or is alone.
func (s *Store) build(fill func(*bbolt.DB) error) error {
	if s.file != nil {
		if err := s.vacant(); err != nil {
			return err
		}
	}
	temp := s.path + temporary
	file, err := lock(temp, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	db, err := s.fillNew(file, fill)
	if err != nil {
		_ = os.Remove(temp)
		_ = release(file)
		return roomError(err, s.opts.MaxSize)
	}
	err = s.opts.Fault("rename")
	if err == nil {
		err = s.install(temp)
	}
	if err != nil {
		_ = os.Remove(temp)
		_ = db.Close()
		return err
	}
	if s.db != nil {
		s.before = s.stats()
		_ = s.db.Close() // nothing to lose: it was read only
	}
	if err = s.use(db, file); err == nil {
		err = s.opts.Fault("sync directory")
	}
	if err == nil {
		err = syncDir(filepath.Dir(s.path))
	}
	if err != nil {
		// Whether the disk will name the old file or the new one is open, and the
		// old one is frozen: nothing may be promised any more.
		s.broken = fmt.Errorf("%w, or may be: sync the directory of %s, restart to check: %w", ErrDamaged, s.path, err)
		return s.broken
	}
	return nil
}

// fillNew empties a file, fills it as a database and syncs it.
func (s *Store) fillNew(file *os.File, fill func(*bbolt.DB) error) (*bbolt.DB, error) {
	if err := file.Truncate(0); err != nil { // of an attempt that a crash ended
		return nil, err
	}
	db, err := openBolt(file, s.opts, false)
	if err != nil {
		return nil, err
	}
	err = guard(func() error {
		if err := fill(db); err != nil {
			return err
		}
		return db.Update(stamp)
	})
	if err == nil {
		err = s.opts.Fault("sync file")
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		if !errors.Is(err, errPanic) {
			_ = db.Close()
		}
		return nil, err
	}
	return db, nil
}

// lock opens the file at path and takes bbolt's lock on it: shared if flag only
// reads, exclusive otherwise. The file that it returns is the one that path
// names.
func lock(path string, flag int) (*os.File, error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		file, err := os.OpenFile(path, flag, 0o600)
		if err != nil {
			return nil, err
		}
		ours, err := tryLock(file, flag&os.O_RDWR == 0)
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock: %w", err)
		}
		mine, err := file.Stat()
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		if ours {
			// Whoever held it may have renamed another file into its place.
			if named, err := os.Stat(path); err == nil && os.SameFile(mine, named) {
				return file, nil
			}
		}
		_ = file.Close()
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%w%s: stop it, or use another state file", ErrLocked, holder(mine))
		}
		if !ours {
			time.Sleep(lockRetry)
		}
	}
}
