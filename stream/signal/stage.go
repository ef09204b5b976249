package signal

import (
	"container/list"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"edge/stream/signal/formula"
)

// Message has the rows of one device in one message.
type Message struct {
	Device string
	Input  int  // index in Options.Inputs
	Own    bool // the rows have times of their own; false: that of arrival
	Again  bool // the broker has sent it before: late rows are no sign of a clock that was set back
	Kept   bool // the broker kept it from an earlier time: its values are held, and make no row
	Rows   []Row

	Arrived int64 // ns since 1970
}

// Row has the values of a device at one moment.
type Row struct {
	Time   int64     // ns since 1970
	X      []float64 // S values, NaN for a missing one
	Absent []bool    // signals that the payload did not have, which keep their held value; nil: none
	Label  string    // "" without one
	Null   bool      // the payload has null as the label: one that is held ends
}

// Sample is D numbers of one device. Its memory is valid until the stage is called again.
type Sample struct {
	Device string
	ID     []byte // unlike that of every other sample of the stream
	Start  int64  // of its window, or of its row, in ns since 1970
	Time   int64  // of its last row, or its end
	X      []float64
	Label  string
	Sticky bool // the label is a state that was known before the sample
	Own    bool // all times of the device are those of payloads, so that the id is always the same
	// Course is, with Options.Courses, the course of CourseSignals over the window, one
	// after the other, evenly from Start to Time, NaN where there was no value. Nil without
	// a window.
	Course []float64
}

// Options describe a stage.
type Options struct {
	Config   Config
	Features []string // of a sample, in order; nil: all that the stage makes
	Inputs   []Input  // sources of held values; nil: one that has all signals
	Rate     float64  // rows a second, where it is known; 0: not
	// LateMessages is the number of new messages in succession with a row that is late
	// by more than the largest gap, after which the device's clock counts as set back.
	LateMessages int
	State        State    // of labels that are a state
	Courses      bool     // samples have the course of their signals
	Windows      *Windows // learns how full the windows are; nil: none
}

// Input is a source of some of the signals.
type Input struct {
	Signals []int         // indices in Config.Signals
	MaxAge  time.Duration // above which a value is missing; 0: none
	On      bool          // a value of it makes a row
}

// Counts are the numbers of rows and samples that a stage dropped. Any goroutine may read
// them.
type Counts struct {
	Rows     atomic.Uint64 // received
	Samples  atomic.Uint64
	Late     atomic.Uint64 // rows that were not later than the one before
	Gaps     atomic.Uint64 // silences after which a window began anew
	SetBack  atomic.Uint64 // clocks of devices that were set back
	Thin     atomic.Uint64 // windows with too few rows
	Mixed    atomic.Uint64 // windows with labels, of which none is that of the window
	Crowded  atomic.Uint64 // rows beyond the bound of a window
	Evicted  atomic.Uint64 // devices that made room for others
	Unvalued atomic.Uint64 // rows without any value
	Devices  atomic.Int64  // that the stage remembers
}

// Stage makes samples of the rows of one stream. One goroutine owns it.
type Stage struct {
	*layout
	opts   Options
	cfg    Config
	gap    int64 // that of the configuration, ns; 0: a silence of any length ends no window
	counts *Counts

	devices map[string]*list.Element
	order   list.List // of *device, longest silence first
	states  states
	due     int64 // earliest moment at which Clock has work; 0: none

	out     []Sample
	arena   []float64 // features of the samples in out
	ids     []byte
	columns columns
	series  [2][]float64 // of one or two signals of a window, without missing values
	now     []float64    // V values of a row, or all that the stage made
	aged    []float64    // held values, NaN for those that are too old
	tally   []run
	spare   []float64 // the values of a row while windows close
	cursor  int       // row of the moment that is resampled
	behind  bool      // a row of the message was behind by more than the largest gap
}

// NewStage checks the options and returns a stage. counts is for readers in other
// goroutines; nil: none.
func NewStage(opts Options, counts *Counts) (*Stage, error) {
	if err := opts.Config.Validate(); err != nil {
		return nil, fmt.Errorf("signal: %w", err)
	}
	l, err := newLayout(&opts.Config, opts.Features)
	if err != nil {
		return nil, fmt.Errorf("signal: %w", err)
	}
	if counts == nil {
		counts = new(Counts)
	}
	if opts.Inputs == nil {
		all := Input{MaxAge: opts.Config.Hold.MaxAge, On: true}
		for i := range l.signals {
			all.Signals = append(all.Signals, i)
		}
		opts.Inputs = []Input{all}
	}
	if opts.LateMessages == 0 {
		opts.LateMessages = defaultLateMessages
	}
	return &Stage{
		layout: l, opts: opts, cfg: opts.Config, gap: int64(opts.Config.Gap(opts.Rate)), counts: counts,
		devices: map[string]*list.Element{}, states: newStates(opts.State, opts.Config.Window.Devices),
	}, nil
}

// Features returns the names of the D features of a sample.
func (s *Stage) Features() []string { return s.features() }

// Counts returns the counters.
func (s *Stage) Counts() *Counts { return s.counts }

// Devices returns the number of devices that the stage remembers.
func (s *Stage) Devices() int { return s.order.Len() }

// Take takes the rows of a message, and returns the samples that they complete.
func (s *Stage) Take(m *Message) []Sample {
	s.reset()
	d := s.device(m.Device)
	d.arrival = d.arrival || !m.Own
	s.follow(d, m)
	d.window.gap = s.gapOf(m)
	first := len(s.out)
	if s.cfg.Window.Length.Message {
		d.beginAnew()
	}
	last := d.inputs[m.Input]
	s.behind = false
	for i := range m.Rows {
		r := &m.Rows[i]
		s.counts.Rows.Add(1)
		if newest := d.inputs[m.Input]; !m.Own && r.Time < newest && newest <= m.Arrived {
			r.Time = newest // its message came sooner after the one before than its rows take
		}
		if !s.inOrder(d, m, r, last) {
			continue
		}
		if s.cfg.Hold.Set() {
			s.hold(d, m, r)
		} else {
			s.row(d, r.Time, r.X, r.Label)
		}
	}
	if s.cfg.Window.Length.Message && len(s.out) == first {
		s.closeMessage(d)
	}
	d.lag = lagOf(d, m)
	s.schedule(d)
	return s.out
}

// Clock sets the time of the stage, in ns since 1970, and returns the samples that only the
// passing of time completes.
func (s *Stage) Clock(now int64) []Sample {
	s.reset()
	if s.due == 0 || now < s.due {
		return s.out
	}
	s.due = 0
	for d := range s.latest {
		if d.due != 0 && d.due <= now {
			if s.cfg.Hold.Every > 0 {
				s.ticks(d, now-d.lag-s.grace())
			} else {
				s.closeBefore(d, now-d.lag-s.grace())
			}
		}
		s.schedule(d)
	}
	return s.out
}

// Due returns the moment at which Clock has work, in ns since 1970; 0: none.
func (s *Stage) Due() int64 { return s.due }

// SetState makes a label the state of a device, or with "" of all devices, from now on. kept:
// the broker has it from an earlier time; if it is known already, its age goes on. SetState
// returns the samples that end before. With kept or awaited there are none, since rows of
// before may still come from the broker.
func (s *Stage) SetState(device, label string, now int64, kept, awaited bool) []Sample {
	s.reset()
	for d := range s.latest {
		if !kept && !awaited && d.near() && (device == "" || d.name == device) { // others live at another time
			s.ticks(d, now-1-d.lag)
			s.schedule(d)
		}
	}
	s.states.set(device, label, now, kept)
	return s.out
}

// EndLabel ends the held label of a device. It returns the samples that end before, with awaited
// none, as SetState does.
func (s *Stage) EndLabel(name string, now int64, awaited bool) []Sample {
	s.reset()
	e := s.devices[name]
	if e == nil {
		return s.out
	}
	d := e.Value.(*device)
	if !awaited && d.near() {
		s.ticks(d, now-1-d.lag)
		s.schedule(d)
	}
	d.label = heldLabel{}
	return s.out
}

func (s *Stage) reset() {
	s.out, s.arena, s.ids, s.columns.drawn = s.out[:0], s.arena[:0], s.ids[:0], s.columns.drawn[:0]
}

// row takes the values of the signals of one moment. In a window a row that is earlier than
// that of another input counts at its time: the inputs' clocks differ.
func (s *Stage) row(d *device, t int64, x []float64, label string) {
	if s.cfg.Window.Length.Set() && d.rows > 0 {
		t = max(t, d.last)
	}
	if s.beginsAnew(d, t) {
		d.beginAnew()
	}
	s.now = append(s.now[:0], x...)
	if s.formulas != nil {
		row := formula.Row{Time: t, X: x}
		if s.cfg.Hold.Set() {
			row.Came, row.Changed = d.came, d.changed
		}
		s.now = s.formulas.Append(s.now, d.memory, &row)
	}
	l := rowLabel{text: label}
	if label == "" {
		l = s.states.at(d.name, t)
	}
	switch length := s.cfg.Window.Length; {
	case !length.Set():
		d.note(t)
		if slices.ContainsFunc(s.now, func(v float64) bool { return !math.IsNaN(v) }) {
			if l.text == unsettled {
				l = rowLabel{}
			}
			s.emit(d, s.kind(), t, t, l)
		} else {
			s.counts.Unvalued.Add(1)
		}
		return
	case length.Rows > 0:
		s.rowByCount(d, t, l)
	case length.Time > 0:
		s.rowByTime(d, t, l)
	default:
		if d.rows == 0 {
			d.window.starts = append(d.window.starts, t)
		}
		s.push(d, t, l)
	}
}

// emit appends a sample of a device with the features of its window, if there is one, and
// the last values of the other signals, which s.now or the device has.
func (s *Stage) emit(d *device, kind byte, start, t int64, l rowLabel) {
	from := len(s.arena)
	s.arena = s.windowFeatures(s.arena, d)
	row := s.now
	if s.windowed != nil {
		row = d.row
	}
	for _, i := range s.held {
		s.arena = append(s.arena, row[i])
	}
	x := s.arena[from:]
	if s.pick != nil {
		s.now = append(s.now[:0], x...)
		x = x[:len(s.pick)]
		for i, at := range s.pick {
			x[i] = s.now[at]
		}
		s.arena = s.arena[:from+len(x)]
	}
	for i, v := range x {
		if math.IsInf(v, 0) {
			x[i] = math.NaN()
		}
	}
	var course []float64
	if s.opts.Courses && s.windowed != nil {
		before := len(s.columns.drawn)
		s.columns.drawn = s.course(s.columns.drawn, d)
		course = s.columns.drawn[before:]
	}
	s.counts.Samples.Add(1)
	s.out = append(s.out, Sample{Device: d.name, ID: s.id(d, kind, t), Start: start, Time: t, X: x, Label: l.text, Sticky: l.sticky, Own: !d.arrival, Course: course})
}

// kind returns the character between device and time in the id of a row.
func (s *Stage) kind() byte {
	if s.cfg.Hold.Every > 0 {
		return '@'
	}
	return '#'
}

// id makes the id of a sample: the device, @ and the end of a window or row at a fixed
// time, or # and the time of the last row; in ms since 1970, with a number if the device
// has several samples in one.
func (s *Stage) id(d *device, kind byte, t int64) []byte {
	from := len(s.ids)
	s.ids = append(append(s.ids, d.name...), kind)
	ms := t / int64(time.Millisecond)
	s.ids = strconv.AppendInt(s.ids, ms, 10)
	if d.sampled && d.sampleAt == ms {
		d.sameMoment++
		s.ids = strconv.AppendInt(append(s.ids, '.'), int64(d.sameMoment), 10)
	} else {
		d.sampled, d.sampleAt, d.sameMoment = true, ms, 0
	}
	return s.ids[from:]
}

func abs(v int64) int64 { return max(v, -v) }
