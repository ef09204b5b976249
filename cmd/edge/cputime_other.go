//go:build !unix

package main

import "time"

// cpuTime is 0: this system does not tell how much processor time was used.
func cpuTime() time.Duration { return 0 }
