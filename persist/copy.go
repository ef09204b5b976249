package persist

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"
)

const (
	copyAttempts = 200 // to copy a file that a daemon writes to
	copyPause    = 5 * time.Millisecond
)

// copyInUse copies a file that another process writes to. bbolt never changes the
// pages of its newest transaction, and the store no frame of the redo log: if the newest
// commit is still the newest at the end of the copy, the copy contains all of it.
func copyInUse(path string) (*os.File, error) {
	for range copyAttempts {
		file, err := tryCopy(path)
		if file != nil || err != nil {
			return file, err
		}
		time.Sleep(copyPause)
	}
	return nil, fmt.Errorf("%w, which wrote to the file during each of %d attempts to copy it: stop that process first", ErrLocked, copyAttempts)
}

// tryCopy returns nil if the file changed while it was copied.
func tryCopy(path string) (*os.File, error) {
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := copyStill(from, filepath.Base(path))
	if to == nil {
		return nil, err
	}
	is, errIs := from.Stat()
	named, errNamed := os.Stat(path)
	err = cmp.Or(errIs, errNamed)
	if err != nil || !os.SameFile(is, named) { // a compaction has renamed another file to the path
		return nil, join(err, to.Close())
	}
	return to, nil
}

// copyStill copies a file to a new file without a name, which it creates as
// <name>.verify-* and unlinks. It returns nil if the file changed meanwhile.
func copyStill(from io.ReaderAt, name string) (*os.File, error) {
	to, err := os.CreateTemp("", name+".verify-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(to.Name()); err != nil { // now, so that a killed process leaves no file
		return nil, join(err, to.Close())
	}
	before := newestCommit(from)
	_, err = io.Copy(to, io.NewSectionReader(from, 0, math.MaxInt64))
	if err != nil || before != newestCommit(from) || before != newestCommit(to) {
		return nil, join(err, to.Close())
	}
	return to, nil
}

// commitID identifies a commit: the meta pages, and the redo log after them.
type commitID struct {
	metas [2 * pageSize]byte
	read  int // bytes of metas
	redo  redo
}

// newestCommit identifies the newest commit of a file by its meta pages and its redo log.
func newestCommit(file io.ReaderAt) (id commitID) {
	id.read, _ = file.ReadAt(id.metas[:], 0) // a shorter result differs from a complete one
	m := newestMeta(file)
	size := int64(m.high) * pageSize
	if _, err := file.ReadAt(make([]byte, 1), size-1); err == nil { // else the file is not that long
		id.redo, _ = readRedo(file, size, m, anyFrame)
	}
	return id
}
