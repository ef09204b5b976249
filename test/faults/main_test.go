// Package faults lets the operations of a daemon on its disk fail, stop or be its
// last, panics between the steps of a sample, and cuts the power. Afterwards every
// acknowledged sample must be learnt, once and in order.
package faults

import (
	"fmt"
	"os"
	"testing"

	"edge/internal/exit"
	"edge/test/harness"
)

func TestMain(m *testing.M) {
	if fd := os.Getenv(beSupervised); fd != "" {
		fmt.Fprintln(os.Stderr, superviseMe(fd))
		os.Exit(exit.Runtime)
	}
	harness.Main(m)
}
