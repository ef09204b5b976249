//go:build slow && linux && (amd64 || arm64 || arm)

package faults

import (
	"testing"
	"time"
)

// TestEachOperationIsSlow: every operation on the disk takes its time, some a lot.
func TestEachOperationIsSlow(t *testing.T) {
	s := newScenario(t)
	s.play(func(n int, op operation) verdict {
		switch {
		case op.name == "write":
		case n%29 == 0:
			time.Sleep(200 * time.Millisecond)
		default:
			time.Sleep(2 * time.Millisecond)
		}
		return verdict{}
	})
}
