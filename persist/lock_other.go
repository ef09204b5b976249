//go:build !unix || solaris || illumos || aix

package persist

import "os"

// tryLock always succeeds: on these systems only bbolt locks the file, when it
// opens it.
func tryLock(*os.File, bool) (bool, error) { return true, nil }

// canLock reports whether tryLock detects the locks of other processes.
const canLock = false

// device returns the number of the file system that a file is on.
func device(os.FileInfo) uint64 { return 0 }

func keepOwner(*os.File, string) {}

func release(file *os.File) error { return file.Close() }

func holder(os.FileInfo) string { return "" }

// syncFolder does nothing: these systems do not sync directories.
func syncFolder(*os.File) error { return nil }
