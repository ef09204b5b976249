package online

import (
	"fmt"

	"edge/online/sep"
)

// Fit is a model that was fitted to a fixed set: sites and parameters, the classes
// of its latent functions, and the samples of each.
type Fit struct {
	sep.Fit
	Names  []string
	Counts []uint64
}

// FromFit returns a learner that carries on from a fitted model: it has learnt the
// set, its warm-up is over, its window is empty, and every horizon begins with all
// the sites, which then fade at its own rate. Weights of the horizons and moments
// of the optimiser begin at their start; nothing has been judged. A declared class
// that the set lacks has its latent function from its first label on: at its prior it
// would take a part of each answer. Errors: ErrConfig, and
// ErrFactor or ErrNotFinite of model for parameters or sites without a posterior.
func FromFit(cfg Config, f Fit) (*Learner, error) {
	l, err := NewLearner(cfg)
	if err != nil {
		return nil, err
	}
	r := &l.classes
	var order []int // the classes of the set
	for _, name := range f.Names {
		k, known := r.index[name]
		if !known {
			if len(r.names) >= cfg.Classes.Max {
				return nil, fmt.Errorf("online: more classes than classes.max, %d: %w", cfg.Classes.Max, ErrClass)
			}
			k = r.add(name)
		}
		order = append(order, k)
	}
	l.mix.ResetHorizons()
	err = l.bank.Load(&f.Fit, order)
	r.setLatent(l.view.Latent)
	if err != nil {
		return nil, err
	}
	l.warmup.done = true
	l.publishClasses()
	for i, n := range f.Counts {
		l.view.Counts[order[i]] += n
		l.view.N += n
	}
	l.mix.TrustBank()
	return l, nil
}
