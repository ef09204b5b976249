package terminal

import (
	"testing"
	"time"
)

func TestProgressText(t *testing.T) {
	for _, tc := range []struct {
		line  *progressLine
		after time.Duration
		want  string
	}{
		{&progressLine{name: "gas", total: 1000, done: 250}, 5 * time.Second, "gas  25% 250/1000 (50/s, 15s left)"},
		{&progressLine{name: "gas", total: 1000}, 0, "gas   0% 0/1000 (0/s, 0s left)"},
		{&progressLine{name: "gas", total: 10, done: 12}, time.Second, "gas 120% 12/10 (12/s, 0s left)"},
		{&progressLine{name: "gas", total: -1, done: 7}, 2 * time.Second, "gas 7 (3.5/s)"},
	} {
		if got := tc.line.text(tc.after); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
