package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	lockTimeout = time.Second
	lockRetry   = 50 * time.Millisecond
)

// lock opens the file at path and takes bbolt's lock on it: shared if flag only
// reads, exclusive otherwise. The path names the returned file. ErrLocked names
// the process that holds the lock, where the system reports it. ErrForeign refuses a
// device, a pipe or a folder before it is opened: to open a pipe waits for its other end.
func lock(path string, flag int) (*os.File, error) {
	if at, err := os.Stat(path); err == nil && !at.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file (%s); choose another path: %w", at.Mode(), ErrForeign)
	}
	deadline := time.Now().Add(lockTimeout)
	for {
		file, err := os.OpenFile(path, flag, 0o600)
		if err != nil {
			switch reads := flag&os.O_RDWR == 0; {
			case reads && errors.Is(err, fs.ErrPermission):
				err = fmt.Errorf("%w; run this as the owner of the file, or as root", err)
			case reads && errors.Is(err, fs.ErrNotExist):
				err = fmt.Errorf("%w; give the path of a backup, or that of the state file (store.path; edge check prints it)", err)
			}
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
			// The previous holder may have renamed another file to the path.
			if named, err := os.Stat(path); err == nil && os.SameFile(mine, named) {
				return file, nil
			}
		}
		_ = file.Close()
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%w%s: stop it, or choose another state file", ErrLocked, holder(mine))
		}
		if !ours {
			time.Sleep(lockRetry)
		}
	}
}
