package online

import (
	"context"
	"fmt"

	"edge/online/fleet"
)

// Contribution returns Learner.Contribution of the present learner. It waits for Run to
// compute it, or for ctx to end. ErrRecovering: the learner is one of an earlier moment.
func (lp *Loop) Contribution(ctx context.Context, member string) (c *fleet.Contribution, err error) {
	if e := lp.unlessRecovering(ctx, func() {
		defer lp.learner.bank.GiveBack()
		defer Recover(&err)
		c, err = lp.learner.Contribution(member)
	}); e != nil {
		return nil, fmt.Errorf("online: contribution of %s: %w", lp.opts.Model, e)
	}
	return c, err
}

// Merge returns Learner.Merge of the present learner. The caller journals its
// MergeEvent and hands it over like any record; labels that come in between do no harm.
// The set must not change meanwhile. It waits for Run to compute it, or for ctx to end.
// ErrRecovering: the learner is one of an earlier moment.
func (lp *Loop) Merge(ctx context.Context, member string, set *fleet.Set) (m *fleet.Merge, err error) {
	if e := lp.unlessRecovering(ctx, func() {
		defer lp.learner.bank.GiveBack()
		defer Recover(&err)
		m, err = lp.learner.Merge(member, set)
	}); e != nil {
		return nil, fmt.Errorf("online: merge for %s: %w", lp.opts.Model, e)
	}
	return m, err
}
