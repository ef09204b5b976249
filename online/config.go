package online

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/model"
)

// Horizon is the memory of one posterior of the bank, in observations of this
// model: evidence of that age has lost about 63 % of its weight. "inf" never
// forgets.
type Horizon float64

// MarshalText writes "inf" for an infinite horizon and a plain number otherwise.
func (h Horizon) MarshalText() ([]byte, error) {
	if math.IsInf(float64(h), 1) {
		return []byte("inf"), nil
	}
	return strconv.AppendFloat(nil, float64(h), 'g', -1, 64), nil
}

// UnmarshalText reads what MarshalText writes, and YAML's ".inf".
func (h *Horizon) UnmarshalText(text []byte) error {
	s := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(string(text))), ".")
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0) {
		return fmt.Errorf("horizon %q: want a positive number of observations or inf", text)
	}
	*h = Horizon(v)
	return nil
}

// Batch says when a minibatch is closed.
type Batch struct {
	// MaxSize is the number of labelled samples that closes a minibatch.
	// Default 16, range 1 to 1000. A larger one is learnt in interleaved steps of
	// 16 at most.
	MaxSize int `yaml:"max_size"`
	// MaxWait closes a minibatch that has waited this long for more samples.
	// 0 waits for ever: minibatches are then closed by count alone, and a
	// replayed stream gives the same state every time. Default 250ms.
	MaxWait time.Duration `yaml:"max_wait"`
}

// Classes says which labels there are.
type Classes struct {
	// Names are the labels known from the start. They have a probability
	// before their first sample; a label that is not among them has none.
	Names []string `yaml:"names"`
	// Open accepts labels that are not in Names, as new classes. Default true.
	Open bool `yaml:"open"`
	// Max bounds the number of classes, and with it the memory: O(H·M²) for each.
	// A label beyond it is refused and counted; Names have room in any case. Default
	// 32, range 2 to 250.
	Max int `yaml:"max"`
	// Confirm is the number of samples that must have been given a new label
	// before it is a class: they wait, and are judged and learnt when it is. It
	// keeps a typing error from becoming a class. Twice as many, at most 100, where
	// 16 classes are known already, so that names which never come again cannot take
	// all the room. Default 1, range 1 to 100.
	Confirm int `yaml:"confirm"`
}

// atOnce is the number of classes from which on a new label needs twice as many
// samples.
const atOnce = 16

// Needed is the number of samples that a new label must have been given before it
// is a class, where so many are known.
func (c *Classes) Needed(known int) int {
	if known < atOnce {
		return c.Confirm
	}
	return min(2*c.Confirm, maxConfirm)
}

// LabelNoise is the probability ε that a label is wrong.
type LabelNoise struct {
	// Start is its first value; 0 turns the robust likelihood off. Default 0.01.
	Start float64 `yaml:"start"`
	// Max bounds it while it is learnt. Default 0.2, range 0.001 to 0.5.
	Max float64 `yaml:"max"`
	// Learn follows the evidence's gradient. Default true.
	Learn bool `yaml:"learn"`
}

// Kernel says how many kernels there are.
type Kernel string

const (
	// Shared: one kernel and one set of inducing inputs for all classes.
	Shared Kernel = "shared"
	// PerClass: a kernel and inducing inputs for each class. C times the cost of
	// a basis; for large sets of many classes that one basis cannot carry.
	PerClass Kernel = "per-class"
)

// Temporal says whether the order of the labels counts in a prediction.
type Temporal string

const (
	TemporalOff  Temporal = "off"  // never: only the features count
	TemporalAuto Temporal = "auto" // as far as it has predicted the labels better
	TemporalOn   Temporal = "on"   // always
)

// Config is everything that shapes a learner. DefaultConfig documents the defaults.
type Config struct {
	// Inducing is M, the number of inducing points. Memory is O(H·C·M²)
	// however long the stream. Default 50, 100 where labels are asked for; range 2
	// to 1000.
	Inducing int `yaml:"inducing"`
	// Kernel is shared or per-class. Default shared.
	Kernel Kernel `yaml:"kernel"`
	// Horizons is the bank of forgetting horizons; cost and memory are linear
	// in their number. Default [inf, 500, 100], 1 to 8 of them.
	Horizons []Horizon `yaml:"horizons"`
	// Window is R, the number of latest observations whose sites are kept
	// explicitly and refined. Default 100, range 0 to 10000.
	Window int `yaml:"window"`
	// Batch says when a minibatch is closed.
	Batch Batch `yaml:"batch"`
	// Classes says which labels there are.
	Classes Classes `yaml:"classes"`
	// Warmup is the number of observations after which the model is built for
	// the last time from all that it has seen; the raw observations are then
	// dropped. 0 means 4·Inducing, 6·Inducing where labels are asked for. Default 0.
	Warmup int `yaml:"warmup"`
	// Sweeps over the window in each step. Default 2, range 1 to 10.
	Sweeps int `yaml:"sweeps"`
	// Damping of a site's update after the first sweep: 1 replaces, 0.5 meets
	// half way. Default 0.5.
	Damping float64 `yaml:"damping"`
	// LearningRate of Adam at 32 samples a minibatch; it falls with the square
	// root of the size. 0 keeps kernel and inducing inputs. Default 0.02.
	LearningRate float64 `yaml:"learning_rate"`
	// Gradient is the number of observations whose evidence a step of Adam
	// follows during the warm-up, at least: the new ones, and the latest of the
	// window where they are fewer. Default 0, the new ones alone; 16 where labels
	// are asked for. Range 0 to 1000.
	Gradient int `yaml:"gradient"`
	// LabelNoise is the probability that a label is wrong.
	LabelNoise LabelNoise `yaml:"label_noise"`
	// Track lets the feature scaling follow the stream with this memory in
	// observations; 0 freezes it after the warm-up. Default 0; 3000 for slow,
	// 1000 for strong sensor drift.
	Track float64 `yaml:"track"`
	// Temporal lets a prediction use the label of the sample before, where that
	// is known: labels may persist or follow each other in some order. It counts
	// for samples that bring their label; a label that comes later than its
	// sample teaches the order, too. What stands beside it, the latest labels and
	// a soft-max regression on the features, counts under the same condition.
	// Default auto; off, auto or on.
	Temporal Temporal `yaml:"temporal"`
	// ClassWeights says how much a sample of each class counts.
	ClassWeights ClassWeights `yaml:"class_weights"`
	// Abstain says when a prediction should not be relied on.
	Abstain Abstain `yaml:"abstain"`
	// Conformal asks for sets of classes that hold the label as often as wanted.
	Conformal Conformal `yaml:"conformal"`
	// Drift says how changes of the stream are found, and what is done about them.
	Drift Drift `yaml:"drift"`
	// Clip bounds how far a feature may be from its mean, in standard deviations:
	// one that is further away is taken to be there, and counted. Default 8, range
	// 1 to 1000.
	Clip float64 `yaml:"clip"`
	// Seed of the initial inducing points. Default 1.
	Seed uint64 `yaml:"seed"`

	// Passes over its observations that a build makes in the warm-up once it has one
	// for each inducing point; set by Asking.Suit. 0 means 1. All but the first move
	// the kernel alone, at three times the learning rate and under a normal prior of
	// precision 10 on each log ℓ around their mean: inducing inputs, too, would fit
	// few observations better and others worse.
	Passes int `yaml:"-"`

	// Features names the D inputs in order; set by whoever knows the streams.
	Features []string `yaml:"-"`
}

// DefaultConfig returns the defaults that configs/edge.yaml documents.
func DefaultConfig() Config {
	return Config{
		Inducing:     50,
		Kernel:       Shared,
		Horizons:     []Horizon{Horizon(math.Inf(1)), 500, 100},
		Window:       100,
		Batch:        Batch{MaxSize: 16, MaxWait: 250 * time.Millisecond},
		Classes:      Classes{Open: true, Max: 32, Confirm: 1},
		Sweeps:       2,
		Damping:      0.5,
		LearningRate: 0.02,
		LabelNoise:   LabelNoise{Start: 0.01, Max: 0.2, Learn: true},
		Temporal:     TemporalAuto,
		ClassWeights: ClassWeights{Mode: Unweighted, Max: 10},
		Clip:         model.DefaultClip,
		Abstain:      Abstain{NoveltyAbove: 1},
		Conformal:    Conformal{Coverage: 0.9},
		Drift:        Drift{Detector: ADWIN, On: OnLogLoss, Delta: 0.002, Lambda: 50, Cooldown: 500, Action: ActionNone},
		Seed:         1,
	}
}

// Bounds of the configuration: they also bound what a state file may ask for.
const (
	maxInducing = 1000
	maxHorizons = 8
	maxWindow   = 10000
	maxBatch    = 1000
	maxClasses  = 250
	maxFeatures = 10000
	maxWarmup   = 100000
)

// ErrConfig marks a configuration that is out of range.
var ErrConfig = errors.New("configuration out of range")

// Validate reports every field that is out of range, joined.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %v: want %s: %w", key, value, want, ErrConfig))
		}
	}
	between := func(key string, v, lo, hi float64, what string) {
		check(v >= lo && v <= hi, key, v, fmt.Sprintf("%s, %g to %g", what, lo, hi))
	}
	between("inducing", float64(c.Inducing), 2, maxInducing, "inducing points")
	check(c.Kernel == Shared || c.Kernel == PerClass, "kernel", c.Kernel, "shared or per-class")
	check(len(c.Horizons) >= 1 && len(c.Horizons) <= maxHorizons, "horizons", len(c.Horizons), "1 to 8 of them")
	for _, h := range c.Horizons {
		check(h >= 10, "horizons", float64(h), "at least 10 observations, or inf")
	}
	between("window", float64(c.Window), 0, maxWindow, "observations")
	between("batch.max_size", float64(c.Batch.MaxSize), 1, maxBatch, "samples")
	check(c.Batch.MaxWait == 0 || c.Batch.MaxWait >= time.Millisecond, "batch.max_wait", c.Batch.MaxWait, "0 (by count alone) or at least 1ms")
	between("classes.max", float64(c.Classes.Max), 2, maxClasses, "classes")
	between("classes.confirm", float64(c.Classes.Confirm), 1, maxConfirm, "samples")
	check(len(c.Classes.Names) <= maxClasses, "classes.names", len(c.Classes.Names), "at most 250 names")
	check(c.Classes.Open || len(c.Classes.Names) >= 2, "classes.names", len(c.Classes.Names), "two names or more, or classes.open: true")
	for i, name := range c.Classes.Names {
		check(name != "" && len(name) <= MaxLabel, "classes.names", name, "1 to 256 bytes each")
		check(!slices.Contains(c.Classes.Names[:i], name), "classes.names", name, "no name twice")
	}
	between("warmup", float64(c.Warmup), 0, maxWarmup, "observations, 0 for 4 × inducing")
	between("sweeps", float64(c.Sweeps), 1, 10, "sweeps")
	check(c.Damping > 0 && c.Damping <= 1, "damping", c.Damping, "above 0, at most 1")
	between("learning_rate", c.LearningRate, 0, 1, "rate")
	between("gradient", float64(c.Gradient), 0, maxBatch, "observations")
	between("label_noise.start", c.LabelNoise.Start, 0, 0.5, "probability")
	between("label_noise.max", c.LabelNoise.Max, 0.001, 0.5, "probability")
	check(c.LabelNoise.Start <= c.LabelNoise.Max, "label_noise.start", c.LabelNoise.Start, "at most label_noise.max")
	check(c.Track == 0 || (c.Track >= 10 && c.Track <= 1e9), "track", c.Track, "0, or a memory of 10 to 1e9 observations")
	check(slices.Contains([]Temporal{TemporalOff, TemporalAuto, TemporalOn}, c.Temporal), "temporal", c.Temporal, "off, auto or on")
	check(c.ClassWeights.Mode == Unweighted || c.ClassWeights.Mode == Balanced, "class_weights.mode", c.ClassWeights.Mode, "none or balanced")
	between("class_weights.max", c.ClassWeights.Max, 1, MaxWeight, "weight")
	between("abstain.novelty_above", c.Abstain.NoveltyAbove, 0, 1, "fraction of the prior variance")
	between("abstain.confidence_below", c.Abstain.ConfidenceBelow, 0, 1, "probability")
	check(c.Conformal.Coverage == 0 || c.Conformal.Coverage >= 0.5 && c.Conformal.Coverage <= 0.999, "conformal.coverage", c.Conformal.Coverage, "0 (no sets), or 0.5 to 0.999")
	check(slices.Contains([]Detector{DetectorOff, ADWIN, PageHinkley}, c.Drift.Detector), "drift.detector", c.Drift.Detector, "adwin, page-hinkley or off")
	check(slices.Contains([]Signal{OnLogLoss, OnError, OnNovelty}, c.Drift.On), "drift.on", c.Drift.On, "log_loss, error or novelty")
	between("drift.delta", c.Drift.Delta, 1e-12, 0.5, "probability")
	between("drift.lambda", c.Drift.Lambda, 1, 1e6, "standard deviations times samples")
	between("drift.cooldown", float64(c.Drift.Cooldown), 1, 1e9, "labels")
	check(slices.Contains([]Action{ActionNone, ActionForget, ActionReseed, ActionRollback}, c.Drift.Action), "drift.action", c.Drift.Action, "none, forget, reseed or rollback")
	between("clip", c.Clip, 1, 1000, "standard deviations")
	check(len(c.Features) >= 1 && len(c.Features) <= maxFeatures, "features", len(c.Features), "1 to 10000 features")
	return errors.Join(errs...)
}

// perClassShape ends the Shape of a configuration with a kernel for each class.
const perClassShape = " kernel=per-class"

// MaxLabel bounds a label's length in bytes.
const MaxLabel = 256

// warmup is n_warm, the observations after which the model is built for the last time.
func (c *Config) warmup() int {
	if c.Warmup > 0 {
		return max(c.Warmup, minBuild)
	}
	return max(4*c.Inducing, minBuild)
}

// Shape describes, in words, the part of the configuration that shapes the
// state; configurations with the same Shape can carry on from each other's
// states.
func (c Config) Shape() string {
	var horizons []string
	for _, h := range c.Horizons {
		text, _ := h.MarshalText()
		horizons = append(horizons, string(text))
	}
	shape := fmt.Sprintf("features=%s inducing=%d horizons=%s window=%d",
		strings.Join(c.Features, ","), c.Inducing, strings.Join(horizons, ","), c.Window)
	if c.Kernel == PerClass {
		shape += perClassShape
	}
	return shape
}
