package active

import (
	"errors"
	"slices"

	"edge/model"
)

// Strategy is the score by which samples are selected.
type Strategy string

// The strategies: no label is requested; samples are selected at random; or
// preferably those whose most probable classes are close, whose probabilities are
// spread, or whose label would be most informative about the latent functions.
const (
	Off     Strategy = "off"
	Random  Strategy = "random"
	Margin  Strategy = "margin"  // 1 − model.Margin
	Entropy Strategy = "entropy" // model.Entropy
	BALD    Strategy = "bald"    // √(model.Workspace.BALD · (1 − model.Margin))
)

// Strategies returns all strategies but Off.
func Strategies() []Strategy { return []Strategy{Margin, Entropy, BALD, Random} }

// Config configures the requests for labels.
type Config struct {
	// Strategy: off, margin, entropy, bald or random. Default off.
	Strategy Strategy `yaml:"strategy" jsonschema:"enum=off,enum=margin,enum=entropy,enum=bald,enum=random"`
	// Budget is the largest fraction of the samples whose label is requested. A new
	// model begins with that of its next 2400 samples, at least 20, and saves it later.
	// Default 0.1, above 0, at most 1.
	Budget float64 `yaml:"budget"`
	// PerHour is the largest number of requests in any hour, spread evenly: after
	// each, the time of an even spread passes before the next. 0: no such bound. Default 12.
	PerHour float64 `yaml:"budget_per_hour"`
}

// Default returns the defaults that configs/edge.yaml documents.
func Default() Config { return Config{Strategy: Off, Budget: 0.1, PerHour: 12} }

// Enabled reports whether labels are requested.
func (c Config) Enabled() bool { return c.Strategy != Off && c.Strategy != "" }

// Few reports whether the model learns the requested labels alone, and not every one.
func (c Config) Few() bool { return c.Enabled() && c.Budget != 1 }

// Validate reports every field that is out of range, joined.
func (c Config) Validate() error {
	return errors.Join(
		model.CheckSetting(!c.Enabled() || slices.Contains(Strategies(), c.Strategy), "strategy", c.Strategy, "off, margin, entropy, bald or random"),
		model.CheckSetting(c.Budget > 0 && c.Budget <= 1, "budget", c.Budget, "a fraction of the samples, above 0, at most 1"),
		model.CheckSetting(c.PerHour >= 0 && c.PerHour <= 3600, "budget_per_hour", c.PerHour, "0 (no bound) to 3600"),
	)
}
