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

// identity is what tells the open file from any other, and from itself after
// another program wrote to it.
type identity struct {
	info   os.FileInfo // inode and device
	size   int64       // as named found it
	folder uint64      // device of the directory; 0: the system has none
	meta   meta        // of the newest transaction of this store
	root   uint32      // checksum of the page that meta names as the root
}

// identify notes the identity of the open file.
func (s *Store) identify() (err error) {
	if s.identity.info, err = s.file.Stat(); err != nil {
		return err
	}
	folder, err := os.Stat(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	s.identity.folder, s.identity.meta = device(folder), newestMeta(s.file)
	s.identity.root, err = s.checksum(s.identity.meta.root)
	return err
}

// checksum returns the CRC of a page, 0 if it is not there.
func (s *Store) checksum(page uint64) (uint32, error) {
	if s.page == nil {
		s.page = make([]byte, pageSize)
	}
	n, err := s.file.ReadAt(s.page, int64(page)*pageSize)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return crc32.Checksum(s.page[:n], castagnoli), err
}

// check returns nil if the next start will find at the path what this store
// wrote: the open file, and transaction id as the newest one in it. It costs a
// stat and two small reads. The caller holds s.write.
//
// Errors: ErrMissing, after which the store can be used again; ErrReplaced and
// ErrDamaged, after which it cannot.
func (s *Store) check(id uint32) error {
	if s.broken != nil {
		return s.broken
	}
	err := s.named()
	switch {
	case errors.Is(err, ErrReplaced):
		s.broken = s.superseded(err)
		return s.broken
	case err == nil:
		err = s.untouched(id)
	}
	if errors.Is(err, ErrReplaced) || errors.Is(err, ErrDamaged) {
		s.broken = err
	}
	return err
}

// named compares the file at the path with the open one.
func (s *Store) named() error {
	at, err := os.Stat(s.name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s was removed or moved", ErrMissing, s.name)
	case err != nil:
		return fmt.Errorf("%w: it cannot be looked at: %w", ErrMissing, err)
	case !os.SameFile(at, s.identity.info):
		return fmt.Errorf("%w: another file is at %s", ErrReplaced, s.name)
	}
	s.identity.size = at.Size()
	return nil
}

// untouched compares the newest meta page, and the root page, with those that
// this store wrote. The root page holds the ledgers of the models, as long as
// these are few.
func (s *Store) untouched(id uint32) error {
	m, err := readMeta(s.file, int64(id%2))
	if errors.Is(err, ErrDamaged) || errors.Is(err, io.EOF) {
		return damaged("written over or cut off", err)
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
		return damaged("cut off", fmt.Errorf("%s ends after %d bytes", s.name, s.identity.size))
	}
	root, err := s.checksum(m.root)
	if err != nil {
		return err
	}
	if known && root != s.identity.root {
		return s.writtenOver()
	}
	s.identity.meta, s.identity.root = m, root
	return nil
}

func (s *Store) writtenOver() error {
	return fmt.Errorf("%w: another program wrote over %s, and what only that file held is lost; start again to go on with what was written; "+
		"edge restore, which keeps the file of before, is the way to put a backup in place", ErrReplaced, s.name)
}

// superseded keeps what the open file holds, which has lost its name to another
// file, beside that one.
func (s *Store) superseded(why error) error {
	aside, err := keepAside(s.file, s.path, "replaced")
	if err == nil {
		err = syncDir(filepath.Dir(s.path))
	}
	if err != nil {
		return fmt.Errorf("%w; what this process learnt could not be kept beside it, and is lost: %w", why, err)
	}
	return fmt.Errorf("%w; what this process learnt is kept as %s; start again to go on with the file that is there now, "+
		"or put the other back first: edge restore %s %s", why, aside, aside, s.name)
}

// attach makes sure that what was written is where the next start will look for
// it: where the path names no file any more, the open one is written anew there.
// The caller holds s.write.
func (s *Store) attach() error {
	err := s.check(uint32(s.identity.meta.txid))
	if !errors.Is(err, ErrMissing) {
		return err
	}
	return s.rewrite()
}

// vacant returns nil if a new file may be given the path: it names the open
// file, or nothing, on the file system where the open file was.
func (s *Store) vacant() error {
	err := s.named()
	if !errors.Is(err, ErrMissing) {
		return err
	}
	folder := filepath.Dir(s.path)
	info, e := os.Stat(folder)
	switch {
	case e != nil:
		return fmt.Errorf("%w, and its folder cannot be used: %w; put the folder back, and the state is written to it anew", err, e)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder; put the folder back, and the state is written to it anew", err, folder)
	case device(info) != s.identity.folder:
		return fmt.Errorf("%w: %s is on another file system than before; mount that one again", err, folder)
	}
	if at, e := os.Stat(s.path); e == nil && os.SameFile(at, s.identity.info) {
		return fmt.Errorf("%w: it led to %s, which is still there; put the link back", err, s.path)
	}
	return nil
}

// install gives the path to a finished file: in place of the open file, or where
// there is none. What another process put there stays.
func (s *Store) install(temp string) error {
	if s.file != nil {
		err := s.named()
		if err == nil {
			return os.Rename(temp, s.path)
		}
		if !errors.Is(err, ErrMissing) {
			return err
		}
	}
	err := renameNew(temp, s.path)
	if err == nil && s.file != nil {
		s.absence = fmt.Errorf("%w: %s was removed or moved, and is written anew", ErrMissing, s.name)
		s.opts.Log.Error("the state file was removed or moved while it was in use: it is written anew, with all that was committed", "path", s.name)
	}
	return err
}
