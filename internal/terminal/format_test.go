package terminal

import "testing"

// One thing is no things.
func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 rows", 1: "1 row", 2: "2 rows"} {
		if got := Count(n, "row"); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
	if got, want := Count(uint64(1)<<32, "sample"), "4294967296 samples"; got != want { // beyond an int of 32 bits
		t.Errorf("Count(1<<32) is %q, want %q", got, want)
	}
}
