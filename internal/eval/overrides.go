package eval

import (
	"cmp"

	"edge/online"
	"edge/online/conformal"
	"edge/online/drift"
)

// Overrides replace keys of a model's configuration. A value outside a key's range
// (see New) leaves the key as it is; NaN does not, and is refused by check.
type Overrides struct {
	Batch      int    // samples of a minibatch
	Inducing   int    // inducing points; the window becomes twice as large
	Kernel     string // shared or per-class
	Mixing     online.Mixing
	Alone      bool    // the Gaussian process answers alone: no experts, and the order of the labels does not count
	Noise      float64 // first probability of a wrong label; below 0: as configured
	Coverage   float64 // of the prediction sets; below 0: as configured
	Abstain    conformal.Abstain
	Drift      drift.Config
	Weights    online.ClassWeights
	Undeclared bool // no class is known before its first label
	Confirm    int  // samples that confirm a new class
}

// check reports overrides that no configuration can have.
func (o *Overrides) check() error {
	cfg := online.DefaultConfig()
	cfg.Features = []string{"x"}
	o.apply(&cfg, false)
	return cfg.Validate()
}

// apply puts the overrides into cfg; offline training has minibatches of its own.
func (o *Overrides) apply(cfg *online.Config, offline bool) {
	if o.Batch > 0 && !offline {
		cfg.Batch.MaxSize = o.Batch
	}
	if o.Inducing > 0 {
		cfg.Inducing, cfg.Window = o.Inducing, 2*o.Inducing
	}
	if o.Kernel != "" {
		cfg.Kernel = online.Kernel(o.Kernel)
	}
	m := &cfg.Mixing
	m.Temporal = cmp.Or(o.Mixing.Temporal, m.Temporal)
	m.Experts.Regression = cmp.Or(o.Mixing.Experts.Regression, m.Experts.Regression)
	m.Experts.Forest = cmp.Or(o.Mixing.Experts.Forest, m.Experts.Forest)
	if o.Alone {
		*m = online.Mixing{Temporal: online.TemporalOff, Experts: online.Experts{Regression: online.Off, Forest: online.NoForest}}
	}
	if !(o.Noise < 0) {
		cfg.LabelNoise.Start = o.Noise
	}
	if !(o.Coverage < 0) {
		cfg.Conformal.Coverage = o.Coverage
	}
	if o.Undeclared {
		cfg.Classes.Names, cfg.Classes.Open = nil, true
	}
	cfg.Classes.Confirm = cmp.Or(o.Confirm, cfg.Classes.Confirm)
	cfg.ClassWeights.Mode, cfg.ClassWeights.Max = cmp.Or(o.Weights.Mode, cfg.ClassWeights.Mode), cmp.Or(o.Weights.Max, cfg.ClassWeights.Max)
	d := &cfg.Drift
	d.Detector, d.On, d.Action = cmp.Or(o.Drift.Detector, d.Detector), cmp.Or(o.Drift.On, d.On), cmp.Or(o.Drift.Action, d.Action)
	d.Delta, d.Lambda = cmp.Or(o.Drift.Delta, d.Delta), cmp.Or(o.Drift.Lambda, d.Lambda)
	if !(o.Abstain.NoveltyAbove < 0) {
		cfg.Abstain.NoveltyAbove = o.Abstain.NoveltyAbove
	}
	if !(o.Abstain.ConfidenceBelow < 0) {
		cfg.Abstain.ConfidenceBelow = o.Abstain.ConfidenceBelow
	}
}
