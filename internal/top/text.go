package top

import (
	"fmt"
	"math"

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
