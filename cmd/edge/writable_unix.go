//go:build unix

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// writable returns why a file cannot be written: rights, or a file system that
// was mounted, or has become, read-only. It does not open the file.
func writable(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return fmt.Errorf("write to %s: %w", path, err)
	}
	return nil
}
