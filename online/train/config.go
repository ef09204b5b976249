package train

import (
	"errors"
	"math"
	"slices"

	"edge/model"
	"edge/online/sep"
)

// Optimizer moves the parameters along the gradient of the log evidence.
type Optimizer string

const (
	// Adam suits minibatches, and full batches with a shared kernel.
	Adam Optimizer = "adam"
	// SignRule gives each parameter a rate of its own, which grows while the
	// gradient keeps its sign and halves when that changes. It needs full
	// batches, and is better there with a kernel for each class.
	SignRule Optimizer = "sign"
)

// Sites is the form in which the samples' factors are kept.
type Sites string

const (
	// Tied keeps the product of all sites alone (stochastic EP): memory does not
	// grow with the set.
	Tied Sites = "tied"
	// Merged keeps a site for each sample and class, N·C pairs of numbers: a cavity
	// leaves out the sample's own sites instead of mean ones. The factors of the
	// sample's pairs of classes share a cavity, which makes it over-confident with
	// many classes.
	Merged Sites = "merged"
	// Pairs keeps two sites for each sample and pair of its class with another, 2·N·C
	// pairs of numbers, each with a cavity of its own (EP).
	Pairs Sites = "pairs"
	// Rep keeps a site for each sample and class, of the joint probability that the
	// label's function is the largest, by quadrature. It costs two to five times as
	// much as Merged where N·C counts, not M.
	Rep Sites = "rep"
)

// explicitName is the former name of Merged.
const explicitName = "explicit"

// SitesNamed returns the sites of that name, and of an earlier one.
func SitesNamed(name string) Sites {
	if name == explicitName {
		return Merged
	}
	return Sites(name)
}

// Schedule is the decrease of the learning rate.
type Schedule string

const (
	// Constant does not decrease.
	Constant Schedule = "constant"
	// Cosine falls to a hundredth along half a wave, over all passes.
	Cosine Schedule = "cosine"
	// InverseSqrt falls with the square root of the passes.
	InverseSqrt Schedule = "sqrt"
)

// Scaling is the standardisation of the features.
type Scaling string

const (
	// PerFeature gives each feature mean 0 and standard deviation 1.
	PerFeature Scaling = "feature"
	// Plain is PerFeature without clipping outliers before mean and standard
	// deviation are taken, for sets without outliers.
	Plain Scaling = "plain"
	// Common divides all features by one standard deviation, for features in one
	// unit, such as pixels, where a rare one should not be amplified.
	Common Scaling = "common"
)

// Start is the choice of the first inducing inputs.
type Start string

const (
	// KMeans begins at centres of the samples.
	KMeans Start = "kmeans"
	// Subset begins at random samples.
	Subset Start = "subset"
	// PerClassKMeans begins at centres of the class's own samples and, in equal
	// number, at centres of the others. It needs a kernel for each class.
	PerClassKMeans Start = "classes"
)

// Config configures the training on a fixed set over many passes.
type Config struct {
	Passes    int       // over the set, at most. Default 20
	Batch     int       // samples a minibatch; 0: all of them (a full batch). Default 100
	Sites     Sites     // tied, merged, pairs or rep. Default tied
	Optimizer Optimizer // adam or sign. Default adam
	Rate      float64   // of the optimiser; 0 keeps the first parameters. Default 0.01
	Schedule  Schedule  // constant, cosine or sqrt. Default cosine
	Damping   float64   // of the sites: 1 replaces; 0: 1, and 0.5 where a batch has all samples, with which 1 oscillates. Default 0
	Prior     float64   // precision of a normal prior on each log ℓ around their mean; 0: none. Default 0
	Settle    int       // passes that update sites alone, before the first and after the last gradient step, with full batches. Default 4
	Patience  int       // passes without a better log evidence before it ends; 0: never. Default 0
	Tolerance float64   // nats a sample by which the log evidence has to get better. Default 1e-4
	Scaling   Scaling   // feature, plain or common. Default feature
	Start     Start     // kmeans, subset or classes. Default kmeans
	Length    float64   // first lengthscale, in median distances of two samples. Default 1
	Noise     float64   // first noise variance, the amplitude being 1. Default 0.1
}

// Default returns the defaults for minibatches.
func Default() Config {
	return Config{
		Passes: 20, Batch: 100, Sites: Tied, Optimizer: Adam, Rate: 0.01, Schedule: Cosine,
		Settle: 4, Tolerance: 1e-4, Scaling: PerFeature, Start: KMeans, Length: 1, Noise: sep.StartNoise,
	}
}

// Validate reports every field that is out of range, joined.
func (c Config) Validate() error {
	full := c.Batch == 0
	return errors.Join(
		model.CheckSetting(c.Passes >= 1 && c.Passes <= 1e6, "passes", c.Passes, "1 to 1000000"),
		model.CheckSetting(c.Batch >= 0 && c.Batch <= 1e6, "batch", c.Batch, "0 (all samples) to 1000000"),
		model.CheckSetting(slices.Contains([]Sites{Tied, Merged, Pairs, Rep}, c.Sites), "sites", c.Sites, "tied, merged, pairs or rep"),
		model.CheckSetting(c.Optimizer == Adam || c.Optimizer == SignRule && full, "optimizer", c.Optimizer, "adam, or sign with full batches (batch 0)"),
		model.CheckSetting(c.Rate >= 0 && c.Rate <= 1, "rate", c.Rate, "0 to 1"),
		model.CheckSetting(c.Schedule == Constant || c.Schedule == Cosine || c.Schedule == InverseSqrt, "schedule", c.Schedule, "constant, cosine or sqrt"),
		model.CheckSetting(c.Damping >= 0 && c.Damping <= 1, "damping", c.Damping, "above 0, at most 1; 0 chooses"),
		model.CheckSetting(c.Prior >= 0 && !math.IsInf(c.Prior, 1), "prior", c.Prior, "a precision, 0 for none"),
		model.CheckSetting(c.Settle >= 0 && c.Settle <= 1000, "settle", c.Settle, "0 to 1000 passes"),
		model.CheckSetting(c.Patience >= 0, "patience", c.Patience, "a number of passes, 0 for none"),
		model.CheckSetting(c.Tolerance >= 0, "tolerance", c.Tolerance, "nats a sample"),
		model.CheckSetting(c.Scaling == PerFeature || c.Scaling == Plain || c.Scaling == Common, "scale", c.Scaling, "feature, plain or common"),
		model.CheckSetting(c.Start == KMeans || c.Start == Subset || c.Start == PerClassKMeans, "start", c.Start, "kmeans, subset or classes"),
		model.CheckSetting(c.Length > 0.01 && c.Length < 100, "length", c.Length, "a factor, 0.01 to 100"),
		model.CheckSetting(c.Noise > 1e-4 && c.Noise < 100, "noise", c.Noise, "a variance, 1e-4 to 100"),
	)
}

// rate is the learning rate after that number of passes.
func (c *Config) rate(passes float64) float64 {
	switch c.Schedule {
	case Cosine:
		const least = 0.01
		done := min(passes/float64(c.Passes), 1)
		return c.Rate * (least + (1-least)*0.5*(1+math.Cos(math.Pi*done)))
	case InverseSqrt:
		return c.Rate / math.Sqrt(1+passes)
	}
	return c.Rate
}
