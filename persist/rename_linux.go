package persist

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNew renames a file to a path where there is none; fs.ErrExist if there
// is one.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // NFS, old kernels
		return renameIfNew(from, to)
	}
	return err
}
