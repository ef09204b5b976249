//go:build unix

package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Writable returns an error if a path cannot be written: because of its
// permissions, or of a file system that is read-only. It does not open the file.
func Writable(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return fmt.Errorf("write to %s: %w", path, err)
	}
	return nil
}
