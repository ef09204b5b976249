package persist

import (
	"bytes"
	"cmp"
	"errors"
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
// pages of its newest transaction: if that transaction is still the newest at the
// end of the copy, the copy contains its whole tree.
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
		return nil, errors.Join(err, to.Close())
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
		return nil, errors.Join(err, to.Close())
	}
	before := metaPages(from)
	_, err = io.Copy(to, io.NewSectionReader(from, 0, math.MaxInt64))
	if err != nil || !bytes.Equal(before, metaPages(from)) || !bytes.Equal(before, metaPages(to)) {
		return nil, errors.Join(err, to.Close())
	}
	return to, nil
}

// metaPages returns the bytes of both meta pages, or as many as the file has.
func metaPages(file io.ReaderAt) []byte {
	b := make([]byte, 2*pageSize)
	n, _ := file.ReadAt(b, 0) // a shorter result differs from a complete one
	return b[:n]
}
