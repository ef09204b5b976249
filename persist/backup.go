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

// Backup copies the state file at path to a new file at to, with mode 0600, checks
// every page of the copy before it names it to, and returns its size. While a daemon
// has the file open, the copy contains the daemon's newest transaction: all samples
// that the daemon has acknowledged so far.
//
// Errors: fs.ErrExist if the path to names a file, ErrForeign, ErrDamaged if the
// state file needs repair, ErrLocked if the file never stays unchanged for the time
// of a copy, and those of the file system.
func Backup(path, to string) (bytes int64, err error) {
	if bytes, err = backup(path, to); err != nil {
		return 0, fmt.Errorf("persist: back up %s: %w", path, err)
	}
	return bytes, nil
}

func backup(path, to string) (int64, error) {
	if _, err := os.Lstat(to); err == nil {
		return 0, fmt.Errorf("%s: %w; give another name, or remove it", to, fs.ErrExist)
	}
	file, err := lock(path, os.O_RDONLY)
	if errors.Is(err, ErrLocked) {
		file, err = copyInUse(path)
	}
	if err != nil {
		return 0, err
	}
	defer release(file)
	return copyChecked(file, to, renameNew)
}

// Restore copies the state file from to path. It keeps the file that path named
// beside it and returns the path of that file, "" if path named none.
//
// Errors: ErrLocked while a daemon has either file open, ErrForeign, ErrDamaged if
// from needs repair, and those of the file system; the file at path is then
// unchanged.
func Restore(from, path string) (aside string, err error) {
	if aside, err = restoreFile(from, path); err != nil {
		return "", fmt.Errorf("persist: restore %s: %w", path, err)
	}
	return aside, nil
}

func restoreFile(from, path string) (aside string, err error) {
	file, info, err := openSound(from)
	if err != nil {
		return "", fmt.Errorf("from %s: %w", from, err)
	}
	defer release(file)
	if there, err := os.Stat(path); err == nil && os.SameFile(info, there) {
		return "", errors.New("the backup is this file itself; nothing was changed")
	}
	path = ResolveLinks(path) // a rename would replace a link, not the file
	rename := renameNew
	before, err := lock(path, os.O_RDWR)
	switch {
	case err == nil:
		defer release(before)
		rename = func(copied, path string) (err error) {
			if aside, err = keepAside(before, path, "replaced"); err == nil {
				err = os.Rename(copied, path)
			}
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w%s", err, Remedy(err))
	}
	_, err = copyChecked(file, path, rename)
	return aside, err
}

// openSound opens a state file that needs no repair. The caller releases it.
func openSound(path string) (*os.File, os.FileInfo, error) {
	file, err := lock(path, os.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = checkSound(file, info.Size())
	}
	if err != nil {
		release(file)
		return nil, nil, err
	}
	return file, info, nil
}

// copyChecked copies a state file to a path and checks the copy, which has the owner of the
// file there, if there is one; after an error it leaves no file. rename gives the copy its name.
func copyChecked(file *os.File, path string, rename func(from, to string) error) (int64, error) {
	to, err := CreateTemp(path)
	if err != nil {
		return 0, fmt.Errorf("%w%s", err, Remedy(err))
	}
	keepOwner(to, path)
	size, err := io.Copy(to, io.NewSectionReader(file, 0, math.MaxInt64))
	if err == nil {
		err = checkSound(to, size)
	}
	defer to.Close()
	if err = cmp.Or(err, to.Sync()); err == nil {
		err = rename(to.Name(), path)
	}
	if err != nil {
		return 0, join(Named(err, path), os.Remove(to.Name()))
	}
	return size, syncDir(filepath.Dir(path))
}

// checkSound returns ErrDamaged with the first problem if a state file needs repair.
func checkSound(file *os.File, size int64) error {
	c, err := examine(file, size)
	if err == nil && len(c.problems) > 0 {
		err = fmt.Errorf("%w (problems: %d), the first: %s; edge verify lists them, edge run repairs them", ErrDamaged, len(c.problems), c.problems[0])
	}
	if err == nil {
		err = checkVersion(c.version) // older versions need no conversion
	}
	return err
}
