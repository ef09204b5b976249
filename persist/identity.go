package persist

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// identity distinguishes the open file from any other file, and from itself after
// another program has written to it.
type identity struct {
	info   os.FileInfo // inode and device
	size   int64       // as checkPath found it
	folder uint64      // device number of the directory; 0 where the system has no such number
	meta   meta        // of the newest transaction of this store
	root   uint32      // checksum of the root page of meta
}

// recordIdentity stores the identity of the open file.
func (s *Store) recordIdentity() (err error) {
	if s.identity.info, err = s.file.Stat(); err != nil {
		return err
	}
	folder, err := os.Stat(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	s.identity.folder, s.identity.meta = device(folder), newestMeta(s.file)
	s.identity.root, err = s.pageChecksum(s.identity.meta.root)
	return err
}

// pageChecksum returns the CRC of a page, 0 if the file ends before it.
func (s *Store) pageChecksum(page uint64) (uint32, error) {
	if s.scratch.page == nil {
		s.scratch.page = make([]byte, pageSize)
	}
	n, err := s.file.ReadAt(s.scratch.page, int64(page)*pageSize)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return crc32.Checksum(s.scratch.page[:n], castagnoli), err
}

// check returns nil if the path names the open file, and transaction id is the
// newest in it, so that the next start will find the committed records. It costs a
// stat and two small reads. The caller holds s.write.
//
// Errors: ErrMissing, after which the store remains usable; ErrReplaced and
// ErrDamaged, after which it does not.
func (s *Store) check(id uint32) error {
	if s.broken != nil {
		return s.broken
	}
	err := s.checkPath()
	switch {
	case errors.Is(err, ErrReplaced):
		s.broken = s.keepReplaced(err)
		return s.broken
	case err == nil:
		err = s.checkPages(id)
	}
	if errors.Is(err, ErrReplaced) || errors.Is(err, ErrDamaged) {
		s.broken = err
	}
	return err
}

// checkUnchanged is check for the transaction that was the newest when it was checked last.
func (s *Store) checkUnchanged() error { return s.check(uint32(s.identity.meta.txid)) }

// checkPath compares the file at the path with the open one.
func (s *Store) checkPath() error {
	at, err := os.Stat(s.name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s was removed or moved", ErrMissing, s.name)
	case err != nil:
		return fmt.Errorf("%w: stat failed: %w", ErrMissing, err)
	case !os.SameFile(at, s.identity.info):
		return fmt.Errorf("%w: another file is at %s", ErrReplaced, s.name)
	}
	s.identity.size = at.Size()
	return nil
}

// checkPages compares the newest meta page, and the root page, with those that
// this store wrote. The root page contains the ledgers of the models if the models
// are few.
func (s *Store) checkPages(id uint32) error {
	m, err := readMeta(s.file, int64(id%2))
	if errors.Is(err, ErrDamaged) || errors.Is(err, io.EOF) {
		return damaged("overwritten or truncated", err)
	}
	if errors.Is(err, ErrForeign) {
		return s.writtenOver()
	}
	if err != nil {
		return err
	}
	known := m.txid == s.identity.meta.txid
	if uint32(m.txid) != id || known && m != s.identity.meta {
		return s.writtenOver()
	}
	if s.identity.size < int64(m.high)*pageSize {
		return damaged("truncated", fmt.Errorf("%s ends after %d bytes", s.name, s.identity.size))
	}
	root, err := s.pageChecksum(m.root)
	if err != nil {
		return err
	}
	if known && root != s.identity.root {
		return s.writtenOver()
	}
	s.identity.meta, s.identity.root = m, root
	if known {
		return s.checkRedo()
	}
	return nil
}

func (s *Store) writtenOver() error {
	return fmt.Errorf("%w: another program wrote over %s, and every record that only this file contained is lost; start again to use the present contents; "+
		"to put a backup in place, use edge restore, which keeps the previous file", ErrReplaced, s.name)
}

// keepReplaced keeps the open file, whose path names another file now, beside that
// file. It returns replaced, extended by the path of the kept file and the way out.
func (s *Store) keepReplaced(replaced error) error {
	aside, err := keepAside(s.file, s.path, "replaced")
	if err == nil {
		err = syncDir(filepath.Dir(s.path))
	}
	if err != nil {
		return fmt.Errorf("%w; the state of this process cannot be kept beside that file: %w; start again to use the new file: only what it lacks is lost", replaced, err)
	}
	return fmt.Errorf("%w; the state of this process is kept as %s; start again to use the new file, "+
		"or restore the kept one first: edge restore %s %s", replaced, aside, aside, s.name)
}

// ensureAtPath ensures that the next start will find the committed records: if
// the path names no file any more, it writes the open file's contents there anew.
// The caller holds s.write.
func (s *Store) ensureAtPath() error {
	err := s.checkUnchanged()
	if !errors.Is(err, ErrMissing) {
		return err
	}
	return s.rewrite()
}

// checkDestination returns nil if a new file may be renamed to the path: the path
// names the open file, or no file, on the file system of the open file.
func (s *Store) checkDestination() error {
	err := s.checkPath()
	if !errors.Is(err, ErrMissing) {
		return err
	}
	folder := filepath.Dir(s.path)
	info, e := os.Stat(folder)
	switch {
	case e != nil:
		return fmt.Errorf("%w, and its folder is not usable: %w; put the folder back, and the store writes the file anew", err, e)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder; put the folder back, and the store writes the file anew", err, folder)
	case device(info) != s.identity.folder:
		return fmt.Errorf("%w: %s is on another file system than before; mount the previous one again", err, folder)
	}
	if at, e := os.Stat(s.path); e == nil && os.SameFile(at, s.identity.info) {
		return fmt.Errorf("%w: the link to %s is gone, the file is still there; put the link back", err, s.path)
	}
	return nil
}

// install renames a finished file to the path, if the path names the open file or
// no file. A file that another process created there remains.
func (s *Store) install(temp string) error {
	if s.file != nil {
		err := s.checkPath()
		if err == nil {
			return os.Rename(temp, s.path)
		}
		if !errors.Is(err, ErrMissing) {
			return err
		}
	}
	err := renameNew(temp, s.path)
	if err == nil && s.file != nil {
		s.unreported = fmt.Errorf("%w: %s was removed or moved, and is written anew", ErrMissing, s.name)
		s.opts.Log.Error("the state file was removed or moved while it was in use: it is written anew, with all committed records", "path", s.name)
	}
	return err
}
