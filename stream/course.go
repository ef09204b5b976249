package stream

import (
	"time"

	"edge/stream/signal"
)

// Course is the course of some signals over the window of a sample, for people.
type Course struct {
	Signals []string  // read only
	From    int64     // beginning of the window, in ns since 1970
	To      int64     // its end, or its last row
	Values  []float64 // as many of each signal, one signal after the other, evenly over the window; NaN: no value
}

// value returns the course, an empty one for nil.
func (c *Course) value() Course {
	if c == nil {
		return Course{}
	}
	return *c
}

// Course returns the course of the signals over the window of the sample. It has no values
// without Deps.Courses, and in a stream without windows.
func (p *Prediction) Course() *Course { return &p.raw.course }

// Window is how far the next window of a device is.
type Window struct {
	Stream, Device string      // Device: captured levels of the topic, joined by /
	Length         signal.Span // of a window
	Rows           int         // in the next one so far
	Part           float64     // of its length, from 0 to 1
	Last           time.Time   // of the device's last row
}

// Windows returns the windows in progress of the streams of a model, of each stream in the
// order of the devices' names; none without Deps.Courses. Any goroutine may call it.
func (n *Node) Windows(model string) (all []Window) {
	m := n.model(model)
	if m == nil {
		return nil
	}
	for _, src := range m.streams {
		if src.stage == nil {
			continue
		}
		for _, p := range src.stage.filling.List() {
			all = append(all, Window{src.name, p.Device, src.stage.opts.Config.Window.Length, p.Rows, p.Part, signal.ToTime(p.Last)})
		}
	}
	return all
}
