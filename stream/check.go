package stream

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"edge/model"
	"edge/online"
	"edge/online/conformal"
)

// Check returns the errors that NewNode would return, joined, each with its key. It
// ignores Model, Waiting and Mark of the models.
func Check(cfg Config, models []ModelConfig) error {
	models = slices.Clone(models)
	for i, m := range models {
		d := len(m.Features)
		if d == 0 && len(m.Streams) > 0 {
			d = len(cfg.Streams[m.Streams[0]].FeatureNames())
		}
		models[i].Model = &untrainedModel{&model.Posterior{Scale: model.Scale{Mu: make([]float64, d)}}}
	}
	_, _, err := newNode(cfg, Deps{Models: models, Log: slog.New(slog.DiscardHandler)})
	return err
}

// untrainedModel stands for the models in Check.
type untrainedModel struct{ prior *model.Posterior }

func (u *untrainedModel) Snapshot() *model.Posterior { return u.prior }
func (u *untrainedModel) Status() *online.Status {
	return &online.Status{Classes: new(online.ClassList)}
}
func (u *untrainedModel) Uncertainty() *conformal.Uncertainty          { return new(conformal.Uncertainty) }
func (u *untrainedModel) Learn(context.Context, []online.Record) error { return errors.ErrUnsupported }
func (u *untrainedModel) Idle(context.Context) error                   { return nil }
func (u *untrainedModel) Busy() bool                                   { return false }
