package persist

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the written data of a file durable whose length has not changed.
func syncData(file *os.File) error {
	for {
		if err := unix.Fdatasync(int(file.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// adviseRandom announces reads of single pages of a file, so that the kernel reads no more.
func adviseRandom(file *os.File) { _ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM) }

// dropCache drops a part of a file, 0 bytes to its end, from the kernel's cache. The cache
// keeps data that were read or written at once in pieces of up to 2 MiB, and counts a page
// written to a piece as the whole of it.
func dropCache(file *os.File, at, length int64) {
	_ = unix.Fadvise(int(file.Fd()), at, length, unix.FADV_DONTNEED)
}

const (
	aheadMost = 32 << 20  // bytes that readAhead announces, at most
	aheadStep = 128 << 10 // bytes that the kernel reads at once where its settings are the usual ones
)

// readAhead makes the kernel read a file, whose pages are needed in any order, into its cache:
// in the order of the disk, many pages at once.
func readAhead(file *os.File, size int64) {
	for at := int64(0); at < min(size, aheadMost); at += aheadStep {
		_ = unix.Fadvise(int(file.Fd()), at, aheadStep, unix.FADV_WILLNEED)
	}
}
