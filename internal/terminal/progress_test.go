package terminal

import (
	"bytes"
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
		{&progressLine{name: "gas", total: 40_000_000, done: 30_000_000}, time.Second, "gas  75% 30000000/40000000 (3e+07/s, 0s left)"}, // beyond 32 bits, in per cent
		{&progressLine{name: "gas", total: -1, done: 7}, 2 * time.Second, "gas 7 (3.5/s)"},
	} {
		if got := tc.line.text(tc.after); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// Where the output is no terminal, a long loop writes lines, each after twice the time.
func TestProgressInALog(t *testing.T) {
	var log bytes.Buffer
	p := NewProgress(&log, 1000, "gas")
	l := p.line
	for second := range 200 {
		l.done += 5
		l.draw(l.start.Add(time.Duration(second+1) * time.Second))
	}
	p.Close()
	const want = "gas  15% 150/1000 (5/s, 2m50s left)\ngas  30% 300/1000 (5/s, 2m20s left)\ngas  60% 600/1000 (5/s, 1m20s left)\n"
	if log.String() != want {
		t.Errorf("%q, want %q", log.String(), want)
	}
}
