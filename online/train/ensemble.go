package train

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"edge/online"
	"edge/online/score"
)

// maxMembers bounds the memory and the time of an ensemble.
const maxMembers = 20

// Constants of the ensembles.
const (
	sharedPrior = 1   // precision of the prior on the log lengthscales of a kernel that the classes share
	pseudo      = 1   // observations that count for each kind before any
	weightSteps = 200 // of expectation maximisation
)

// Ensemble trains several models on one set and averages their probabilities. There are
// two kinds of members, with a kernel for each class and with one that all share; a set
// of few samples may be too small for the first, and no log evidence shows it. With
// folds, the kinds' weights v are those of
//
//	max_v Σ_i log Σ_j v_j p_j(y_i | x_i),   Σ_j v_j = 1
//
// where p_j comes from a model of kind j that has learnt the other folds; one more
// observation counts for each kind. Members of a kind have equal parts of its weight. Two
// of three members have a kernel for each class. Samples to predict have no influence.
//
// Memory is the sum of the members'; K folds train 2K models on (K−1)/K of the samples
// besides them. The daemon continues from one model, so that an Ensemble has no Learner.
//
// Source: Breiman (1996), "Stacked regressions"; Smyth & Wolpert (1999), "Linearly
// combining density estimators via stacking".
type Ensemble struct {
	members []*Trainer
	kinds   []int     // of the members: 0 as configured, 1 shared
	weights []float64 // of the members, sum 1
	names   []string
	options Stacking
	set     Samples
}

// Stacking is the size of an ensemble.
type Stacking struct {
	Members int // 1: a single model as configured. Every third one shares a kernel
	Folds   int // to weigh the kinds by; 0: members are equal
}

// Validate reports the field that is out of range.
func (s Stacking) Validate() error {
	if s.Members < 1 || s.Members > maxMembers {
		return fmt.Errorf("online: train %d members: want 1 to %d: %w", s.Members, maxMembers, online.ErrConfig)
	}
	if s.Folds < 0 || s.Folds == 1 || s.Folds > 20 {
		return fmt.Errorf("online: weigh members by %d folds: want 0, or 2 to 20: %w", s.Folds, online.ErrConfig)
	}
	return nil
}

// NewEnsemble returns an ensemble at its start; see New. The seeds of the members are
// Seed, Seed+1, …
func NewEnsemble(cfg online.Config, how Config, names []string, set Samples, options Stacking) (*Ensemble, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	e := &Ensemble{names: slices.Clone(names), options: options, set: set}
	for j := range options.Members {
		kind := 0
		if cfg.Kernel == online.PerClass && j%3 == 2 {
			kind = 1
		}
		t, err := newMember(cfg, how, names, set, kind, uint64(j))
		if err != nil {
			return nil, err
		}
		e.members, e.kinds = append(e.members, t), append(e.kinds, kind)
		e.weights = append(e.weights, 1/float64(options.Members))
	}
	return e, nil
}

// newMember returns a trainer of that kind.
func newMember(cfg online.Config, how Config, names []string, set Samples, kind int, number uint64) (*Trainer, error) {
	cfg.Seed += number
	if kind == 1 {
		cfg.Kernel, how.Prior = online.Shared, sharedPrior
		if how.Start == PerClassKMeans {
			how.Start = KMeans
		}
	}
	return New(cfg, how, names, set)
}

// Train runs all passes of all members, and of the models that weigh them. It calls
// interrupted before each step, and ends with the error that this returns.
func (e *Ensemble) Train(interrupted func() error) error {
	for _, t := range e.members {
		if err := finish(t, interrupted); err != nil {
			return err
		}
	}
	if e.options.Folds == 0 || !slices.Contains(e.kinds, 1) {
		return nil
	}
	held, err := e.cross(interrupted)
	if err != nil {
		return err
	}
	v := stack(held)
	for j, kind := range e.kinds {
		same := 0
		for _, k := range e.kinds {
			if k == kind {
				same++
			}
		}
		e.weights[j] = v[kind] / float64(same)
	}
	return nil
}

// finish runs the passes that are left.
func finish(t *Trainer, interrupted func() error) error {
	for !t.Done() {
		if err := interrupted(); err != nil {
			return err
		}
		if _, err := t.Step(); err != nil {
			return err
		}
	}
	return nil
}

// cross returns the probability that a model of each kind, which has learnt the other
// folds, gives the label of each sample.
func (e *Ensemble) cross(interrupted func() error) (held [2][]float64, err error) {
	first := e.members[0]
	rows := rand.New(rand.NewPCG(first.cfg.Seed, 0)).Perm(e.set.Len())
	for fold := range e.options.Folds {
		from, to := fold*len(rows)/e.options.Folds, (fold+1)*len(rows)/e.options.Folds
		learn, judge := subset{e.set, slices.Concat(rows[:from], rows[to:])}, subset{e.set, rows[from:to]}
		for kind := range held {
			t, err := newMember(first.cfg, first.how, e.names, learn, kind, 0)
			if err == nil {
				err = finish(t, interrupted)
			}
			if err == nil {
				err = t.Predict(judge, func(i int, p []float64) { held[kind] = append(held[kind], p[judge.Class(i)]) })
			}
			if err != nil {
				return held, err
			}
		}
	}
	return held, nil
}

// stack returns the weights of the most probable mixture by expectation maximisation,
// which raises the concave objective in each step.
func stack(held [2][]float64) (v [2]float64) {
	v = [2]float64{0.5, 0.5}
	n := len(held[0])
	for range weightSteps {
		next := [2]float64{pseudo, pseudo}
		for i := range n {
			if all := v[0]*held[0][i] + v[1]*held[1][i]; all > 0 {
				next[0] += v[0] * held[0][i] / all
				next[1] += v[1] * held[1][i] / all
			}
		}
		all := next[0] + next[1]
		v = [2]float64{next[0] / all, next[1] / all}
	}
	return v
}

// subset are rows of samples.
type subset struct {
	of   Samples
	rows []int
}

func (s subset) Len() int                 { return len(s.rows) }
func (s subset) Row(i int, dst []float64) { s.of.Row(s.rows[i], dst) }
func (s subset) Class(i int) int          { return s.of.Class(s.rows[i]) }

// Weights are those of the members, sum 1.
func (e *Ensemble) Weights() []float64 { return slices.Clone(e.weights) }

// Predict calls each with the averaged class probabilities of every sample of set, in
// its order; probs is valid until each returns.
func (e *Ensemble) Predict(set Samples, each func(i int, probs []float64)) error {
	c := len(e.names)
	sum := make([]float64, set.Len()*c)
	for j, t := range e.members {
		err := t.Predict(set, func(i int, probs []float64) {
			for k, p := range probs {
				sum[i*c+k] += e.weights[j] * p
			}
		})
		if err != nil {
			return err
		}
	}
	for i := range set.Len() {
		each(i, sum[i*c:(i+1)*c])
	}
	return nil
}

// Score judges the ensemble's predictions of a set.
func (e *Ensemble) Score(set Samples) (score.Scores, error) {
	var judge score.Judge
	err := e.Predict(set, func(i int, probs []float64) { judge.Add(probs, set.Class(i)) })
	return judge.Scores(slices.Clone(e.names)), err
}
