package persist

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNew renames a file to a path that names no file; it returns fs.ErrExist
// if the path names one.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // NFS, old kernels
		return renameIfNew(from, to)
	}
	return err
}
