package online

import (
	"context"
	"fmt"

	"edge/online/fleet"
)

// FleetStatus is the part of a model in a fleet.
type FleetStatus struct {
	Members int     // whose sites are in the sums; 0: there is no fleet
	Guest   bool    // the members answer in a basis of theirs, until the warm-up is over
	Weight  float64 // of the guest in the answer, or of the fleet's horizons in their mixture
	Dropped uint64  // sums that did not factor, since the program started
}

// FleetStatus returns the learner's part in a fleet.
func (l *Learner) FleetStatus() FleetStatus {
	s := FleetStatus{Members: l.fleet.members, Guest: l.fleet.guest != nil, Dropped: uint64(l.bank.Counts.JoinedDropped)}
	if s.Guest {
		s.Weight = l.mix.GuestWeight()
	} else {
		s.Weight = l.mix.FleetWeight()
	}
	return s
}

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
