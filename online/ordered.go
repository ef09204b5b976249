package online

import "edge/model"

// Ordered returns p, an earlier Posterior of this learner, with the labels that have come
// since, and with the weights of a fleet's answers by these labels. It shares all else with p,
// so that it costs little. It is a new Posterior if the classes have changed since.
func (l *Learner) Ordered(p *model.Posterior) *model.Posterior {
	if p.Epoch != l.view.Epoch || len(p.Names) != len(l.view.Names) {
		return l.Posterior()
	}
	next := p.WithOrder(&l.view.Pool.Order)
	if p.Fleet != nil && l.view.Fleet != nil {
		next.Fleet = p.Fleet.WithShares(l.view.Fleet)
	}
	return next
}
