package online

import (
	"errors"
	"fmt"

	"edge/model"
	"edge/online/fleet"
	"edge/online/natural"
)

// ErrNotReady: the learner has nothing to contribute yet, because its warm-up is not
// over, or because it knows fewer than two classes.
var ErrNotReady = errors.New("nothing to contribute yet")

// errPerClass refuses a fleet of a model in which each class has a kernel of its own.
var errPerClass = fmt.Errorf("online: a fleet needs kernel: shared: %w", ErrConfig)

// Contribution returns the natural parameters that the learner's own labels have taught it, for
// a member of that name. It holds nothing of others but in the factors of the exponents, which
// are of experts that others have part in. The caller sets Instance and Version. The
// samples of the minibatch that is filling are not in it.
//
// Errors: ErrNotReady; ErrConfig where each class has a kernel of its own; those of
// fleet.Contribution.Put.
func (l *Learner) Contribution(member string) (*fleet.Contribution, error) {
	if err := l.canContribute(); err != nil {
		return nil, err
	}
	h := fleet.Header{Member: member, Features: fleet.Features(l.cfg.Features, l.cfg.Signals), N: l.view.N, BasisEpoch: l.common.ID()}
	for _, class := range l.view.Latent {
		h.Classes, h.Counts = append(h.Classes, l.view.Names[class]), append(h.Counts, l.view.Counts[class])
	}
	own := l.cfg.fleetHorizons()
	for _, at := range own {
		h.Horizons, h.Weights = append(h.Horizons, float64(l.cfg.Horizons[at])), append(h.Weights, l.mix.OwnWeights()[at])
	}
	c := fleet.New(h, l.basis(), l.cfg.Fleet.precision())
	m := l.cfg.Inducing
	a, b := make([]float64, m*m), make([]float64, m)
	for at, horizon := range own {
		for k := range h.Classes {
			l.bank.Total(horizon, k, a, b)
			if err := c.Put(at, k, a, b); err != nil {
				return nil, err
			}
		}
	}
	if l.forest != nil {
		l.forest.Among(l.memberForests())
		c.SetForest(fleet.Select(l.forest.Contributed(), l.view.Scale.Mu, l.view.Latent))
	}
	c.SetExponents(l.mix.OwnFactors())
	return c, nil
}

// canContribute returns an error unless the learner has sites that others can use.
func (l *Learner) canContribute() error {
	switch {
	case l.cfg.Kernel == PerClass:
		return errPerClass
	case !l.warmup.done || len(l.view.Latent) < 2:
		return fmt.Errorf("online: %d labels of %d classes: %w", l.view.N, len(l.view.Latent), ErrNotReady)
	}
	return nil
}

// basis returns the learner's basis, which shares memory with it.
func (l *Learner) basis() fleet.Basis {
	return fleet.Basis{Params: l.bank.Params(), Scale: l.view.Scale}
}

// Merge adds the contributions of a set for the member of that name. The learner does
// not change: it does when the result comes as an event of kind Merge, see
// MergeEvent. The result depends on the learner's state and the set alone.
//
// During the warm-up the sums are written in a basis of the members, see fleet.Receiver. Errors:
// ErrConfig where each class has a kernel of its own; ErrFactor.
func (l *Learner) Merge(member string, set *fleet.Set) (*fleet.Merge, error) {
	if l.cfg.Kernel == PerClass {
		return nil, errPerClass
	}
	r := fleet.Receiver{Member: member, Features: fleet.Features(l.cfg.Features, l.cfg.Signals), Inputs: len(l.cfg.Features), Trust: l.cfg.Fleet.Trust, Units: l.cfg.Fleet.Units}
	r.Shared, r.Birth, r.Inducing, r.Mix = l.cfg.Fleet.Shared, l.common.Birth, l.cfg.Inducing, l.cfg.Fleet.Unseen == MixUnseen
	own := l.cfg.fleetHorizons()
	r.Experts = natural.Experts{Own: len(l.cfg.Horizons), Fleet: len(own), Forest: l.forest != nil}
	for _, at := range own {
		r.Horizons = append(r.Horizons, float64(l.cfg.Horizons[at]))
	}
	if l.canContribute() == nil {
		c, err := l.Contribution(member)
		if err != nil {
			return nil, err
		}
		r.Own, r.Basis, r.Window = c, l.basis(), l.fleetWindow(own[0])
		r.Labels = l.fleetLabels()
	} else if l.view.N >= fleet.MinWindow {
		r.Labels = l.fleetLabels() // of the warm-up; sites cannot be tested before its end
	}
	m, err := r.Merge(set)
	if err == nil {
		l.keepForests(m)
	}
	return m, err
}

// fleetWindow returns the latest labels for the test of contributions, under one
// horizon.
func (l *Learner) fleetWindow(horizon int) *fleet.Window {
	m, c := l.cfg.Inducing, len(l.view.Latent)
	w := &fleet.Window{A: make([]float64, c*m*m), B: make([]float64, c*m), Eps: l.view.Eps()}
	w.W, w.Q, w.Y = l.bank.WindowPoints()
	for k, class := range l.view.Latent {
		w.Classes = append(w.Classes, l.view.Names[class])
		w.Known = append(w.Known, l.view.Counts[class] >= fleet.MinKnown)
		l.bank.Absorbed(horizon, k, w.A[k*m*m:(k+1)*m*m], w.B[k*m:(k+1)*m])
	}
	return w
}

// forestTests is the number of latest labels by which forests are tested.
const forestTests = 100

// fleetLabels returns the latest labels for the test of forests; nil without a forest.
func (l *Learner) fleetLabels() *fleet.Labels {
	if l.forest == nil {
		return nil
	}
	t := &fleet.Labels{Classes: l.view.Names}
	for _, n := range l.view.Counts {
		t.Known = append(t.Known, n >= fleet.MinKnown)
	}
	t.X, t.Y = l.forest.Latest(forestTests)
	return t
}

// MergeEvent returns the event that carries out a merge. It is journalled like any
// other: a replay needs no contributions.
func MergeEvent(m *fleet.Merge) Event {
	state, _ := m.AppendBinary(nil)
	return Event{Kind: Merge, State: state, forests: m.Forests}
}

// followed is the weight of the members' answer in that of a follower. The frequencies of
// no labels have the rest, so that a class which no member knows has a probability.
const followed = 0.999

// Follow returns the posterior of a member that has no labels: of the contributions
// alone, on a basis of theirs, see fleet.Receiver, for the features of a configuration. The
// posterior has no class while no contribution is taken. Errors: those of NewLearner and Merge.
func Follow(cfg Config, member string, set *fleet.Set) (*model.Posterior, *fleet.Merge, error) {
	l, err := NewLearner(cfg)
	if err != nil {
		return nil, nil, err
	}
	m, err := l.Merge(member, set)
	if err != nil {
		return nil, nil, err
	}
	if err := l.merge(m, &Outcome{}); err != nil {
		return nil, nil, err
	}
	post := l.Posterior()
	if post.Fleet != nil {
		post.Fleet.GuestWeight, post.Fleet.GuestForests = followed, 1
	}
	return post, m, nil
}
