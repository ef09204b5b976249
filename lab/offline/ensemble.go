package offline

import (
	"context"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/online"
	"edge/online/train"
)

// sharedPrior is the precision of the prior on the log lengthscales of a kernel that the
// classes share.
const sharedPrior = 1

// folds of the rows learnt, by which the kinds of members are combined.
const folds = 3

// ensemble combines the probabilities of three models. Two are as the problem has them, and
// differ in the seed. Where these have a kernel for each class, all classes share that of the
// third: a set of few samples may be too small for more, and no log evidence shows it. The two
// kinds are then combined by a pool, whose exponents are fitted to the probabilities of models
// that have learnt the other folds. Without a second kind, the three are averaged.
//
// Source: Breiman (1996), "Stacked regressions".
type ensemble struct {
	kinds [2][]lab.Classifier // as the problem has them; with a shared kernel
	pool  *pool               // nil: one kind
}

// TrainEnsemble learns three models with the default settings and combines them by three
// folds of the rows learnt.
func TrainEnsemble(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	cfg, err := config(p)
	if err != nil {
		return nil, err
	}
	how := Default()
	how.Passes = p.Updates
	var e ensemble
	for seed := range uint64(3) {
		kind := 0
		if cfg.Kernel == online.PerClass && seed == 2 {
			kind = 1
		}
		c, err := member(ctx, cfg, how, p.Data, kind, seed)
		if err != nil {
			return nil, err
		}
		e.kinds[kind] = append(e.kinds[kind], c)
	}
	if e.kinds[1] == nil {
		return &e, nil
	}
	held, y, err := cross(ctx, cfg, how, p.Data)
	if err != nil {
		return nil, err
	}
	e.pool = new(pool)
	e.pool.fit(held, y)
	return &e, nil
}

// member learns a model of that kind, with a seed that is that much above the configured one.
func member(ctx context.Context, cfg online.Config, how train.Config, d *lab.Data, kind int, seed uint64) (lab.Classifier, error) {
	cfg.Seed += seed
	if kind == 1 {
		cfg.Kernel, how.Prior = online.Shared, sharedPrior
	}
	return learn(ctx, cfg, how, d, nil)
}

// cross returns the probabilities, N×C, that a model of each kind which has learnt the
// other folds gives each row, and the rows' labels.
func cross(ctx context.Context, cfg online.Config, how train.Config, d *lab.Data) (held [2][]float64, y []int, err error) {
	rows := rand.New(rand.NewPCG(cfg.Seed, 0)).Perm(d.N())
	for fold := range folds {
		from, to := fold*len(rows)/folds, (fold+1)*len(rows)/folds
		rest, judged := d.Rows(slices.Concat(rows[:from], rows[to:])), d.Rows(rows[from:to])
		y = append(y, judged.Y...)
		for kind := range held {
			c, err := member(ctx, cfg, how, rest, kind, 0)
			if err != nil {
				return held, nil, err
			}
			probs, err := c.Predict(judged.X)
			if err != nil {
				return held, nil, err
			}
			held[kind] = append(held[kind], probs.RawMatrix().Data...)
		}
	}
	return held, y, nil
}

// Predict returns class probabilities, n×C.
func (e *ensemble) Predict(x []float64) (*mat.Dense, error) {
	own, err := mean(e.kinds[0], x)
	if err != nil || e.pool == nil {
		return own, err
	}
	shared, err := mean(e.kinds[1], x)
	if err != nil {
		return nil, err
	}
	for i := range own.RawMatrix().Rows {
		p := own.RawRowView(i)
		e.pool.probsTo(p, p, shared.RawRowView(i))
	}
	return own, nil
}

// mean returns the mean of the models' class probabilities, n×C.
func mean(of []lab.Classifier, x []float64) (*mat.Dense, error) {
	var sum *mat.Dense
	for _, c := range of {
		probs, err := c.Predict(x)
		if err != nil {
			return nil, err
		}
		probs.Scale(1/float64(len(of)), probs)
		if sum == nil {
			sum = probs
			continue
		}
		sum.Add(sum, probs)
	}
	return sum, nil
}
