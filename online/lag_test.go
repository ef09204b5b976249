package online

import "testing"

func TestLag(t *testing.T) {
	var l Lag
	for _, c := range []struct {
		place, version uint64
		want           int
	}{{5, 4, 1}, {25, 5, 20}, {26, 5, 0}, {1000, 0, 0}, {4, 5, 0}, {7, 5, 2}} {
		if l.Observe(c.place, c.version); l.Ahead() != c.want {
			t.Errorf("label %d of a sample predicted after %d: %d ahead, want %d", c.place, c.version, l.Ahead(), c.want)
		}
	}
}
