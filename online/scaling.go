package online

import (
	"math"
	"slices"

	"edge/model"
)

const (
	// rankMargin is the evidence in nats by which the scaling with ranks has to be
	// better than the one without. Streams that gain by ranks show 7 nats and more.
	rankMargin = 5
	// minEvidence bounds a probability before its logarithm.
	minEvidence = 1e-12
)

// preferRanks reports whether the model that is built from the warm-up buffer scales
// its features with ranks (see model.Scale). The last build, whose scaling stays,
// tries both scalings and takes the one under which the buffer had been predicted
// better, observation by observation. Earlier builds go without, and so does a
// scaling that follows the stream: its ranks would stand still.
//
// The bank then holds the model of the last trial, the one without ranks. If learnt is
// true, that is the model to build, and has learnt the buffer in the steps of a build;
// otherwise beginModel replaces it. A scaling under which the model cannot be
// built or learnt is not taken.
func (l *Learner) preferRanks() (prefer, learnt bool) {
	if l.warmup.len() < l.cfg.warmup() || l.cfg.Track > 0 {
		return false, false
	}
	counts := l.bank.Counts // without the steps of a trial
	ranked, failed := l.evidence(true)
	l.bank.Counts = counts
	plain, err := l.evidence(false)
	prefer = err == nil && failed == nil && ranked > plain+rankMargin
	if err != nil || prefer {
		l.bank.Counts = counts
		return prefer, false
	}
	return false, true
}

// evidence returns the prequential log evidence of the warm-up buffer, in nats, under
// one of the scalings: a new model predicts the observations of each step by the mixture
// of its horizons, and then learns them. The order of the labels and the blends have no part.
//
//	Σ_i weight_i · log Σ_h π_h·p_h(y_i | x_i)
func (l *Learner) evidence(ranked bool) (sum float64, err error) {
	defer Recover(&err)
	if err := l.beginModel(nil, ranked); err != nil {
		return 0, err
	}
	w, size := &l.warmup, l.buildStep()
	var ws model.Workspace
	for i := 0; i < w.len(); i += size {
		if l.progress != nil {
			l.progress()
		}
		end := min(i+size, w.len())
		mixture := *l.view
		mixture.Pool, mixture.Fleet = model.Pool{}, nil
		if sum, err = l.addEvidence(sum, &mixture, w, i, end, &ws); err != nil {
			return 0, err
		}
		if err := l.learn(w.x[i*w.d:end*w.d], w.y[i:end], w.w[i:end], false); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// addEvidence adds the evidence of w's samples from first to end under a mixture of horizons, in
// nats.
func (l *Learner) addEvidence(sum float64, mixture *model.Posterior, w *warmup, first, end int, ws *model.Workspace) (float64, error) {
	if err := mixture.Load(withNaN(slices.Clone(w.x[first*w.d:end*w.d])), end-first, ws); err != nil {
		return 0, err
	}
	for i := first; i < end; i++ {
		l.probs, _ = mixture.AnswerTo(l.probs, i-first, 0, ws)
		sum += w.w[i] * math.Log(max(l.probs[w.y[i]], minEvidence))
	}
	return sum, nil
}
