package web

import (
	"math"
	"slices"

	"edge/online/score"
	"edge/stream"
	"edge/stream/signal"
)

const shownWindows = 32 // of each model, those of the latest rows

// courseView is the course of the first signals of a sample over its window.
type courseView struct {
	From    stream.Timestamp `json:"from"`
	To      stream.Timestamp `json:"to"`
	Signals []signalView     `json:"signals"` // 6 at most
}

// signalView is the course of one signal: values evenly over the window, null where there
// was none. A long window is cut into 80 pieces, which give their lowest and highest value
// each.
type signalView struct {
	Signal string       `json:"signal"`
	Values []score.Real `json:"values"` // 160 at most, rounded to a thousandth of their range
}

// describeCourse returns the course of a prediction, nil if it has none.
func describeCourse(c *stream.Course) *courseView {
	if len(c.Signals) == 0 || len(c.Values) == 0 {
		return nil
	}
	v := &courseView{From: stream.Timestamp{Time: signal.ToTime(c.From)}, To: stream.Timestamp{Time: signal.ToTime(c.To)}}
	n := len(c.Values) / len(c.Signals)
	for j, name := range c.Signals {
		v.Signals = append(v.Signals, signalView{name, roundedValues(c.Values[j*n : (j+1)*n])})
	}
	return v
}

// roundedValues rounds values to the decimals that a plot can show.
func roundedValues(values []float64) []score.Real {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	unit := 0. // 1 over the unit of the last decimal; 0: as they are
	if digits := 3 - math.Floor(math.Log10(hi-lo)); digits <= 15 {
		unit = math.Pow(10, max(digits, 0))
	}
	out := make([]score.Real, len(values))
	for i, v := range values {
		if unit > 0 {
			if r := math.Round(v*unit) / unit; !math.IsInf(r, 0) {
				v = r
			}
		}
		out[i] = score.Real(v)
	}
	return out
}

// windowsView are the windows in progress of a model's streams.
type windowsView struct {
	Devices []windowView `json:"devices"` // that of the latest row first, 32 at most
	Others  int          `json:"others"`  // that are not shown
}

// windowView is the next window of a device.
type windowView struct {
	Stream string           `json:"stream"`
	Device string           `json:"device"` // "" where topics do not contain one
	Length string           `json:"length"` // of a window, as it is configured
	Rows   int              `json:"rows"`   // in the next one so far
	Part   float64          `json:"part"`   // of its length, from 0 to 1
	Last   stream.Timestamp `json:"ts"`     // of the device's last row
}

// describeWindows returns the windows in progress, nil if there are none.
func describeWindows(all []stream.Window) *windowsView {
	if len(all) == 0 {
		return nil
	}
	var latest []*stream.Window
	for i := range all {
		latest = append(latest, &all[i])
	}
	slices.SortStableFunc(latest, func(a, b *stream.Window) int { return b.Last.Compare(a.Last) })
	v := &windowsView{Others: max(len(all)-shownWindows, 0)}
	for _, w := range latest[:min(len(latest), shownWindows)] {
		v.Devices = append(v.Devices, windowView{w.Stream, w.Device, w.Length.String(), w.Rows, math.Round(1e3*w.Part) / 1e3, stream.Timestamp{Time: w.Last}})
	}
	return v
}
