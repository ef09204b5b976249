//go:build unix

package process

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time used by this process, 0 if it is unknown.
func CPUTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
