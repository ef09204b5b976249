package signal

import (
	"math"
	"strings"

	"edge/stream/signal/formula"
)

// device is the memory of a stage for one device.
type device struct {
	name string

	inputs []int64 // time of the last row of each input; 0: none
	last   int64   // time of the last row
	rows   int     // since the device, or its window, began; of windows by count bounded, with the same phase
	late   int     // messages in succession with a row that was behind the device's by more than the largest gap
	due    int64   // when Clock has work for it; 0: never
	timing

	memory *formula.Memory // of derived signals; nil: none

	// Last values of several inputs.
	held          []float64 // S
	came, changed []int64   // of each, when it came and when it last changed
	label         heldLabel
	tick          int64 // the last row at a fixed time; 0: none
	valueAt       int64 // time of the last value

	window window
	row    []float64 // V values of the last row, of a stream with windows

	sampled    bool // sampleAt is that of a sample
	sampleAt   int64
	sameMoment int // further samples of that millisecond
}

// timing is what a device's times have to do with those of arrival.
type timing struct {
	arrival bool  // some of its times are those of arrival
	lag     int64 // by which the times of its latest message are behind that of its arrival; notNear: the clock closes no windows
	leap    int64 // by which the node's clock was put forward since then, while they were near; 0: it was not
}

// notNear is the lag of a device whose times are not near those of arrival.
const notNear = -1

// near reports whether the times of the latest message are near that of its arrival.
func (d *device) near() bool { return d.lag != notNear }

// device returns the memory of a device, and makes it the latest one.
func (s *Stage) device(name string) *device {
	if e := s.devices[name]; e != nil {
		s.order.MoveToBack(e)
		return e.Value.(*device)
	}
	for s.order.Len() >= s.cfg.Window.Devices {
		old := s.order.Remove(s.order.Front()).(*device)
		delete(s.devices, old.name)
		s.counts.Evicted.Add(1)
		s.opts.Windows.remove(old.name)
	}
	d := s.newDevice(strings.Clone(name))
	s.devices[d.name] = s.order.PushBack(d)
	s.counts.Devices.Store(int64(s.order.Len()))
	return d
}

func (s *Stage) newDevice(name string) *device {
	d := &device{name: name, timing: timing{lag: notNear}, inputs: make([]int64, len(s.opts.Inputs))}
	d.window.gap = s.gap
	if s.formulas != nil {
		d.memory = s.formulas.NewMemory()
	}
	if s.cfg.Hold.Set() {
		n := len(s.signals)
		d.held, d.came, d.changed = make([]float64, n), make([]int64, n), make([]int64, n)
		for i := range d.held {
			d.held[i] = math.NaN()
		}
	}
	if s.windowed != nil {
		d.row = make([]float64, len(s.layout.values))
		d.window.width = len(s.windowed)
		if n := s.cfg.Window.Length.Rows; n > 0 {
			d.window.values = make([]float64, 0, n*d.window.width)
		}
	}
	return d
}

// beginAnew forgets the rows in the window and the memory of derived signals.
func (d *device) beginAnew() {
	d.rows = 0
	d.window.clear()
	if d.memory != nil {
		d.memory.Reset()
	}
}

// note notes the time of a row.
func (d *device) note(t int64) {
	d.last = t
	d.rows = max(d.rows, d.rows+1) // stays where an int ends
}

// latest returns the devices, longest silence first.
func (s *Stage) latest(yield func(*device) bool) {
	for e := s.order.Front(); e != nil; {
		next := e.Next()
		if !yield(e.Value.(*device)) {
			return
		}
		e = next
	}
}
