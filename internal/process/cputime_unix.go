//go:build unix

package process

import (
	"syscall"
	"time"
)

// CPUTime is the processor time that this process has used; 0 if the system
// does not tell.
func CPUTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
