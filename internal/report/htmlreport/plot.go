package htmlreport

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// plot is one SVG drawing in the units of its viewBox.
type plot struct {
	Label         string // for a screen reader
	Width, Height px
	XName, YName  string
	XTicks        []tick
	YTicks        []tick
	Lines         []line
	Dots          []dot
	Bars          []bar
	Names         []tick // class names at the left of bars

	x, y                     axis
	Left, Right, Top, Bottom px // edges of the area between the axes
}

// px is a coordinate, written with one decimal.
type px float64

// String returns the coordinate with one decimal.
func (v px) String() string { return strconv.FormatFloat(float64(v), 'f', 1, 64) }

// axis maps values from lo to hi to coordinates.
type axis struct{ lo, hi float64 }

type tick struct {
	At   px
	Text string
	Full string // where Text is cut short
}

// line is a path in the style of a CSS class.
type line struct {
	Style string
	Path  string
}

type dot struct {
	X, Y, R, Foot px // Foot: y of the other end of the line to the diagonal; 0: none
	Style, Title  string
}

type bar struct {
	X, Y, Width, Height px
	Style, Title        string
}

const (
	plotWidth  = 560
	plotHeight = 280
)

// newPlot returns an empty plot with axes and about five ticks on each.
func newPlot(label string, x, y axis, xName, yName string, yText func(float64) string) *plot {
	p := &plot{
		Label: label, Width: plotWidth, Height: plotHeight, XName: xName, YName: yName,
		x: x, y: y, Left: 56, Right: plotWidth - 14, Top: 12, Bottom: plotHeight - 44,
	}
	for _, v := range ticks(x.lo, x.hi) {
		p.XTicks = append(p.XTicks, tick{At: p.xAt(v), Text: short(v)})
	}
	for _, v := range ticks(y.lo, y.hi) {
		p.YTicks = append(p.YTicks, tick{At: p.yAt(v), Text: yText(v)})
	}
	return p
}

func (p *plot) xAt(v float64) px { return p.Left + px(p.x.at(v))*(p.Right-p.Left) }

func (p *plot) yAt(v float64) px { return p.Bottom - px(p.y.at(v))*(p.Bottom-p.Top) }

// at returns the place of v between 0 and 1.
func (a axis) at(v float64) float64 {
	if a.hi <= a.lo {
		return 0.5
	}
	return min(max((v-a.lo)/(a.hi-a.lo), 0), 1)
}

// addLine draws a line through points; a NaN interrupts it.
func (p *plot) addLine(style string, points []point) {
	var b strings.Builder
	move := byte('M')
	for _, at := range points {
		if math.IsNaN(at.y) {
			move = 'M'
			continue
		}
		fmt.Fprintf(&b, "%c%s %s", move, p.xAt(at.x), p.yAt(at.y))
		move = 'L'
	}
	if b.Len() > 0 {
		p.Lines = append(p.Lines, line{Style: style, Path: b.String()})
	}
}

type point struct{ x, y float64 }

// ticks returns round numbers from lo to hi, about five of them.
func ticks(lo, hi float64) (all []float64) {
	raw := (hi - lo) / 5
	if !(raw > 0) || math.IsInf(raw, 0) {
		return []float64{lo}
	}
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, f := range []float64{1, 2, 5} {
		if f*power >= raw {
			step = f * power
			break
		}
	}
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+step*1e-9; i++ {
		all = append(all, i*step+0) // −0 becomes 0
	}
	return all
}

// short writes a tick's number.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(math.Round(v/1e4)/100, 'f', -1, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(math.Round(v/10)/100, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// largest returns the largest number of all that is not NaN, at least least.
func largest(least float64, all ...float64) float64 {
	for _, v := range all {
		if v > least {
			least = v
		}
	}
	return least
}

// smallest returns the smallest number of all that is not NaN, at most most.
func smallest(most float64, all ...float64) float64 {
	for _, v := range all {
		if v < most {
			most = v
		}
	}
	return most
}
