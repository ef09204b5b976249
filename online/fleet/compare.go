package fleet

import (
	"cmp"
	"slices"

	"edge/model/dense"
)

// compared is the number of members for which a merge tries the other units.
const compared = 4

// Comparison is the mean trust of some members if their features are read in the units
// of the receiver, and in the other ones. It is no part of an encoded merge.
type Comparison struct {
	Members     int // 0: it was not tried
	Used, Other float64
}

// compare reads the tested members with the most labels in the other units. A member
// that cannot be projected then has no part.
func (r *Receiver) compare(m *Merge, s *Set, p *projector, t *trial) (c Comparison) {
	var tested []int
	for i := range m.Members {
		if m.Members[i].Tested && !sameScale(&s.members[i].Scale, &p.own.Scale) {
			tested = append(tested, i)
		}
	}
	slices.SortStableFunc(tested, func(i, j int) int { return -cmp.Compare(m.Members[i].N, m.Members[j].N) })
	other := *p
	other.units = p.units.other()
	size := p.m
	a, b := make([]float64, size*size), make([]float64, size)
	for _, i := range tested[:min(compared, len(tested))] {
		from := s.members[i]
		if other.from(&from.Basis) != nil {
			continue
		}
		at := slices.Index(from.Horizons, r.Horizons[r.shared(from)])
		sound := true
		trust, err := t.trust(func(class string, toA, toB []float64) {
			if k := slices.Index(from.Classes, class); k >= 0 && other.project(from, at, k, a, b) {
				dense.Axpy(1, a, toA)
				dense.Axpy(1, b, toB)
			} else if k >= 0 {
				sound = false
			}
		})
		if err != nil || !sound {
			continue
		}
		c.Members++
		c.Used += m.Members[i].Trust
		c.Other += trust
	}
	if n := float64(c.Members); n > 0 {
		c.Used /= n
		c.Other /= n
	}
	return c
}
