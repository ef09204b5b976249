package fleet

import (
	"math"
	"slices"

	"edge/online/wire"
)

// maxMove bounds the change of a parameter by an average.
const maxMove = 1

// Sharing is the change that a merge makes to the basis of a receiver that shares one.
type Sharing struct {
	Birth             // of the common basis that the receiver has afterwards; Number 0: none
	Start   *Common   // where it begins; nil: it has that basis, or its own becomes the common one
	Members int       // whose parameters are averaged, itself included
	Move    []float32 // added to the parameters; nil: nothing
	Settled bool      // no other first basis is expected: data kept for one may go
}

// BasisRequest is the owner's knowledge about the common basis, and its wish for a merge.
type BasisRequest struct {
	Vacant  bool   // all retained messages are known, and none of them is a common basis
	Settled bool   // see Sharing
	Rebase  Rebase // a new common basis is wanted
	Tag     uint64 // of a basis that the merge proposes
}

// Rebase is a way to make a new common basis.
type Rebase string

const (
	NoRebase Rebase = ""
	// First: the basis of the receiver as it is.
	First Rebase = "first"
	// Pooled: inducing inputs of all members, under the mean of their kernels and the
	// scaling of all labels.
	Pooled Rebase = "pooled"
)

// Reasons why a common basis is not adopted. Their texts are published.
const (
	OtherInducing Reason = "inducing" // it has another number of inducing points
	OtherClasses  Reason = "mix"      // its author sees other classes, or in other proportions
)

// share completes a merge for a receiver that shares a basis.
func (r *Receiver) share(m *Merge, s *Set) error {
	m.Sharing = &Sharing{Birth: r.Birth, Settled: s.Settled}
	switch c, ready := s.common, r.Own != nil; {
	case ready && s.Rebase != NoRebase:
		birth := Birth{Number: afterBirth(r.Birth.Number), Author: r.Member, Tag: s.Tag}
		if c != nil && r.Birth.Before(c.Birth) {
			birth.Number = afterBirth(c.Number)
		}
		if s.Rebase == Pooled {
			return r.adopt(m, s, newCommon(birth, &r.Own.Header, r.pool(s.taken(m), r.Params.M)))
		}
		r.announce(m, birth)
	case ready && (c == nil && s.Vacant || c != nil && c.Before(r.Birth)):
		birth := r.Birth
		if birth.Number == 0 {
			birth = Birth{Number: 1, Author: r.Member, Tag: s.Tag}
		}
		r.announce(m, birth)
		r.average(m, s)
	case c != nil && (r.Birth.Before(c.Birth) || !ready):
		if m.Unfit = r.unfit(c); m.Unfit != None {
			r.average(m, s)
			return nil
		}
		start := *c
		if mean, n := r.mean(m, s, c.Birth); n > 0 {
			start.Params.Theta = mean
		}
		return r.adopt(m, s, &start)
	default:
		r.average(m, s)
	}
	return nil
}

// announce makes the receiver's basis, as it is, that of a birth.
func (r *Receiver) announce(m *Merge, b Birth) {
	m.Sharing.Birth, m.Announce = b, newCommon(b, &r.Own.Header, &r.Basis)
}

// unfit returns the reason for which the receiver cannot begin with a common basis.
func (r *Receiver) unfit(c *Common) Reason {
	if r.Own == nil {
		return c.unfit(r.Features, r.Inputs, r.Inducing, nil, nil)
	}
	return c.unfit(r.Features, r.Inputs, r.Inducing, r.Own.Classes, r.Own.Counts)
}

// adopt lets the receiver begin with a basis. Its sums are then those on that basis.
func (r *Receiver) adopt(m *Merge, s *Set, start *Common) error {
	start.Basis = start.rounded()
	_, err := start.AppendBinary(nil)
	if err == nil {
		_, err = newProjector(&start.Basis, r.Units)
	}
	if err != nil {
		m.Unfit = NotFactored
		r.average(m, s)
		return nil
	}
	m.Sharing.Birth, m.Sharing.Start, m.Sharing.Members = start.Birth, start, 1
	if start.Author == r.Member {
		m.Announce = start
	}
	if r.Own == nil || m.Taken() == 0 {
		return nil
	}
	m.Basis = start.On(r.Units, r.Scale.Mu, r.Scale.Sd)
	p, err := newProjector(&m.Basis, r.Units)
	if err != nil {
		return err
	}
	sums := map[string]*sum{}
	for i := range m.Members {
		if m.Members[i].Refused == None {
			r.add(&m.Members[i], s.members[i], nil, p, nil, sums)
		}
	}
	m.A, m.B = nil, nil
	return m.set(sums)
}

// average moves the receiver's parameters to the mean of its own and those of the taken
// members that have its common basis, see mean:
//
//	θ ← θ + clip(mean(θ_i) − θ, ±1)
func (r *Receiver) average(m *Merge, s *Set) {
	if r.Own == nil || r.Birth.Number == 0 {
		return
	}
	m.Sharing.Members = 1
	mean, others := r.mean(m, s, r.Birth)
	if others == 0 {
		return
	}
	n, own := float64(others), r.Params.Theta
	if r.Own.N >= minShared {
		m.Sharing.Members += others
		for i, v := range mean {
			mean[i] = (float64(n*v) + own[i]) / (n + 1)
		}
	} else {
		m.Sharing.Members = others
	}
	m.Sharing.Move = make([]float32, len(own))
	for i, v := range mean {
		if d := v - own[i]; d-d == 0 { // the logit of a label noise of 0 is not finite
			m.Sharing.Move[i] = float32(min(max(d, -maxMove), maxMove))
		}
	}
}

// mean returns the mean of the parameters of the taken members that have the basis of a
// birth, enough labels, and classes as the receiver has, and their number.
func (r *Receiver) mean(m *Merge, s *Set, b Birth) (mean []float64, n int) {
	for i, c := range s.members {
		if m.Members[i].Refused != None || c.BasisEpoch != b.ID() || c.N < minShared || c.Params.M != r.Inducing {
			continue
		}
		if r.Own != nil && !alike(r.Own.Classes, r.Own.Counts, c.Classes, c.Counts) {
			continue
		}
		if mean == nil {
			mean = make([]float64, len(c.Params.Theta))
		}
		n++
		for j, v := range c.Params.Theta {
			mean[j] += (v - mean[j]) / float64(n)
		}
	}
	return mean, n
}

// encode returns the encoded change.
func (s *Sharing) encode(e *wire.Encoder) {
	EncodeBirth(e, &s.Birth)
	e.Int(s.Members)
	e.Bool(s.Settled)
	s.Start.EncodeStart(e) // adopt has tried it
	e.Int(len(s.Move))
	e.Floats32(s.Move)
}

// decodeSharing reads the values that encode wrote.
func decodeSharing(d *wire.Decoder) *Sharing {
	s := &Sharing{Birth: DecodeBirth(d), Members: d.Int(MaxMembers+1, "number of members"), Settled: d.Bool()}
	if d.Err() == nil && (s.Number > lastBirth || s.Number > 0 && s.Author == "") {
		d.Fail("basis %d of %.40q", s.Number, s.Author)
	}
	s.Start = DecodeStart(d)
	if n := d.Count(maxInducing*maxFeatures, 4, "number of parameters"); n > 0 {
		s.Move = make([]float32, n)
		d.Fill32(s.Move, "parameters")
	}
	if slices.ContainsFunc(s.Move, func(v float32) bool { return !(math.Abs(float64(v)) <= maxMove) }) {
		d.Fail("a parameter moves by more than %d", maxMove)
	}
	return s
}
