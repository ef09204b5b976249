package terminal

import (
	"fmt"
	"strings"
	"time"
)

// Duration formats a duration in its two largest units.
func Duration(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	day := 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.String()
}

// Count returns a number of things: 1 row, 3 rows. It is not inlined, which would make its many
// callers 200 bytes larger.
//
//go:noinline
func Count[N int | uint64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Bytes formats n in the largest unit in which it is at least 1.
func Bytes(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// Sparkline draws values as bars between 0 and the largest of them, in at most
// width characters. A value below 0 counts as 0. Without a value above 0 it is empty.
func Sparkline(values []float64, width int) string {
	const bars = "▁▂▃▄▅▆▇█"
	levels := []rune(bars)
	var top float64
	for _, v := range values {
		top = max(top, v)
	}
	if top == 0 {
		return ""
	}
	n := min(len(values), width)
	var b strings.Builder
	for i := range n {
		v := max(values[i*len(values)/n], 0)
		b.WriteRune(levels[min(int(v/top*float64(len(levels))), len(levels)-1)])
	}
	return b.String()
}
