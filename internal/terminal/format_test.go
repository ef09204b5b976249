package terminal

import "testing"

// One thing is no things.
func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 rows", 1: "1 row", 2: "2 rows"} {
		if got := Count(n, "row"); got != want {
			t.Errorf("Count(%d) is %q, want %q", n, got, want)
		}
	}
}
