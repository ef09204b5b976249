package brokertest

import (
	"os"
	"testing"
	"time"
)

// Patience bounds every wait of these tests. It is never what passes them: a
// machine may be so loaded that what takes milliseconds takes a minute. TestMain
// sets it to a fifth of -timeout, where that is more.
var Patience = 2 * time.Minute

// Missing skips a test for want of something; in CI that is a failure.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Eventually waits until ok reports true, for Patience at most, and reports whether it did.
func Eventually(ok func() bool) bool {
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

// Progress waits until read returns want or more. It gives up when the value has
// stayed the same for Patience, so that the speed of the machine decides nothing.
func Progress(read func() int, want int) bool {
	for last, since := read(), time.Now(); time.Since(since) < Patience; time.Sleep(10 * time.Millisecond) {
		now := read()
		if now >= want {
			return true
		}
		if now != last {
			last, since = now, time.Now()
		}
	}
	return false
}

// Brief returns the size of a test: whole with the build tag slow, less without
// it and with -short, as where a processor is emulated.
func Brief(whole, less int) int {
	if testing.Short() || !Slow {
		return less
	}
	return whole
}
