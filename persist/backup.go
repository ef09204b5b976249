package persist

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// Backup copies the state file at path into a new file, which its owner alone
// may read, and checks every page of the copy before it gets its name. Where a
// daemon has the file open, the copy is what its newest transaction left: all
// that it has acknowledged so far.
//
// Errors: fs.ErrExist if there is a file at to, ErrForeign, ErrDamaged if the
// state file needs repair, ErrLocked if it is never still for long enough, and
// those of the file system.
func Backup(path, to string) (bytes int64, err error) {
	if bytes, err = backup(path, to); err != nil {
		return 0, fmt.Errorf("persist: back up %s: %w", path, err)
	}
	return bytes, nil
}

func backup(path, to string) (int64, error) {
	if _, err := os.Lstat(to); err == nil {
		return 0, fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	file, err := lock(path, os.O_RDONLY)
	if errors.Is(err, ErrLocked) {
		file, err = copyInUse(path)
	}
	if err != nil {
		return 0, err
	}
	defer release(file)
	return copySound(file, to, renameNew)
}

// Restore puts the state file from, which stays, in the place of the one at
// path. That one is kept beside it, as aside; "" if there was none.
//
// Errors: ErrLocked while a daemon has either open, ErrForeign, ErrDamaged if
// from needs repair, and those of the file system; path is then as it was.
func Restore(from, path string) (aside string, err error) {
	if aside, err = putBack(from, path); err != nil {
		return "", fmt.Errorf("persist: restore %s: %w", path, err)
	}
	return aside, nil
}

func putBack(from, path string) (aside string, err error) {
	file, err := lock(from, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer release(file)
	info, err := file.Stat()
	if err == nil {
		err = checkSound(file, info.Size())
	}
	if err != nil {
		return "", err
	}
	path = resolve(path) // a rename would replace a link, not the file
	rename := os.Rename
	before, err := lock(path, os.O_RDWR)
	switch {
	case err == nil:
		defer release(before)
		aside, err = keepAside(before, path, "replaced")
	case errors.Is(err, fs.ErrNotExist):
		rename, err = renameNew, nil
	}
	if err != nil {
		return "", err
	}
	_, err = copySound(file, path, rename)
	return aside, err
}

// copySound copies a state file to a path, all of it or, on an error, nothing.
func copySound(file *os.File, path string, rename func(from, to string) error) (int64, error) {
	to, err := CreateTemp(path)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(to, io.NewSectionReader(file, 0, math.MaxInt64))
	if err == nil {
		err = checkSound(to, size)
	}
	defer to.Close()
	if err = cmp.Or(err, to.Sync()); err == nil {
		err = rename(to.Name(), path)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(to.Name()))
	}
	return size, syncDir(filepath.Dir(path))
}

// checkSound returns ErrDamaged, and what is wrong, if a state file needs repair.
func checkSound(file *os.File, size int64) error {
	c, err := examine(file, size)
	if err == nil && len(c.problems) > 0 {
		err = fmt.Errorf("%w in %d places, the first: %s; edge verify lists them, edge run repairs them", ErrDamaged, len(c.problems), c.problems[0])
	}
	if err == nil {
		err = checkVersion(c.version) // every older one reads the same
	}
	return err
}
