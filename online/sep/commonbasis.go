package sep

import (
	"fmt"
	"slices"

	"edge/model"
)

// SetRateFactor changes the factor of the learning rate. It is 1 at the start.
func (b *Bank) SetRateFactor(f float64) { b.rateFactor = f }

// BeginAt makes an empty model with given parameters and scaling. Latent functions are
// added by Grow; room is the number of them to make room for. The error is model.ErrFactor.
func (b *Bank) BeginAt(p *model.Params, s *model.Scale, room int) error {
	b.allocate()
	b.setScale(s)
	b.setParams(p.Theta, b.cfg.NoiseStart)
	if err := b.setBases(); err != nil {
		return fmt.Errorf("online: begin at a common basis: %w", err)
	}
	b.reserve(room)
	return nil
}

// setScale takes over a scaling, but for its clip.
func (b *Bank) setScale(s *model.Scale) {
	copy(b.scale.Mu, s.Mu)
	copy(b.scale.Sd, s.Sd)
	b.scale.Ranks, b.view.Scale.Ranks = s.Ranks, s.Ranks
	copy(b.view.Scale.Mu, s.Mu)
	copy(b.view.Scale.Sd, s.Sd)
}

// setParams takes over parameters, within their bounds. A label noise of 0 stays as it is,
// here or there: eps is the own one.
func (b *Bank) setParams(theta []float64, eps float64) {
	copy(b.params.Theta, theta)
	if noise := b.params.LogitEps(); eps == 0 || *noise-*noise != 0 {
		*noise = model.Logit(eps)
	}
	b.params.Clamp(b.cfg.NoiseMax)
}

// Move adds numbers to the parameters, one for each element of Theta, and projects the absorbed
// sites on the new basis. Save comes before it, and errors are those of Learn.
func (b *Bank) Move(by []float32) error {
	b.ready()
	b.keepParams()
	for i, v := range by {
		b.params.Theta[i] += float64(v)
	}
	b.params.Clamp(b.cfg.NoiseMax)
	if err := b.rebase(nil); err != nil {
		return err
	}
	return b.Refresh()
}

// AdoptBasis replaces parameters and scaling, and projects the absorbed sites on the new basis.
// The window's points keep their sites and are standardised anew. The optimiser begins
// again. An error leaves the state damaged.
func (b *Bank) AdoptBasis(p *model.Params, s *model.Scale) error {
	b.ready()
	from, d := b.scale, b.cfg.Features
	from.Mu, from.Sd = slices.Clone(from.Mu), slices.Clone(from.Sd)
	b.keepParams()
	b.setScale(s)
	z := slices.Clone(b.params.Z())
	for i := range z {
		z[i] = b.scale.Unclipped(i%d, from.Raw(i%d, z[i]))
	}
	x := make([]float64, d)
	for i := range b.winY {
		row := b.winX[i*d : (i+1)*d]
		for j, v := range row {
			if x[j] = v; v != model.Missing { // To takes a number that is not finite as missing
				x[j] = from.Raw(j, v)
			}
		}
		b.scale.To(row, x)
	}
	b.setParams(p.Theta, b.params.Eps())
	clear(b.opt.M)
	clear(b.opt.V)
	b.opt.Steps = 0
	b.EndWarmup()
	if err := b.rebase(z); err != nil {
		return err
	}
	return b.Refresh()
}
