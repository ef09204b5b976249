package membership

import (
	"fmt"

	"edge/online/fleet"
)

const (
	betterBy = 3 // standard errors by which the other scale has to be better
	running  = 5 // merges for which it has to be
)

// scales compares the two values of Config.Scale.
type scales struct {
	latest fleet.Comparison
	better int // merges running in which the other one was better
}

// compareScales notes how a merge reads the members under both scales, and publishes an
// event when the other one is better for the fifth time running.
func (m *Member) compareScales(c fleet.Comparison) {
	s := &m.merge.scales
	if c.Members == 0 {
		return
	}
	if s.latest = c; c.Other-c.Used < betterBy {
		s.better = 0
		return
	}
	if s.better++; s.better == running {
		other := otherScale(m.cfg.Scale)
		m.event("fleet_scale", fmt.Sprintf("in %d merges running the own labels agree better with the members if scale is %s, at last by %.1f standard errors and not %.1f: set fleet.scale to %s on all nodes if the devices %s",
			running, other, c.Other, c.Used, other, map[string]string{ScaleOwn: "differ by gain or offset", ScaleShared: "measure alike"}[other]))
	}
}

// otherScale returns the value of Config.Scale that is not the given one.
func otherScale(scale string) string {
	if scale == ScaleOwn {
		return ScaleShared
	}
	return ScaleOwn
}

// trusts returns the mean trust of the compared members by scale, nil before the first
// comparison.
func (m *Member) trusts() map[string]float64 {
	c := &m.merge.scales.latest
	if c.Members == 0 {
		return nil
	}
	return map[string]float64{m.cfg.Scale: c.Used, otherScale(m.cfg.Scale): c.Other}
}
