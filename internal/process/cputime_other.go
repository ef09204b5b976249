//go:build !unix

package process

import "time"

// CPUTime returns 0: this system does not report processor time.
func CPUTime() time.Duration { return 0 }
