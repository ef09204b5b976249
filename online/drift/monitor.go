package drift

import (
	"fmt"
	"math"

	"edge/online/wire"
)

const (
	forgetHorizon = 100 // observations, of every horizon while the action forget lasts
	forgetFor     = 200 // labels
	lossScale     = 6.0 // nats that are 1 for a detector
)

// Monitor is a detector with a level and its memory. It is single-threaded.
type Monitor struct {
	cfg      Config
	detector detector // nil: off
	level    Level
	left     uint64 // labels for which the level stays
	forget   uint64 // labels for which all horizons forget faster
	reseed   bool   // new inducing inputs are due with the next minibatch
	drifts   uint64 // since the beginning
}

// New returns a monitor of a steady stream.
func New(cfg Config) Monitor { return Monitor{cfg: cfg, detector: newDetector(&cfg)} }

// Sample holds the signals of one judged sample.
type Sample struct {
	LogLoss float64 // nats
	Wrong   bool    // the most probable class was not the label
	Novelty float64 // 0 to 1
}

// Change is a change of the level.
type Change struct {
	Level  Level
	Detail string // the signal, its means before and after, and the age of the change
	Since  uint64 // labels since the change, by the detector's estimate
}

// Add adds a sample. Warm is false while the model is being built: the sample
// then has no past to be compared with. A change of the level to warning or drifted is
// returned once.
func (m *Monitor) Add(s Sample, warm bool) (c Change, changed bool) {
	if m.forget > 0 {
		m.forget--
	}
	if m.detector == nil || !warm {
		return Change{}, false
	}
	var x float64
	unit := 1.0
	switch {
	case m.cfg.On == OnNovelty:
		x = s.Novelty
	case m.cfg.On == OnLogLoss:
		x, unit = min(s.LogLoss/lossScale, 1), lossScale
	case s.Wrong:
		x = 1
	}
	found := m.detector.add(x)
	if m.left > 0 {
		if m.left--; m.left == 0 {
			m.level = Steady
		}
	}
	if found.level == Steady || m.level == Drifted {
		return Change{}, false
	}
	m.left = m.cfg.Cooldown
	before := m.level
	if m.level = found.level; m.level == before {
		return Change{}, false // a warning that lasts
	}
	c = Change{
		Level:  m.level,
		Detail: fmt.Sprintf("%s rose from %.3g to %.3g, about %d labels ago", m.cfg.On, unit*found.before, unit*found.after, found.since),
	}
	if m.level == Warning {
		return c, true
	}
	m.drifts++
	c.Since = found.since
	switch m.cfg.Action {
	case ActionForget:
		m.forget = forgetFor
	case ActionReseed:
		m.reseed = true
	}
	return c, true
}

// Level returns the level of the stream.
func (m *Monitor) Level() Level { return m.level }

// Drifts returns the number of drifts since the beginning.
func (m *Monitor) Drifts() uint64 { return m.drifts }

// Horizon returns the bound on the length of every forgetting horizon, in
// observations: +Inf but while the action forget lasts.
func (m *Monitor) Horizon() float64 {
	if m.forget > 0 {
		return forgetHorizon
	}
	return math.Inf(1)
}

// TakeReseed reports whether new inducing inputs are due, once for each drift.
func (m *Monitor) TakeReseed() bool {
	due := m.reseed
	m.reseed = false
	return due
}

// Encode appends the state; nothing where the detector is off.
func (m *Monitor) Encode(e *wire.Encoder) {
	if m.detector == nil {
		return
	}
	e.String(string(m.cfg.Detector))
	e.String(string(m.cfg.On))
	e.Float(m.cfg.Delta)
	e.Float(m.cfg.Lambda)
	m.detector.encode(e)
	for _, v := range []uint64{uint64(m.level), m.left, m.forget, m.drifts} {
		e.Uint(v)
	}
	e.Bool(m.reseed)
}

// maxName bounds the name of a detector or signal in a state, in bytes.
const maxName = 64

// Decode reads the state that Encode wrote, perhaps under another configuration:
// the detector then begins again.
func (m *Monitor) Decode(d *wire.Decoder) {
	c := Config{Detector: Detector(d.String(maxName)), On: Signal(d.String(maxName)), Delta: d.Number("detector"), Lambda: d.Number("detector")}
	was := New(c)
	if was.detector == nil {
		d.Fail("no such detector")
		return
	}
	was.detector.decode(d)
	was.level = Level(d.Int(int(Drifted), "level"))
	was.left, was.forget, was.drifts = d.Uint(), d.Uint(), d.Uint()
	was.reseed = d.Bool()
	if d.Err() != nil || m.cfg.Detector == Off {
		return
	}
	if c.Detector != m.cfg.Detector || c.On != m.cfg.On || c.Delta != m.cfg.Delta || c.Lambda != m.cfg.Lambda {
		was.detector = newDetector(&m.cfg)
	}
	was.cfg = m.cfg
	*m = was
}
