package fleet

import (
	"math"
	"slices"

	"edge/online/wire"
)

// UnseenPoints is the number of inducing points of the sums Unseen of a merge, to that of the
// receiver. They stand for the inputs of all members.
const UnseenPoints = 2

// unseenAmplitude is the amplitude of the kernel of these sums, to that of the mean of the
// members' kernels. Each of these is learnt from the classes of its member, and the classes of all
// are more to tell apart: under the mean alone the prior holds their sums back.
const unseenAmplitude = 4

// lacks reports whether one of others knows a class that c does not know.
func lacks(c *Contribution, others []*Contribution) bool {
	return slices.ContainsFunc(others, func(o *Contribution) bool {
		for k, name := range o.Classes {
			at := slices.Index(c.Classes, name)
			if o.Counts[k] >= MinKnown && (at < 0 || c.Counts[at] < MinKnown) {
				return true
			}
		}
		return false
	})
}

// differ reports whether one of the contributions lacks a class of another one.
func differ(all []*Contribution) bool {
	for _, c := range all {
		if lacks(c, all) {
			return true
		}
	}
	return false
}

// taken returns the contributions of the set that a merge has not refused.
func (s *Set) taken(m *Merge) (all []*Contribution) {
	for i, c := range s.members {
		if m.Members[i].Refused == None {
			all = append(all, c)
		}
	}
	return all
}

// unseen returns the sums of the receiver and the taken members. The inducing inputs of the
// receiver lie where its own classes are: its basis knows the others badly. Nil: the basis of
// all, or a sum, does not factor.
func (r *Receiver) unseen(taken []*Contribution) *Merge {
	b := r.pool(taken, UnseenPoints*r.Params.M)
	*b.Params.LogAmp() += math.Log(unseenAmplitude)
	b.Params.Clamp(maxEps)
	return r.unseenOn(b, taken)
}

// unseenOn returns these sums on a basis.
func (r *Receiver) unseenOn(b *Basis, taken []*Contribution) *Merge {
	one := *r
	one.Horizons = r.Horizons[:1]
	m := &Merge{Basis: *b, Horizons: one.Horizons, Weights: []float64{1}}
	p, err := newProjector(&m.Basis, r.Units)
	if err != nil {
		return nil
	}
	sums := one.seen(append([]*Contribution{r.Own}, taken...), p)
	if sums == nil || m.set(sums) != nil {
		return nil
	}
	return m
}

// encodeUnseen appends the sums Unseen of a merge.
func (m *Merge) encodeUnseen(e *wire.Encoder) {
	data, _ := m.AppendBinary(nil)
	e.Block(data)
}

// decodeUnseen reads the values that encodeUnseen wrote.
func decodeUnseen(d *wire.Decoder) *Merge {
	m, err := DecodeMerge(d.Block(d.Len(), "sums"))
	switch {
	case err != nil:
		d.Abort(err)
		return nil
	case len(m.Members)+len(m.Forests) > 0 || m.Sharing != nil || m.Exponents != nil || m.Unseen != nil || len(m.Horizons) != 1 || m.Params.M == 0:
		d.Fail("more than the sums of one horizon")
		return nil
	}
	return m
}
