package dataset

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ends are the smallest and the largest value of a feature, how often each came, and the values
// next to them.
type ends struct {
	low, nextLow, nextHigh, high float64
	lows, highs                  int
}

// fillers finds the features of which a value such as -999 stands for a missing one.
type fillers []ends

// add takes the features of a row.
func (f *fillers) add(x []float64) {
	if *f == nil {
		*f = make(fillers, len(x))
		for j := range *f {
			(*f)[j] = ends{low: math.Inf(1), nextLow: math.Inf(1), nextHigh: math.Inf(-1), high: math.Inf(-1)}
		}
	}
	for j, v := range x {
		e := &(*f)[j]
		switch { // NaN, which is missing, is nowhere
		case v < e.low:
			e.low, e.nextLow, e.lows = v, e.low, 1
		case v == e.low:
			e.lows++
		case v < e.nextLow:
			e.nextLow = v
		}
		switch {
		case v > e.high:
			e.high, e.nextHigh, e.highs = v, e.high, 1
		case v == e.high:
			e.highs++
		case v > e.nextHigh:
			e.nextHigh = v
		}
	}
}

// filler returns the value that stands for a missing one, as far as it seems, and how often it came:
// all its digits are 9, and it is further from the other values than these are from each other.
func (e *ends) filler() (text string, n int) {
	for _, c := range []struct {
		value, gap, others float64
		n                  int
	}{{e.low, e.nextLow - e.low, e.high - e.nextLow, e.lows}, {e.high, e.high - e.nextHigh, e.nextHigh - e.low, e.highs}} {
		text = strconv.FormatFloat(c.value, 'f', -1, 64)
		if c.n > 1 && c.others > 0 && c.gap > c.others && len(text) > 2 && strings.Trim(text, "-9") == "" {
			return text, c.n
		}
	}
	return "", 0
}

// fillerWarning describes a feature of which a value seems to stand for a missing one; "" without one.
func (d *File) fillerWarning() string {
	for i, role := range d.roles {
		if role < 0 || d.fillers == nil {
			continue
		}
		if text, n := d.fillers[role].filler(); n > 0 {
			makes := fmt.Sprintf(`if($i==%s) $i=""`, text)
			if d.decimal == ',' { // which the cell may have as well
				makes = fmt.Sprintf(`{v=$i; sub(",",".",v); if(v+0==%s) $i=""}`, text)
			}
			return fmt.Sprintf(`column %s has %s in %d rows, far from its other values: if it stands for a missing one, awk -F'%c' -v OFS='%[4]c' '{for(i=1;i<=NF;i++) %[5]s} 1' FILE >FILE.csv makes empty cells of it`, d.column(i), text, n, d.csv.Comma, makes)
		}
	}
	return ""
}
