//go:build unix && !solaris && !illumos && !aix

package persist

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// tryLock takes bbolt's lock on the file, shared by readers and exclusive for a
// writer, without waiting. It returns false if another process holds the lock.
func tryLock(file *os.File, shared bool) (bool, error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// canLock reports whether tryLock detects the locks of other processes.
const canLock = true

// release unlocks and closes a file. Closing alone would not unlock a file that
// bbolt has mapped and, after a fault, never unmaps.
func release(file *os.File) error {
	return join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

// device returns the number of the file system that a file is on.
func device(info os.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(stat.Dev)
}

// keepOwner gives a file the owner and the group of the one at path, if there is one and the
// process has the right, as root has. So the daemon can read a file that root has replaced.
func keepOwner(file *os.File, path string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = file.Chown(int(stat.Uid), int(stat.Gid))
	}
}

// holder names the process that holds the lock of a file, "" where the system does
// not report it.
func holder(info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234567 0 EOF
		f := strings.Fields(lines.Text())
		if len(f) > 5 && f[1] == "FLOCK" && strings.HasSuffix(f[5], fmt.Sprintf(":%d", stat.Ino)) {
			return " (process " + f[4] + ")"
		}
	}
	return ""
}

// syncFolder makes a rename in a folder durable. File systems that cannot sync a directory
// return EINVAL, which is ignored.
func syncFolder(d *os.File) error {
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
