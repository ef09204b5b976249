package online

import (
	"fmt"
	"math"
	"slices"

	"edge/model"
	"edge/online/fleet"
	"edge/online/sep"
)

// guest is a posterior in a basis of the members. It is a function of its merge, the classes, the
// scaling and the warm-up buffer, so that a state need only hold the merge: after a change of
// those that it began with it begins again.
type guest struct {
	merge   *fleet.Merge
	bank    *sep.Bank // nil: it learns nothing
	view    *model.Posterior
	classes []int       // of the sums, when it began
	scale   model.Scale // when it began
	learned int         // observations of the warm-up buffer that it has learnt
	cuts    uint64      // of the buffer when it began
}

// guestStep is the number of observations that a guest learns at once.
const guestStep = 16

// newGuest returns the posterior of a merge.
func (l *Learner) newGuest(m *fleet.Merge) (*guest, error) {
	cfg := l.cfg.bank()
	cfg.Inducing, cfg.Horizons, cfg.LearningRate, cfg.Track, cfg.Batch = m.Params.M, m.Horizons, 0, 0, guestStep
	view := &model.Posterior{Weights: slices.Clone(m.Weights)}
	var total float64
	for _, v := range view.Weights {
		total += v
	}
	for h := range view.Weights {
		if view.Weights[h] /= total; !(total > 0) {
			view.Weights[h] = 1 / float64(len(m.Horizons))
		}
	}
	places := l.classesOf(m)
	var classes, sums []int // of the model, and their sums
	for i, k := range places {
		if k >= 0 && !slices.Contains(classes, k) {
			classes, sums = append(classes, k), append(sums, i)
		}
	}
	if len(classes) < 2 {
		return nil, fmt.Errorf("online: a fleet of %d known classes: %w", len(classes), ErrShape)
	}
	bank := sep.New(cfg, view)
	view.Names = l.view.Names
	scale := l.guestScale(m)
	if err := bank.Load(&sep.Fit{Params: m.Params, Scale: scale}, classes); err != nil {
		return nil, err
	}
	a, sum := make([]float64, m.Params.M*m.Params.M), make([]float64, m.Params.M)
	for h := range m.Horizons {
		for k, at := range sums {
			clear(a)
			clear(sum)
			m.Sum(h, at, a, sum)
			bank.SetAbsorbed(h, k, a, sum)
		}
	}
	if err := bank.Refresh(); err != nil {
		return nil, err
	}
	return &guest{merge: m, bank: bank, view: view, classes: places, scale: scale, cuts: l.warmup.cuts}, nil
}

// posterior returns the posterior of a guest; nil if there is none.
func (g *guest) posterior() *model.Posterior {
	if g == nil {
		return nil
	}
	return g.view
}

// guestScale returns the scaling of a guest: that of its merge, or where devices have
// units of their own that of the latest build, if there is one.
func (l *Learner) guestScale(m *fleet.Merge) model.Scale {
	if own := &l.view.Scale; l.cfg.Fleet.Units == fleet.Standard && l.view.Built() {
		return fleet.OnDevice(&m.Scale, own.Mu, own.Sd)
	}
	return m.Scale
}

func sameUnits(a, b model.Scale) bool { return slices.Equal(a.Mu, b.Mu) && slices.Equal(a.Sd, b.Sd) }

// classesOf returns the places of a merge's classes among those of the model; −1 for one
// that is not known.
func (l *Learner) classesOf(m *fleet.Merge) []int {
	places := make([]int, len(m.Classes))
	for i, name := range m.Classes {
		places[i] = -1
		if k, known := l.classes.index[name]; known && k < len(l.view.Names) {
			places[i] = k
		}
	}
	return places
}

// outdated reports whether a guest began with other classes, or with another scaling.
func (l *Learner) outdated(g *guest) bool {
	return !slices.Equal(g.classes, l.classesOf(g.merge)) || !sameUnits(g.scale, l.guestScale(g.merge))
}

// invite makes the guest of a merge and lets it learn the warm-up buffer.
func (l *Learner) invite(m *fleet.Merge) error {
	g, err := l.newGuest(m)
	if err != nil {
		return err
	}
	l.fleet.guest = g
	l.teachGuest()
	return nil
}

// teachGuest lets the guest learn the new samples of the warm-up buffer.
func (l *Learner) teachGuest() {
	g, w := l.fleet.guest, &l.warmup
	if g == nil {
		return
	}
	if g.cuts != w.cuts || l.outdated(g) {
		if l.invite(g.merge) != nil { // it was possible before
			l.leave()
		}
		return
	}
	g.view.Names = l.view.Names
	for ; w.len()-g.learned >= guestStep; g.learned += guestStep {
		from, to := g.learned, g.learned+guestStep
		_ = l.learnAsGuest(w.x[from*w.d:to*w.d], w.y[from:to], w.w[from:to]) // an error has undone the step
	}
}

// learnAsGuest lets the guest learn a few samples. An error leaves it as it was.
func (l *Learner) learnAsGuest(x []float64, classes []int, weights []float64) error {
	g := l.fleet.guest
	latents := make([]int, len(l.classes.names))
	for k := range latents {
		latents[k] = slices.Index(g.view.Latent, k)
	}
	for _, k := range classes {
		if latents[k] < 0 {
			latents[k] = g.bank.Grow(k)
		}
	}
	g.bank.Save()
	if err := guarded(func() error {
		return g.bank.Learn(sep.Minibatch{X: x, Classes: classes, Weights: weights, Latents: latents, Live: true, Reach: math.Inf(1)})
	}); err != nil {
		return g.bank.Undo(err)
	}
	return nil
}

// answerUnseen lets the sums Unseen of a merge answer for classes with few own labels. Nil, or
// an error: the fleet does not answer for them.
func (l *Learner) answerUnseen(m *fleet.Merge) error {
	l.fleet.unseen = nil
	if m == nil {
		return nil
	}
	g, err := l.newGuest(m)
	if err != nil {
		return fmt.Errorf("sums for unseen classes: %w", err)
	}
	g.bank = nil // it learns nothing
	l.fleet.unseen = g
	return nil
}

// followUnseen brings the answer for classes with few own labels up to date with the classes.
func (l *Learner) followUnseen() {
	u := l.fleet.unseen
	if u == nil {
		return
	}
	if l.outdated(u) {
		_ = l.answerUnseen(u.merge) // it was possible before
	}
	if u := l.fleet.unseen; u != nil {
		u.view.Names = l.view.Names
	}
}
