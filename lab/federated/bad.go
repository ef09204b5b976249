package federated

import (
	"math/rand/v2"
	"slices"

	"edge/model/dense"
	"edge/online/fleet"
)

// fault is the fault of a bad node; zero for a good one.
type fault struct {
	flip *rand.Rand // draws its labels; nil: they are right
	next bool       // each class is taken for the next one
	huge bool
	more float64 // its labels and precisions are multiplied by it; 0: they are not
}

// newFault returns the fault that the configuration gives the bad node.
func newFault(cfg *Config) (f fault) {
	f.next, f.huge = cfg.Bad == BadNext, cfg.Bad == BadHuge
	if cfg.Bad == BadLabels {
		f.flip = rand.New(rand.NewPCG(cfg.Seed, 77))
	}
	if cfg.Bad != "" {
		f.more = cfg.Boast
	}
	return f
}

// label returns the label by which the node learns a row.
func (f *fault) label(label string, classes []string) string {
	switch {
	case f.flip != nil:
		return classes[f.flip.IntN(len(classes))]
	case f.next:
		return classes[(slices.Index(classes, label)+1)%len(classes)]
	}
	return label
}

// falsify changes a contribution.
func (f *fault) falsify(c *fleet.Contribution) error {
	if f.huge {
		if err := exaggerate(c, c.Sequence); err != nil {
			return err
		}
	}
	if f.more > 1 {
		return boast(c, f.more)
	}
	return nil
}

// exaggerate replaces the sites by precisions of 10⁶ with random means.
func exaggerate(c *fleet.Contribution, seed uint64) error {
	m, rng := c.Params.M, rand.New(rand.NewPCG(seed, 99))
	for h := range c.Horizons {
		for k := range c.Classes {
			a, b := make([]float64, m*m), make([]float64, m)
			for i := range m {
				a[i*m+i] = 1e6
				b[i] = 1e6 * rng.NormFloat64()
			}
			if err := c.Put(h, k, a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// boast multiplies labels and precisions.
func boast(c *fleet.Contribution, times float64) error {
	c.N = uint64(float64(c.N) * times)
	for i, v := range c.Counts {
		c.Counts[i] = uint64(float64(v) * times)
	}
	m := c.Params.M
	for h := range c.Horizons {
		for k := range c.Classes {
			r, a, b := make([]float64, m*m), make([]float64, m*m), make([]float64, m)
			c.Factor(h, k, r, b)
			for i := range m {
				for j := range i + 1 {
					a[i*m+j] = times * dense.Dot(r[i*m:i*m+j+1], r[j*m:j*m+j+1])
				}
				b[i] *= times
			}
			if err := c.Put(h, k, a, b); err != nil {
				return err
			}
		}
	}
	return nil
}
