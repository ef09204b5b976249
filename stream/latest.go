package stream

import "sync"

// latestPrediction is a prediction that any goroutine may set and take.
type latestPrediction struct {
	mu    sync.Mutex
	p     Prediction
	there bool
}

// set stores a copy of a prediction. first reports that the one before was taken.
func (n *latestPrediction) set(p *Prediction) (first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.CopyTo(&n.p)
	first, n.there = !n.there, true
	return first
}

// take returns the prediction that was set since the last call, as JSON; nil for none.
func (n *latestPrediction) take() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.there {
		return nil
	}
	n.there = false
	return n.p.appendJSON(nil)
}
