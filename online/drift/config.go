package drift

import "edge/online/wire"

// Level is the state of a stream.
type Level uint8

// The levels, by rising certainty that the stream has changed.
const (
	Steady Level = iota
	Warning
	Drifted
)

// String returns the published name.
func (l Level) String() string { return [...]string{"none", "warning", "drift"}[l] }

// Detector, Signal and Action are values of Config.
type (
	Detector string
	Signal   string
	Action   string
)

// Detectors.
const (
	Off         Detector = "off"
	ADWIN       Detector = "adwin"
	PageHinkley Detector = "page-hinkley"
)

// Signals.
const (
	OnLogLoss Signal = "log_loss"
	OnError   Signal = "error"
	OnNovelty Signal = "novelty"
)

// Actions.
const (
	ActionNone     Action = "none"
	ActionForget   Action = "forget"   // for a while, all horizons forget as fast as one of 100 observations
	ActionReseed   Action = "reseed"   // half of the inducing inputs start again at the latest samples
	ActionRollback Action = "rollback" // the model returns to an earlier checkpoint, if one exists
)

// Config selects the detector of a stream's changes, and the action on a drift.
type Config struct {
	// Detector is adwin, page-hinkley or off. Default adwin.
	Detector Detector `yaml:"detector"`
	// On is the signal whose rise is detected: log_loss, error or novelty. Default log_loss.
	On Signal `yaml:"on"`
	// Delta is the sensitivity of adwin, about the probability of a false alarm
	// at each look. Default 0.002, range 1e-12 to 0.5.
	Delta float64 `yaml:"delta"`
	// Lambda is that of page-hinkley, the rise that is drift, in standard
	// deviations times samples. Default 50, range 1 to 1e6.
	Lambda float64 `yaml:"lambda"`
	// Cooldown is the number of labels for which a level stays on: a warning after its last cause,
	// a drift after its event, and meanwhile no other is reported. Default 500, range 1 to 1e9.
	Cooldown uint64 `yaml:"cooldown"`
	// Action is none, forget, reseed or rollback. Default none.
	Action Action `yaml:"action"`
}

// Default returns the defaults that configs/edge.yaml documents.
func Default() Config {
	return Config{Detector: ADWIN, On: OnLogLoss, Delta: 0.002, Lambda: 50, Cooldown: 500, Action: ActionNone}
}

// detector detects a rise of the mean of a stream of numbers.
type detector interface {
	// add adds the next number and returns an alarm if the mean has risen.
	add(x float64) alarm
	encode(e *wire.Encoder)
	decode(d *wire.Decoder)
}

// alarm is the result of one number.
type alarm struct {
	level         Level
	before, after float64 // means
	since         uint64  // numbers after the change, by the detector's estimate
}

func newDetector(c *Config) detector {
	switch c.Detector {
	case ADWIN:
		return &adwin{delta: c.Delta}
	case PageHinkley:
		return &pageHinkley{lambda: c.Lambda}
	}
	return nil
}
