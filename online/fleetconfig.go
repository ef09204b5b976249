package online

import (
	"cmp"
	"slices"

	"edge/online/fleet"
)

// Unseen is the use of a fleet's answer for classes that have few own labels.
type Unseen string

const (
	// ReportUnseen answers by the classes with own labels, and reports the fleet's
	// answer beside it.
	ReportUnseen Unseen = "report"
	// MixUnseen mixes the fleet's answer into the prediction, by its probability of
	// such classes.
	MixUnseen Unseen = "mix"
)

// Fleet configures the exchange of a learner with those of other devices.
type Fleet struct {
	// Horizons are those of the model that are exchanged; none: all of them.
	Horizons []Horizon `yaml:"-"`
	// Precision is that of the numbers of a contribution; 0: bfloat16.
	Precision fleet.Precision `yaml:"-"`
	// Trust is the least trust of a contribution, in standard errors; −Inf turns the
	// test off. Default −2.
	Trust float64 `yaml:"-"`
	// Units are those that the features of all members have in common.
	Units fleet.Units `yaml:"-"`
	// Shared: the members begin with one basis, and average their parameters.
	Shared bool `yaml:"-"`
	// Unseen is report or mix. Default report.
	Unseen Unseen `yaml:"-"`
}

// precision returns the precision of contributions.
func (f *Fleet) precision() fleet.Precision { return cmp.Or(f.Precision, fleet.Bfloat16) }

// fleetHorizons are the horizons that are exchanged, by their place, the longest first.
func (c *Config) fleetHorizons() (own []int) {
	for h, length := range c.Horizons {
		if len(c.Fleet.Horizons) == 0 || slices.Contains(c.Fleet.Horizons, length) {
			own = append(own, h)
		}
	}
	slices.SortStableFunc(own, func(i, j int) int { return -cmp.Compare(c.Horizons[i], c.Horizons[j]) })
	return own
}
