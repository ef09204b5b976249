//go:build slow && linux && (amd64 || arm64 || arm)

package faults

import (
	"testing"
	"time"
)

// TestEachOperationIsSlow delays every operation on the disk, some by 200 ms.
func TestEachOperationIsSlow(t *testing.T) {
	s := newScenario(t)
	s.play(func(n int, op operation) decision {
		switch {
		case op.name == "write":
		case n%29 == 0:
			time.Sleep(200 * time.Millisecond)
		default:
			time.Sleep(2 * time.Millisecond)
		}
		return decision{}
	})
}
