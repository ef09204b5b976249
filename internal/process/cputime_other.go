//go:build !unix

package process

import "time"

// CPUTime is 0: this system does not tell how much processor time was used.
func CPUTime() time.Duration { return 0 }
