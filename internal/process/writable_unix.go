//go:build unix

package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Writable returns why a file cannot be written: rights, or a file system that
// was mounted, or has become, read-only. It does not open the file.
func Writable(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return fmt.Errorf("write to %s: %w", path, err)
	}
	return nil
}
