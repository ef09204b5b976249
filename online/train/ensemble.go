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

// sharedPrior is the precision of the prior on the log lengthscales of a kernel that the
// classes share.
const sharedPrior = 1

// Ensemble trains several models on one set and combines their probabilities. There are
// two kinds of members, with a kernel for each class and with one that all share; a set
// of few samples may be too small for the first, and no log evidence shows it. Members of
// a kind are averaged. With folds, the kinds are combined by a pool, whose exponents are
// fitted to the probabilities of models that have learnt the other folds; without, all
// members are averaged. Two of three members have a kernel for each class. Samples to
// predict have no influence.
//
// Memory is the sum of the members'; K folds train 2K models on (K−1)/K of the samples
// besides them, and keep 2·N·C numbers. The daemon continues from one model, so that an
// Ensemble has no Learner.
//
// Source: Breiman (1996), "Stacked regressions".
type Ensemble struct {
	members []*Trainer
	kinds   []int // of the members: 0 as configured, 1 shared
	pool    *pool // nil: all are averaged
	names   []string
	options Stacking
	set     Samples
}

// Stacking is the size of an ensemble.
type Stacking struct {
	Members int // 1: a single model as configured. Every third one shares a kernel
	Folds   int // to combine the kinds by; 0: members are averaged
}

// Validate reports the field that is out of range.
func (s Stacking) Validate() error {
	if s.Members < 1 || s.Members > maxMembers {
		return fmt.Errorf("online: train %d members: want 1 to %d: %w", s.Members, maxMembers, online.ErrConfig)
	}
	if s.Folds < 0 || s.Folds == 1 || s.Folds > 20 {
		return fmt.Errorf("online: combine members by %d folds: want 0, or 2 to 20: %w", s.Folds, online.ErrConfig)
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

// Train runs all passes of all members, and of the models that the pool is fitted to. It calls
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
	held, y, err := e.cross(interrupted)
	if err != nil {
		return err
	}
	e.pool = new(pool)
	e.pool.fit(held, y)
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

// cross returns the probabilities, N×C, that a model of each kind which has learnt the
// other folds gives each sample, and the samples' labels.
func (e *Ensemble) cross(interrupted func() error) (held [2][]float64, y []int, err error) {
	first := e.members[0]
	rows := rand.New(rand.NewPCG(first.cfg.Seed, 0)).Perm(e.set.Len())
	for _, r := range rows {
		y = append(y, e.set.Class(r))
	}
	for fold := range e.options.Folds {
		from, to := fold*len(rows)/e.options.Folds, (fold+1)*len(rows)/e.options.Folds
		learn, judge := subset{e.set, slices.Concat(rows[:from], rows[to:])}, subset{e.set, rows[from:to]}
		for kind := range held {
			t, err := newMember(first.cfg, first.how, e.names, learn, kind, 0)
			if err == nil {
				err = finish(t, interrupted)
			}
			if err == nil {
				err = t.Predict(judge, func(_ int, p []float64) { held[kind] = append(held[kind], p...) })
			}
			if err != nil {
				return held, nil, err
			}
		}
	}
	return held, y, nil
}

// subset are rows of samples.
type subset struct {
	of   Samples
	rows []int
}

func (s subset) Len() int                 { return len(s.rows) }
func (s subset) Row(i int, dst []float64) { s.of.Row(s.rows[i], dst) }
func (s subset) Class(i int) int          { return s.of.Class(s.rows[i]) }

// Predict calls each with the combined class probabilities of every sample of set, in
// its order; probs is valid until each returns.
func (e *Ensemble) Predict(set Samples, each func(i int, probs []float64)) error {
	c := len(e.names)
	var sums [2][]float64 // of each kind
	var counts [2]float64
	for _, kind := range e.kinds {
		counts[kind]++
	}
	for kind := range sums {
		sums[kind] = make([]float64, set.Len()*c)
		if e.pool == nil {
			counts[kind] = float64(len(e.kinds))
		}
	}
	for j, t := range e.members {
		sum, weight := sums[e.kinds[j]], 1/counts[e.kinds[j]]
		err := t.Predict(set, func(i int, probs []float64) {
			for k, p := range probs {
				sum[i*c+k] += weight * p
			}
		})
		if err != nil {
			return err
		}
	}
	probs := make([]float64, c)
	for i := range set.Len() {
		p0, p1 := sums[0][i*c:(i+1)*c], sums[1][i*c:(i+1)*c]
		if e.pool != nil {
			e.pool.probsTo(probs, p0, p1)
		} else {
			for k := range probs {
				probs[k] = p0[k] + p1[k]
			}
		}
		each(i, probs)
	}
	return nil
}

// Score judges the ensemble's predictions of a set.
func (e *Ensemble) Score(set Samples) (score.Scores, error) {
	var judge score.Judge
	err := e.Predict(set, func(i int, probs []float64) { judge.Add(probs, set.Class(i)) })
	return judge.Scores(slices.Clone(e.names)), err
}
