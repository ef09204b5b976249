package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// compactStep is the number of bytes that bbolt.Compact writes per transaction.
const compactStep = 4 << 20

// rewrite copies the contents of the open file to a new file, without its free space. A
// tiny file may grow by a page or two.
func (s *Store) rewrite() error {
	old := s.db
	return s.build(func(db *bbolt.DB) error { return bbolt.Compact(db, old, compactStep) })
}

// build creates a state file under a temporary name, calls fill to write its contents, and renames
// it to the store's path. There it replaces the open file, which build closes, or becomes the first
// file. A crash at any instant leaves either file whole. The caller holds s.write, or has not
// published s yet.
func (s *Store) build(fill func(*bbolt.DB) error) error {
	if s.file != nil {
		if err := s.checkDestination(); err != nil {
			return err
		}
	}
	temp := s.path + temporary
	folder, err := os.Open(filepath.Dir(s.path)) // not after the rename, where an error leaves the state in doubt
	var file *os.File
	if err == nil {
		defer folder.Close()
		file, err = lock(temp, os.O_RDWR|os.O_CREATE)
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		at.Path = s.path // the caller knows this name
		if full, err := filepath.Abs(s.path); err == nil {
			at.Path = full
		}
	}
	if err != nil {
		return err
	}
	keepOwner(file, s.path)
	db, err := s.fillNew(file, fill)
	if err != nil {
		_ = os.Remove(temp)
		_ = release(file)
		return s.fullError(err)
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
		s.earlier = s.stats()
		_ = s.db.Close() // loses nothing: it was only read
	}
	if err = s.setDatabase(db, file); err == nil {
		err = s.opts.Fault("sync directory")
	}
	if err == nil {
		err = syncFolder(folder)
	}
	if err != nil {
		// After a crash the path may name the old file, which receives no more
		// writes, or the new one: no commit can be durable any more.
		s.broken = fmt.Errorf("%w, or may be: the directory of %s was not synced; restart to check the file: %w", ErrDamaged, s.path, err)
		return s.broken
	}
	return nil
}

// fillNew truncates a file, writes a database to it and syncs it, once: until it has its
// name, no start reads a file that a power cut has left incomplete.
func (s *Store) fillNew(file *os.File, fill func(*bbolt.DB) error) (*bbolt.DB, error) {
	if err := file.Truncate(0); err != nil { // a crash may have ended an earlier attempt
		return nil, err
	}
	adviseRandom(file)
	db, err := openBolt(file, s.opts, false)
	if err != nil {
		return nil, err
	}
	db.NoSync = true
	err = guard(func() error {
		if err := fill(db); err != nil {
			return err
		}
		return db.Update(stamp)
	})
	db.NoSync = false
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
