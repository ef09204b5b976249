package online

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"edge/model"
	"edge/online/active"
	"edge/online/conformal"
	"edge/online/drift"
	"edge/online/fleet"
	"edge/online/mixture"
	"edge/online/sep"
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

// UnmarshalText reads the text that MarshalText writes, and YAML's ".inf".
func (h *Horizon) UnmarshalText(text []byte) error {
	s := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(string(text))), ".")
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0) {
		return fmt.Errorf("horizon %q: want a positive number of observations or inf", text)
	}
	*h = Horizon(v)
	return nil
}

// Batch configures when a minibatch is closed.
type Batch struct {
	// MaxSize is the number of labelled samples that closes a minibatch.
	// Default 16, range 1 to 1000. A larger one is learnt in interleaved steps of
	// 16 at most.
	MaxSize int `yaml:"max_size"`
	// MaxWait closes a minibatch that has waited this long for more samples.
	// 0 does not limit the wait: minibatches are then closed by count alone, and a
	// replayed stream gives the same state every time. Default 50ms. While the
	// learner is behind, the minibatch stays open.
	MaxWait time.Duration `yaml:"max_wait"`
}

// Classes configures the labels.
type Classes struct {
	// Names are the labels known from the start. They have a probability
	// before their first sample; other labels have not.
	Names []string `yaml:"names"`
	// Open accepts labels that are not in Names, as new classes. Default true.
	Open bool `yaml:"open"`
	// Max bounds the number of classes, and with it the memory: O(H·M²) for each.
	// A label beyond it is refused and counted; Names have room in any case. Default
	// 32, range 2 to 250.
	Max int `yaml:"max"`
	// Confirm is the number of samples that must carry a new label
	// before it is a class: they wait, and are judged and learnt when it is. It
	// keeps a typing error from becoming a class. Twice that number, at most 100, where
	// 16 classes are known already, so that names which occur once cannot use
	// up Max. Default 1, range 1 to 100.
	Confirm int `yaml:"confirm"`
}

// cautiousFrom is the number of classes from which on a new label needs twice the
// samples.
const cautiousFrom = 16

// Needed is the number of samples that must carry a new label before it is a class,
// where known classes exist.
func (c *Classes) Needed(known int) int {
	if known < cautiousFrom {
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

// Kernel is the number of kernels.
type Kernel string

const (
	// Shared: one kernel and one set of inducing inputs for all classes.
	Shared Kernel = "shared"
	// PerClass: a kernel and inducing inputs for each class. C times the cost of
	// a basis; for large sets of many classes that one basis cannot carry.
	PerClass Kernel = "per-class"
)

// Temporal is the use of the order of the labels in a prediction.
type Temporal string

const (
	TemporalOff  Temporal = "off"  // never: only the features count
	TemporalAuto Temporal = "auto" // to the degree that it has predicted the labels better
	TemporalOn   Temporal = "on"   // always
)

// Config configures a learner. DefaultConfig returns the defaults.
type Config struct {
	// Inducing is M, the number of inducing points. Memory is O(H·C·M²),
	// independent of the length of the stream. Default 50, 100 where labels are
	// requested; range 2 to 1000.
	Inducing int `yaml:"inducing"`
	// Kernel is shared or per-class. Default shared.
	Kernel Kernel `yaml:"kernel"`
	// Horizons is the bank of forgetting horizons; cost and memory are linear
	// in their number. Default [inf, 500, 100], 1 to 8 of them.
	Horizons []Horizon `yaml:"horizons"`
	// Window is R, the number of latest observations whose sites are kept
	// explicitly and refined. Default 100, range 0 to 10000.
	Window int `yaml:"window"`
	// Batch configures when a minibatch is closed.
	Batch Batch `yaml:"batch"`
	// Classes configures the labels.
	Classes Classes `yaml:"classes"`
	// Warmup is the number of observations after which the model is built for
	// the last time from all of them; the raw observations are then
	// dropped. 0 means 4·Inducing, 6·Inducing where labels are requested. Default 0.
	Warmup int `yaml:"warmup"`
	// Sweeps that refine sites in each step: the last one those of four steps, or of
	// the whole window during the warm-up, the others those of the new samples. Default
	// 2, range 1 to 10.
	Sweeps int `yaml:"sweeps"`
	// Damping of a site's update after the first sweep: 1 replaces the site, 0.5
	// moves it half way. After the warm-up, of a site that is refined for the first
	// time, 2/C of what another one keeps is kept, for C classes. Default 0.5.
	Damping float64 `yaml:"damping"`
	// LearningRate of Adam at 32 samples a minibatch; it falls with the square
	// root of the size. After the warm-up every second step follows the gradient, of
	// the samples of both, with less momentum; from 50,000 labels on the rate falls with their
	// number while a horizon that never forgets answers. 0 keeps kernel and inducing inputs. Default 0.02.
	LearningRate float64 `yaml:"learning_rate"`
	// Gradient is the number of observations whose evidence a step of Adam
	// follows during the warm-up, at least: the new ones, and the latest of the
	// window where they are fewer. Default 0, the new ones alone; 16 where labels
	// are requested. Range 0 to 1000.
	Gradient int `yaml:"gradient"`
	// LabelNoise is the probability that a label is wrong.
	LabelNoise LabelNoise `yaml:"label_noise"`
	// Track lets the feature scaling follow the stream with this memory in
	// observations; 0 freezes it after the warm-up. Default 0; 3000 for slow,
	// 1000 for strong sensor drift.
	Track  float64 `yaml:"track"`
	Mixing `yaml:",inline"`
	// ClassWeights configures the weight of a sample of each class.
	ClassWeights ClassWeights `yaml:"class_weights"`
	Monitoring   `yaml:",inline"`
	// Clip bounds the distance of a feature from its mean, in standard deviations:
	// a feature beyond it is moved to the bound, and counted. Default 8, range
	// 1 to 1000.
	Clip float64 `yaml:"clip"`
	// Seed of the initial inducing points. Default 1.
	Seed uint64 `yaml:"seed"`

	Derived `yaml:",inline"`

	// Features names the D inputs in order, those of the streams.
	Features []string `yaml:"-"`
}

// Derived are the settings that other keys of a configuration determine.
type Derived struct {
	// Passes over its observations that a build makes in the warm-up once it has one
	// for each inducing point; set by ApplyDefaults. 0 means 1. All but the first move
	// the kernel alone, at three times the learning rate and under a normal prior of
	// precision 10 on each log ℓ around their mean: moving the inducing inputs as well
	// would fit the few observations better and others worse.
	Passes int `yaml:"-"`
	// Signals identifies how the streams make the features of signals; "": they are
	// those of the payloads. A state that learnt others cannot go on.
	Signals string `yaml:"-"`
}

// Mixing holds the settings of the parts that answer together with the Gaussian process.
type Mixing struct {
	// Temporal lets a prediction use the label of the sample before, where that
	// is known: labels may persist or follow each other in some order. It counts
	// for samples that bring their label; the order is learnt from late labels as
	// well. The latest labels count under the same condition. Default auto; off, auto
	// or on.
	Temporal Temporal `yaml:"temporal"`
	// Experts configures the models beside the Gaussian process.
	Experts Experts `yaml:"experts"`
	// Fleet configures the exchange with the learners of other devices.
	Fleet Fleet `yaml:"-"`
}

// Monitoring holds the settings for the uncertainty of predictions and for drift.
type Monitoring struct {
	// Abstain is the rule for predictions that should not be relied on.
	Abstain conformal.Abstain `yaml:"abstain"`
	// Conformal configures sets of classes that hold the label as often as wanted.
	Conformal conformal.Config `yaml:"conformal"`
	// Drift configures the detection of changes of the stream, and the action.
	Drift drift.Config `yaml:"drift"`
}

// Values of ApplyDefaults where labels are requested: each label of few has to do
// more than one of many, and may cost more.
const (
	fewGradient = 16  // observations of a gradient step
	fewInducing = 100 // inducing points
	fewWarmup   = 6   // observations of the warm-up for each inducing point
	fewPasses   = 4   // over them in each build
)

// ApplyDefaults completes c, whose Inducing may be 0, for a model whose labels are
// requested by a: a model of few labels has more inducing points, is built from more
// labels and in several passes, and its gradient steps follow more than the latest
// observations. Settings that are not 0 stay.
func (c *Config) ApplyDefaults(a active.Config) {
	if !a.Few() {
		c.Inducing = cmp.Or(c.Inducing, DefaultConfig().Inducing)
		return
	}
	c.Inducing = cmp.Or(c.Inducing, fewInducing)
	c.Gradient = cmp.Or(c.Gradient, fewGradient)
	c.Warmup = cmp.Or(c.Warmup, fewWarmup*c.Inducing)
	c.Passes = fewPasses
}

// DefaultConfig returns the defaults that configs/edge.yaml documents.
func DefaultConfig() Config {
	return Config{
		Inducing:     50,
		Kernel:       Shared,
		Horizons:     []Horizon{Horizon(math.Inf(1)), 500, 100},
		Window:       100,
		Batch:        Batch{MaxSize: 16, MaxWait: 50 * time.Millisecond},
		Classes:      Classes{Open: true, Max: 32, Confirm: 1},
		Sweeps:       2,
		Damping:      0.5,
		LearningRate: 0.02,
		LabelNoise:   LabelNoise{Start: 0.01, Max: 0.2, Learn: true},
		Mixing: Mixing{
			Temporal: TemporalAuto, Experts: Experts{Regression: On, Forest: FullForest},
			Fleet: Fleet{Trust: fleet.DefaultTrust, Unseen: ReportUnseen},
		},
		ClassWeights: ClassWeights{Mode: Unweighted, Max: 10},
		Clip:         model.DefaultClip,
		Monitoring: Monitoring{
			Abstain:   conformal.Abstain{NoveltyAbove: 1},
			Conformal: conformal.Config{Coverage: 0.9},
			Drift:     drift.Default(),
		},
		Seed: 1,
	}
}

// bank returns the settings of the bank of posteriors.
func (c *Config) bank() sep.Config {
	lengths := make([]float64, len(c.Horizons))
	for h, length := range c.Horizons {
		lengths[h] = float64(length)
	}
	return sep.Config{
		Features: len(c.Features), Inducing: c.Inducing, Horizons: lengths, Window: c.Window, Batch: c.Batch.MaxSize,
		Sweeps: c.Sweeps, Damping: c.Damping, LearningRate: c.LearningRate, Gradient: c.Gradient,
		NoiseStart: c.LabelNoise.Start, NoiseMax: c.LabelNoise.Max, LearnNoise: c.LabelNoise.Learn,
		PerClass: c.Kernel == PerClass, Track: c.Track, Clip: c.Clip, Seed: c.Seed,
	}
}

// mixture returns the settings of the mixture.
func (c *Config) mixture() mixture.Config {
	return mixture.Config{
		Features: len(c.Features), Horizons: len(c.Horizons),
		Chain: c.Temporal != TemporalOff, Always: c.Temporal == TemporalOn, FewLabels: c.Passes > 0,
		Regression: c.Experts.Regression == On, Forest: c.Experts.Forest.exists(),
		Weighted: c.ClassWeights.Mode == Balanced,
	}
}

// warmup is n_warm, the observations after which the model is built for the last time.
func (c *Config) warmup() int {
	if c.Warmup > 0 {
		return max(c.Warmup, minBuild)
	}
	return max(4*c.Inducing, minBuild)
}
