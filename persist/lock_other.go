//go:build !unix || solaris || illumos || aix

package persist

import "os"

// tryLock leaves the locking to bbolt, which does it when it opens the file.
func tryLock(*os.File, bool) (bool, error) { return true, nil }

func release(file *os.File) error { return file.Close() }

func holder(os.FileInfo) string { return "" }

// syncDir does nothing: these systems do not sync directories.
func syncDir(string) error { return nil }
