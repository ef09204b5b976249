package train

import (
	"slices"

	"edge/model"
	"edge/online"
	"edge/online/score"
	"edge/online/sep"
)

// scoreBatch is the number of samples that are predicted together.
const scoreBatch = 256

// Predict calls each with the C class probabilities of every sample of set, in its order; probs is
// valid until each returns. The error is ErrFactor or ErrNotFinite of model.
func (t *Trainer) Predict(set Samples, each func(i int, probs []float64)) error {
	t.current()
	if err := t.factor(1); err != nil {
		return err
	}
	w, c, eps := &t.work, t.c, t.bases[0].Eps
	var rows [scoreBatch]int
	probs, mean, variance := make([]float64, c), make([]float64, c), make([]float64, c)
	for from := 0; from < set.Len(); from += scoreBatch {
		n := min(scoreBatch, set.Len()-from)
		for i := range n {
			rows[i] = from + i
		}
		t.load(set, rows[:n])
		t.marginals(n)
		for i := range n {
			for k := range c {
				mean[k], variance[k] = w.mean[k*n+i], w.q[t.basis(k)][i]+w.variance[k*n+i]
			}
			w.sites.site.Probs(probs, mean, variance, model.Fine)
			for k, v := range probs {
				probs[k] = (1-eps)*v + eps/float64(c)
			}
			each(from+i, probs)
		}
	}
	return nil
}

// Score judges the trainer's predictions of a set. The error is that of Predict.
func (t *Trainer) Score(set Samples) (score.Scores, error) {
	var judge score.Judge
	err := t.Predict(set, func(i int, probs []float64) { judge.Add(probs, set.Class(i)) })
	return judge.Scores(slices.Clone(t.names)), err
}

// Learner returns an online learner that carries on from the trained model; see
// online.FromFit, also for the errors.
func (t *Trainer) Learner() (*online.Learner, error) {
	t.current()
	counts := make([]uint64, t.c)
	for i := range t.n {
		counts[t.set.Class(i)]++
	}
	return online.FromFit(t.cfg, online.Fit{
		Fit: sep.Fit{Params: t.params, Scale: t.scale, A: t.A, B: t.b}, Names: t.names, Counts: counts,
	})
}
