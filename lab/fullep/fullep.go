// Package fullep is expectation propagation without inducing points, for small N.
//
// The sites factorise over the classes, O(C N³) a sweep: package gfitc with the rows as
// inducing points, of which only the kernels are learnt. The tests compare them with sites
// that couple the classes.
//
// Source: Kim & Ghahramani (2006), "Bayesian Gaussian Process Classification with the EM-EP
// Algorithm".
package fullep

import (
	"context"

	"edge/lab"
	"edge/lab/gfitc"
	"edge/model"
)

// Train learns the kernels by L-BFGS on the evidence of the factorised sites.
func Train(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	full := *p
	full.Start = lab.AtRows(p.Data, p.Start)
	full.Hold = func(grad []float64) {
		gradient := model.Params{M: full.Start.M, D: full.Start.D, Theta: grad}
		for g := range gradient.Groups() {
			group := gradient.Group(g)
			clear(group.Z())
		}
	}
	return gfitc.Train(ctx, &full)
}
