package doctor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/model"
	"edge/online"
)

// modelSpeed is the measured speed of one model on this machine.
type modelSpeed struct {
	Classes        int     `json:"classes"`
	Inducing       int     `json:"inducing"`
	Features       int     `json:"features"`
	PredictMicros  float64 `json:"predict_us"` // median
	StepMicros     float64 `json:"step_us"`    // median; 0 if no step ended in time
	SamplesASecond float64 `json:"samples_per_second"`
	Steps          int     `json:"steps"`
}

// measureSpeed trains a model of the configured size on random samples until within
// has passed or ctx ends. It stores nothing.
func measureSpeed(ctx context.Context, cfg online.Config, within time.Duration) (modelSpeed, error) {
	const leastClasses, mostPredictions, mostSteps = 3, 2000, 60
	names := slices.Clone(cfg.Classes.Names)
	for k := len(names); k < min(leastClasses, cfg.Classes.Max); k++ {
		names = append(names, fmt.Sprintf("class %d", k+1))
	}
	cfg.Classes.Names = names
	cfg.Batch.MaxWait = 0
	cfg.Warmup = max(cfg.Inducing, 2*cfg.Batch.MaxSize) // enough samples for a model of this size
	learner, err := online.NewLearner(cfg)
	if err != nil {
		return modelSpeed{}, err
	}
	speed := modelSpeed{Classes: len(names), Inducing: cfg.Inducing, Features: len(cfg.Features)}
	rng := rand.New(rand.NewPCG(1, 1))
	sample := func() *online.Event {
		k := rng.IntN(len(names))
		x := make([]float64, len(cfg.Features))
		for j := range x {
			x[j] = rng.NormFloat64()
			if j%len(names) == k {
				x[j] += 2
			}
		}
		return &online.Event{Kind: online.Observe, X: x, Label: names[k]}
	}
	deadline := time.Now().Add(within)
	going := func() bool { return ctx.Err() == nil && time.Now().Before(deadline) }
	for !learner.WarmedUp() && going() {
		learner.Add(sample())
	}
	var steps []time.Duration
	for learner.WarmedUp() && going() && len(steps) < mostSteps {
		before := learner.Counters().Steps
		began := time.Now()
		learner.Add(sample())
		if took := time.Since(began); learner.Counters().Steps > before {
			steps = append(steps, took)
		}
	}
	posterior, ws := learner.Posterior(), model.NewWorkspace()
	var dst []float64
	var predictions []time.Duration
	for end := time.Now().Add(within / 4); len(predictions) < mostPredictions && time.Now().Before(end) && ctx.Err() == nil; {
		ev := sample()
		began := time.Now()
		if dst, _, err = posterior.PredictTo(dst, ev.X, ws); err != nil {
			return speed, err
		}
		predictions = append(predictions, time.Since(began))
	}
	speed.PredictMicros, speed.StepMicros, speed.Steps = medianMicros(predictions), medianMicros(steps), len(steps)
	if speed.StepMicros > 0 {
		speed.SamplesASecond = float64(cfg.Batch.MaxSize) * 1e6 / speed.StepMicros
	}
	return speed, nil
}

// medianMicros returns the median in microseconds, 0 without times.
func medianMicros(times []time.Duration) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()) / 1e3
}

// examineSpeed measures the speed of one model, for at most within.
func examineSpeed(ctx context.Context, d *diagnosis.Diagnosis, cfg *config.Config, name string, within time.Duration) {
	check := "speed of " + name
	learner, err := cfg.Learner(name)
	if err != nil {
		return // cannot happen: the configuration is valid
	}
	const slow = 1.0 // samples a second
	s, err := measureSpeed(ctx, learner, within)
	detail := fmt.Sprintf("%.0f µs a prediction, %.0f µs a step of %d samples: learns at most %.0f a second (%d classes, M = %d, %d features)",
		s.PredictMicros, s.StepMicros, learner.Batch.MaxSize, s.SamplesASecond, s.Classes, s.Inducing, s.Features)
	advice := "lower inducing: time grows with its square; or the window, or the number of horizons"
	switch {
	case err != nil:
		d.Fail(check, err.Error(), "")
	case s.Steps == 0:
		d.Add(check, diagnosis.Warn, fmt.Sprintf("%.0f µs a prediction; no step was finished within %v", s.PredictMicros, within), advice, s)
	case s.SamplesASecond < slow:
		d.Add(check, diagnosis.Warn, detail, advice, s)
	default:
		d.Add(check, diagnosis.OK, detail, "", s)
	}
}
