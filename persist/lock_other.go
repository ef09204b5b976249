//go:build !unix || solaris || illumos || aix

package persist

import "os"

// tryLock leaves the locking to bbolt, which does it when it opens the file.
func tryLock(*os.File, bool) (bool, error) { return true, nil }

// locks: tryLock tells whether another process has a file locked.
const locks = false

// device returns the number of the file system that a file is on.
func device(os.FileInfo) uint64 { return 0 }

func release(file *os.File) error { return file.Close() }

func holder(os.FileInfo) string { return "" }

// syncDir does nothing: these systems do not sync directories.
func syncDir(string) error { return nil }
