// Package offline is edge's offline training, package online/train, as a method of the
// laboratory.
package offline

import (
	"context"
	"errors"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/online"
	"edge/online/train"
)

// Default are the settings for small sets: full batches, merged sites, Adam, and a prior
// that holds the log lengthscales of a class together.
func Default() train.Config {
	how := train.Default()
	how.Batch, how.Passes, how.Sites, how.Schedule, how.Rate, how.Damping, how.Prior = 0, 250, train.Merged, train.Constant, 0.02, 0.5, 0.3
	return how
}

// Train learns with the default settings; the updates of a problem are passes.
func Train(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	how := Default()
	how.Passes = p.Updates
	return With(how)(ctx, p)
}

// With returns a method that learns with those settings, whose Passes replace the updates of
// a problem. It has the problem's number of inducing points and of kernels, and a start of
// its own. Problem.Hold is not for it.
func With(how train.Config) lab.Method {
	return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
		cfg, err := config(p)
		if err != nil {
			return nil, err
		}
		return learn(ctx, cfg, how, p.Data, p.Watch)
	}
}

// learn runs all passes, and shows each step to watch unless that is nil.
func learn(ctx context.Context, cfg online.Config, how train.Config, d *lab.Data, watch func(lab.Classifier)) (lab.Classifier, error) {
	t, err := train.New(cfg, how, names(d.C), samples{d})
	if err != nil {
		return nil, err
	}
	c := classifier{t, d}
	for !t.Done() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := t.Step(); err != nil {
			return nil, err
		}
		if watch != nil {
			watch(c)
		}
	}
	return c, nil
}

// config returns the configuration for a problem.
func config(p *lab.Problem) (online.Config, error) {
	cfg := online.DefaultConfig()
	if p.Hold != nil {
		return cfg, errors.New("offline: edge learns all parameters")
	}
	cfg.Features, cfg.Inducing, cfg.Kernel, cfg.LabelNoise.Start = names(p.Data.D), p.Start.M, online.PerClass, 0
	if p.Start.Groups() == 1 {
		cfg.Kernel = online.Shared
	}
	return cfg, nil
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}

// samples are rows as the training takes them.
type samples struct{ *lab.Data }

func (s samples) Len() int                 { return s.N() }
func (s samples) Row(i int, dst []float64) { copy(dst, s.Data.Row(i)) }
func (s samples) Class(i int) int          { return s.Y[i] }

// classifier predicts with a trained model.
type classifier struct {
	trained *train.Trainer
	learnt  *lab.Data
}

// Predict returns class probabilities, n×C.
func (c classifier) Predict(x []float64) (*mat.Dense, error) {
	n := len(x) / c.learnt.D
	out := mat.NewDense(n, c.learnt.C, nil)
	rows := samples{&lab.Data{D: c.learnt.D, C: c.learnt.C, X: x, Y: make([]int, n)}}
	err := c.trained.Predict(rows, func(i int, probs []float64) { out.SetRow(i, probs) })
	return out, err
}
