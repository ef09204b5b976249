package online

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"edge/model"
	"edge/online/drift"
	"edge/online/fleet"
)

// Bounds of the configuration. They also bound the sizes in a state file.
const (
	maxInducing = 1000
	maxHorizons = 8
	maxWindow   = 10000
	maxBatch    = 1000
	maxClasses  = model.MaxClasses
	maxWarmup   = 100000
)

// Validate reports every field that is out of range, joined.
func (c Config) Validate() error {
	var errs []error
	for _, r := range []struct {
		key    string
		v      float64
		lo, hi float64
		values string
	}{
		{"inducing", float64(c.Inducing), 2, maxInducing, "inducing points"},
		{"window", float64(c.Window), 0, maxWindow, "observations"},
		{"batch.max_size", float64(c.Batch.MaxSize), 1, maxBatch, "samples"},
		{"classes.max", float64(c.Classes.Max), 2, maxClasses, "classes"},
		{"classes.confirm", float64(c.Classes.Confirm), 1, maxConfirm, "samples"},
		{"warmup", float64(c.Warmup), 0, maxWarmup, "observations, 0 for 4 × inducing"},
		{"sweeps", float64(c.Sweeps), 1, 10, "sweeps"},
		{"learning_rate", c.LearningRate, 0, 1, "rate"},
		{"gradient", float64(c.Gradient), 0, maxBatch, "observations"},
		{"label_noise.start", c.LabelNoise.Start, 0, 0.5, "probability"},
		{"label_noise.max", c.LabelNoise.Max, 0.001, 0.5, "probability"},
		{"class_weights.max", c.ClassWeights.Max, 1, MaxWeight, "weight"},
		{"abstain.novelty_above", c.Abstain.NoveltyAbove, 0, 1, "fraction of the prior variance"},
		{"abstain.confidence_below", c.Abstain.ConfidenceBelow, 0, 1, "probability"},
		{"drift.delta", c.Drift.Delta, 1e-12, 0.5, "probability"},
		{"drift.lambda", c.Drift.Lambda, 1, 1e6, "standard deviations times samples"},
		{"drift.cooldown", float64(c.Drift.Cooldown), 1, 1e9, "labels"},
		{"clip", c.Clip, 1, 1000, "standard deviations"},
	} {
		if !(r.v >= r.lo && r.v <= r.hi) {
			errs = append(errs, model.CheckSetting(false, r.key, r.v, fmt.Sprintf("%s, %.15g to %.15g", r.values, r.lo, r.hi)))
		}
	}
	for _, h := range c.Horizons {
		errs = append(errs, model.CheckSetting(h >= 10, "horizons", float64(h), "at least 10 observations, or inf"))
	}
	for i, name := range c.Classes.Names[:min(len(c.Classes.Names), maxClasses)] {
		errs = append(errs,
			model.CheckSetting(name != "" && len(name) <= MaxLabel, "classes.names", name, "1 to 256 bytes each"),
			model.CheckSetting(!slices.Contains(c.Classes.Names[:i], name), "classes.names", name, "no name twice"))
	}
	f := &c.Fleet
	return errors.Join(append(errs,
		model.CheckSetting(c.Kernel == Shared || c.Kernel == PerClass, "kernel", c.Kernel, "shared or per-class"),
		model.CheckSetting(len(c.Horizons) >= 1 && len(c.Horizons) <= maxHorizons, "horizons", len(c.Horizons), "1 to 8 of them"),
		model.CheckSetting(c.Batch.MaxWait == 0 || c.Batch.MaxWait >= time.Millisecond, "batch.max_wait", c.Batch.MaxWait, "0 (by count alone) or at least 1ms"),
		model.CheckSetting(len(c.Classes.Names) <= maxClasses, "classes.names", len(c.Classes.Names), "at most 250 names"),
		model.CheckSetting(c.Classes.Open || len(c.Classes.Names) >= 2, "classes.names", len(c.Classes.Names), "two names or more, or classes.open: true"),
		model.CheckSetting(c.Damping > 0 && c.Damping <= 1, "damping", c.Damping, "above 0, at most 1"),
		model.CheckSetting(c.LabelNoise.Start <= c.LabelNoise.Max, "label_noise.start", c.LabelNoise.Start, "at most label_noise.max"),
		model.CheckSetting(c.Track == 0 || (c.Track >= 10 && c.Track <= 1e9), "track", c.Track, "0, or a memory of 10 to 1000000000 observations"),
		model.CheckSetting(slices.Contains([]Temporal{TemporalOff, TemporalAuto, TemporalOn}, c.Temporal), "temporal", c.Temporal, "off, auto or on"),
		model.CheckSetting(c.Experts.Regression == On || c.Experts.Regression == Off, "experts.regression", c.Experts.Regression, "on or off"),
		model.CheckSetting(slices.Contains([]ForestSize{FullForest, SmallForest, NoForest, StoredForest}, c.Experts.Forest), "experts.forest", c.Experts.Forest, "on, small or off"),
		model.CheckSetting(c.ClassWeights.Mode == Unweighted || c.ClassWeights.Mode == Balanced, "class_weights.mode", c.ClassWeights.Mode, "none or balanced"),
		model.CheckSetting(c.Conformal.Coverage == 0 || c.Conformal.Coverage >= 0.5 && c.Conformal.Coverage <= 0.999, "conformal.coverage", c.Conformal.Coverage, "0 (no sets), or 0.5 to 0.999"),
		model.CheckSetting(slices.Contains([]drift.Detector{drift.Off, drift.ADWIN, drift.PageHinkley}, c.Drift.Detector), "drift.detector", c.Drift.Detector, "adwin, page-hinkley or off"),
		model.CheckSetting(slices.Contains([]drift.Signal{drift.OnLogLoss, drift.OnError, drift.OnNovelty}, c.Drift.On), "drift.on", c.Drift.On, "log_loss, error or novelty"),
		model.CheckSetting(slices.Contains([]drift.Action{drift.ActionNone, drift.ActionForget, drift.ActionReseed, drift.ActionRollback}, c.Drift.Action), "drift.action", c.Drift.Action, "none, forget, reseed or rollback"),
		model.CheckSetting(slices.Contains([]Unseen{"", ReportUnseen, MixUnseen}, f.Unseen), "fleet.unseen", f.Unseen, "report or mix"),
		model.CheckSetting(slices.Contains([]fleet.Precision{0, fleet.Bfloat16, fleet.Float32}, f.Precision), "fleet.precision", f.Precision, "bfloat16 or float32"),
		model.CheckSetting(f.Trust == f.Trust, "fleet.trust", f.Trust, "a number of standard errors"),
		model.CheckSetting(len(c.Horizons) == 0 || len(c.fleetHorizons()) > 0, "fleet.horizons", f.Horizons, "some of the model's horizons"),
		model.CheckSetting(len(c.Features) >= 1 && len(c.Features) <= MaxFeatures, "features", len(c.Features), "1 to 10000 features"),
	)...)
}

// MaxFeatures bounds the features of a model.
const MaxFeatures = 10000

// MaxLabel bounds a label's length in bytes.
const MaxLabel = 256

// MaxNames bounds the names of classes, former ones included, with which a class may be renamed.
const MaxNames = 2 * maxClasses
