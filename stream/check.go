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

// Check reports what NewNode would refuse, joined, each with its key. Of the
// models, Model, Waiting and Mark are not looked at.
func Check(cfg Config, models []ModelConfig) error {
	models = slices.Clone(models)
	for i, m := range models {
		d := len(m.Features)
		if d == 0 && len(m.Streams) > 0 {
			d = len(cfg.Streams[m.Streams[0]].FeatureNames())
		}
		models[i].Model = unlearnt{&model.Posterior{Scale: model.Scale{Mu: make([]float64, d)}}}
	}
	_, _, err := newNode(cfg, Deps{Models: models, Log: slog.New(slog.DiscardHandler)})
	return err
}

// unlearnt is a model before there is one, for Check.
type unlearnt struct{ prior *model.Posterior }

func (u unlearnt) Posterior() *model.Posterior                  { return u.prior }
func (u unlearnt) Status() *online.Status                       { return new(online.Status) }
func (u unlearnt) Uncertainty() *conformal.Uncertainty          { return new(conformal.Uncertainty) }
func (u unlearnt) Learn(context.Context, []online.Record) error { return errors.ErrUnsupported }
func (u unlearnt) Idle(context.Context) error                   { return nil }
