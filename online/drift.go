package online

import (
	"fmt"
	"math/rand/v2"
)

// Level says how much a stream has changed of late.
type Level uint8

const (
	Steady Level = iota
	Warning
	Drifted
)

// String is what is published.
func (l Level) String() string { return [...]string{"none", "warning", "drift"}[l] }

// Detector, Signal and Action of Drift.
type (
	Detector string
	Signal   string
	Action   string
)

const (
	DetectorOff Detector = "off"
	ADWIN       Detector = "adwin"
	PageHinkley Detector = "page-hinkley"

	OnLogLoss Signal = "log_loss"
	OnError   Signal = "error"
	OnNovelty Signal = "novelty"

	ActionNone     Action = "none"
	ActionForget   Action = "forget"   // all horizons forget as fast as one of 100 observations, for a while
	ActionReseed   Action = "reseed"   // half of the inducing inputs begin anew at the latest samples
	ActionRollback Action = "rollback" // the model goes back to an earlier checkpoint, if there is one
)

// Drift says how changes of a stream are found, and what is done about them.
type Drift struct {
	// Detector is adwin, page-hinkley or off. Default adwin.
	Detector Detector `yaml:"detector"`
	// On is what it watches for a rise: log_loss, error or novelty. Default log_loss.
	On Signal `yaml:"on"`
	// Delta is the sensitivity of adwin, about the probability of a false alarm
	// at each look. Default 0.002, range 1e-12 to 0.5.
	Delta float64 `yaml:"delta"`
	// Lambda is that of page-hinkley, the rise that is drift, in standard
	// deviations times samples. Default 50, range 1 to 1e6.
	Lambda float64 `yaml:"lambda"`
	// Cooldown is the number of labels for which a level stays on: a warning after
	// its last cause, a drift after its event, and meanwhile no other is reported. Default 500, range 1 to 1e9.
	Cooldown uint64 `yaml:"cooldown"`
	// Action is none, forget, reseed or rollback. Default none.
	Action Action `yaml:"action"`
}

// OnlyModel as the Name of a Replace event leaves the scores, the threshold of
// the sets and the detector as they are: they are of the stream.
const OnlyModel = "model"

const (
	forgetHorizon = 100 // observations, of every horizon while it forgets faster
	forgetFor     = 200 // labels
	lossScale     = 6.0 // nats that are 1 for a detector
)

// watch is a detector with a level and its memory.
type watch struct {
	detector detector // nil: off
	level    Level
	left     uint64 // labels for which the level stays
	hasty    uint64 // labels for which all horizons forget faster
	reseed   bool   // the inducing inputs begin anew with the next minibatch
	drifts   uint64 // so far
}

func newWatch(c *Drift) watch { return watch{detector: newDetector(c)} }

func newDetector(c *Drift) detector {
	switch c.Detector {
	case ADWIN:
		return &adwin{delta: c.Delta}
	case PageHinkley:
		return &pageHinkley{lambda: c.Lambda}
	}
	return nil
}

// watchFor takes notice of a sample that was judged, and tells out what changed.
func (l *Learner) watchFor(v *verdict, novelty float64, out *Outcome) {
	w, c := &l.watch, &l.cfg.Drift
	if w.hasty > 0 {
		w.hasty--
	}
	if w.detector == nil || !l.warm { // a model that is being built has no past
		return
	}
	var x float64
	unit := 1.0
	switch {
	case c.On == OnNovelty:
		x = novelty
	case c.On == OnLogLoss:
		x, unit = min(v.nll/lossScale, 1), lossScale
	case v.top != v.label:
		x = 1
	}
	found := w.detector.add(x)
	if w.left > 0 {
		if w.left--; w.left == 0 {
			w.level = Steady
		}
	}
	if found.level == Steady || w.level == Drifted {
		return
	}
	w.left = c.Cooldown
	before := w.level
	if w.level = found.level; w.level == before {
		return // a warning that goes on
	}
	out.Detail = fmt.Sprintf("%s rose from %.3g to %.3g, about %d labels ago", c.On, unit*found.before, unit*found.after, found.since)
	if out.Change = NoticeWarning; w.level == Warning {
		return
	}
	w.drifts++
	out.Change, out.Since = NoticeDrift, found.since
	switch c.Action {
	case ActionForget:
		w.hasty = forgetFor
	case ActionReseed:
		w.reseed = true
	}
}

// horizonNow is how many observations a horizon of that length remembers now.
func (w *watch) horizonNow(length float64) float64 {
	if w.hasty > 0 {
		return min(length, forgetHorizon)
	}
	return length
}

// reseedNow puts half of the inducing inputs, drawn at random, at centres of the
// window, and projects what was learnt on the new basis. If that fails the old
// one stays. All of them at the window, which may be of one kind, forget too much.
func (l *Learner) reseedNow() error {
	n := len(l.winY)
	if !l.view.Built() || n == 0 {
		return nil
	}
	l.ready()
	l.backup.save(&l.state)
	if err := l.reseed(n); err != nil {
		return l.takeBack(err)
	}
	return nil
}

func (l *Learner) reseed(n int) (err error) {
	defer Survive(&err)
	rng := rand.New(rand.NewPCG(l.cfg.Seed, l.view.N))
	copy(l.work.theta0, l.params.Theta)
	for g := range l.bases {
		p := l.params.Group(g)
		fresh := make([]float64, min(n, (l.m+1)/2)*l.d)
		kmeans(fresh, atMean(l.winX), n, l.d, rng)
		for i, at := range rng.Perm(l.m)[:len(fresh)/l.d] {
			for f := range l.d {
				p.Z()[at*l.d+f] = fresh[i*l.d+f] + centreNoise*rng.NormFloat64()
			}
		}
	}
	clear(l.opt.m)
	clear(l.opt.v)
	if err := l.rebase(); err != nil {
		return err
	}
	l.features()
	return l.refreshAll()
}

func (l *Learner) encodeDrift(e *encoder) {
	w, c := &l.watch, &l.cfg.Drift
	if w.detector == nil {
		return
	}
	e.string(string(c.Detector))
	e.string(string(c.On))
	e.float(c.Delta)
	e.float(c.Lambda)
	w.detector.encode(e)
	for _, v := range []uint64{uint64(w.level), w.left, w.hasty, w.drifts} {
		e.uint(v)
	}
	e.bool(w.reseed)
}

// decodeDrift reads what was kept under a configuration that may have been
// another one: the detector then begins anew.
func (l *Learner) decodeDrift(d *decoder) {
	c := Drift{Detector: Detector(d.string()), On: Signal(d.string()), Delta: d.number("detector"), Lambda: d.number("detector")}
	w := newWatch(&c)
	if w.detector == nil {
		d.fail("no such detector")
		return
	}
	w.detector.decode(d)
	w.level = Level(d.int(int(Drifted), "level"))
	w.left, w.hasty, w.drifts = d.uint(), d.uint(), d.uint()
	w.reseed = d.bool()
	now := l.cfg.Drift
	if d.err != nil || now.Detector == DetectorOff {
		return
	}
	if c.Detector != now.Detector || c.On != now.On || c.Delta != now.Delta || c.Lambda != now.Lambda {
		w.detector = newDetector(&now)
	}
	l.watch = w
}
