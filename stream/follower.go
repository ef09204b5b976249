package stream

import (
	"fmt"
	"sync/atomic"
	"time"

	"edge/model"
	"edge/online/fleet"
)

// follower is a model that answers by the contributions of a fleet's members. It learns
// nothing and needs no journal.
type follower struct {
	Model
	make   Follow
	answer atomic.Pointer[model.Posterior] // nil before the first contribution
}

// Snapshot returns the posterior of the latest set.
func (f *follower) Snapshot() *model.Posterior {
	if post := f.answer.Load(); post != nil {
		return post
	}
	return f.Model.Snapshot()
}

// follow answers by a set from now on.
func (f *follower) follow(member string, set *fleet.Set) (*fleet.Merge, error) {
	post, sum, err := f.make(member, set)
	if err == nil {
		f.answer.Store(post)
	}
	return sum, err
}

// foreignAbove is the probability of classes with few own labels, by the fleet alone,
// above which an event is published.
const foreignAbove = 0.5

// reportFleet returns the fleet's own answer in the last prediction, and publishes an
// event if that is probably one of the classes which this model hardly knows.
func (w *worker) reportFleet(m *modelState, post *model.Posterior, ws *model.Workspace) model.Report {
	r, ok := post.Report(ws)
	if !ok {
		return model.Report{}
	}
	if r.Unseen > foreignAbove && post.Fleet.Guest == nil {
		limit := m.foreign[r.Rare]
		if limit == nil {
			limit = &limiter{interval: logEvery, burst: 1}
			putBounded(&m.foreign, r.Rare, limit)
		}
		if limit.allow(time.Now()) {
			w.report.event(m.Name, "foreign_class", fmt.Sprintf("%s: by the fleet alone its probability is %.2f; this model has few labels of it, or none", r.Rare, r.Rarely))
		}
	}
	return r
}
