package online

import "slices"

// Prediction is the answer for one sample.
type Prediction struct {
	Class   string    // the most probable class; "" while no class is known
	Classes []string  // every class
	Probs   []float64 // the probability of each class, sum 1
	Novelty float64   // fraction of the prior variance that is left, 0 to 1
	Abstain bool      // the rule of abstention applies
	Set     []string  // prediction set, the most probable class first; nil if sets are off
}

// Predict returns the prediction for x, D raw features of which some may be NaN,
// under the state without the minibatch that is filling. It does not use the order
// of the labels; PredictNextTo of Posterior does. It allocates: a program that
// predicts much, or from several goroutines, uses a Posterior and a Workspace of
// package model.
//
// On ErrDimension or ErrNotFinite of model the prediction is empty.
func (l *Learner) Predict(x []float64) (Prediction, error) {
	probs, novelty, err := l.view.PredictTo(nil, x, &l.ws)
	if err != nil {
		return Prediction{}, err
	}
	u := l.Uncertainty()
	p := Prediction{Classes: slices.Clone(l.view.Names), Probs: probs, Novelty: novelty, Abstain: u.Meta(probs, novelty).Abstained}
	if len(probs) > 0 {
		p.Class = p.Classes[slices.Index(probs, slices.Max(probs))]
	}
	if u.Coverage > 0 {
		p.Set = []string{}
		for _, k := range u.AppendSet(nil, probs, x) {
			p.Set = append(p.Set, p.Classes[k])
		}
	}
	return p, nil
}
