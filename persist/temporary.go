package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// temporary is the suffix of a file that is not complete yet.
const temporary = ".new"

// CreateTemp creates a file beside path, with mode 0600, for the caller to Rename to
// path when the file is complete. The file is locked until it is closed. CreateTemp
// first removes the temporary files of killed processes, and keeps those that
// another process still writes, which are locked.
func CreateTemp(path string) (*os.File, error) {
	removeStale(path)
	for {
		file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+temporary)
		if err != nil {
			return nil, Named(err, path)
		}
		ours, err := lockNamed(file)
		if ours {
			return file, nil
		}
		_ = file.Close()
		if err != nil {
			_ = os.Remove(file.Name())
			return nil, err
		}
		// Another process removed it as stale before it was locked.
	}
}

// Named makes an error of a temporary file one of path, the name that the caller knows.
func Named(err error, path string) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && strings.HasSuffix(at.Path, temporary) {
		at.Path = path
	}
	return err
}

// Rename gives a complete and synced file its name. It syncs the folder, so that the name
// survives a power cut.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncFolder(d)
}

// MakeFolder creates a folder with mode 0700 if there is none. It syncs the folder's parent, so
// that the name survives a power cut.
func MakeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil // if it is no folder, its use returns the error
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// RemoveUnlocked removes a file. It returns ErrLocked if another process has the
// file locked.
func RemoveUnlocked(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer release(file)
	ours, err := lockNamed(file)
	if err == nil && !ours {
		err = fmt.Errorf("persist: remove %s: %w", path, ErrLocked)
	}
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// lockNamed locks a file without waiting. It returns false if another process has
// the file locked, or the file's name now belongs to another file.
func lockNamed(file *os.File) (bool, error) {
	ours, err := tryLock(file, false)
	if err != nil || !ours {
		return false, err
	}
	mine, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, named), err
}

// removeStale removes the temporary files of path that no process has locked.
func removeStale(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || !canLock {
		return
	}
	for _, e := range entries {
		if e.Type().IsRegular() && isTemporary(e.Name(), filepath.Base(path)) {
			_ = RemoveUnlocked(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// isTemporary reports whether name is one that CreateTemp gives a file for base:
// <base>.<digits>.new.
func isTemporary(name, base string) bool {
	digits, before := strings.CutPrefix(name, base+".")
	digits, after := strings.CutSuffix(digits, temporary)
	return before && after && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// renameIfNew is renameNew for systems that cannot check and rename in one step.
func renameIfNew(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}

// ResolveLinks follows symbolic links, also to a file that does not exist yet.
func ResolveLinks(path string) string {
	for range 40 { // Linux's limit
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return path
}
