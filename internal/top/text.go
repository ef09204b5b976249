package top

import (
	"fmt"
	"math"
	"strings"

	"github.com/rivo/uniseg"

	"edge/online/score"
)

// number writes a score, a dash if it is not defined.
func number(v score.Real, format string) string {
	if math.IsNaN(float64(v)) {
		return "–"
	}
	return fmt.Sprintf(format, float64(v))
}

// shortCount writes a count in at most five characters.
func shortCount(n uint64) string {
	switch {
	case n < 1e5:
		return fmt.Sprint(n)
	case n < 1e7:
		return fmt.Sprintf("%dk", n/1e3)
	}
	return fmt.Sprintf("%.0fM", float64(n)/1e6)
}

// columns returns the width of a text on a terminal.
func columns(s string) int { return uniseg.StringWidth(s) }

// fit cuts a text to a width.
func fit(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	var b strings.Builder
	used, state := 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width-1 {
			break
		}
		b.WriteString(cluster)
		used += w
	}
	if width > 0 {
		b.WriteString("…")
	}
	return b.String()
}

// pad cuts a text to a width or fills it up on its right.
func pad(s string, width int) string {
	s = fit(s, width)
	return s + strings.Repeat(" ", max(width-columns(s), 0))
}

// padLeft fills a text up on its left.
func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(width-columns(s), 0)) + s
}
