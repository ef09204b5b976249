package model

import (
	"slices"

	"edge/model/dense"
)

// Fleet is the part of a posterior that other devices have taught. The last Horizons of
// Posterior.Bank are those of the fleet: own sites and those of the members.
//
// What the members know about classes that have few own labels cannot earn weight by own
// labels. It is therefore reported beside the answer, and the answer of Unseen is that for the
// classes in Rare: with u its probability of these,
//
//	p_k ← p_unseen,k for k in Rare,     p_k ← (1 − u)·p_k/Σ_{l not in Rare} p_l for the others
//
// where p_unseen is that answer to the power of Exponent, and the members' forests have refined
// it, if there are any.
type Fleet struct {
	Members  int        // whose sites are in it
	Horizons int        // F; 0 while Guest answers
	Classes  []string   // X classes without a latent function in Posterior.Bank, which members know
	Index    []int      // of them in Posterior.Names; −1: not there
	Foreign  []Gaussian // F, the latent functions of these classes
	Rare     []bool     // of Posterior.Names: the class has few own labels

	// Unseen is the posterior of all members, this one included, in a basis of all; Guest while
	// that answers. Nil: the fleet does not answer for the classes in Rare.
	Unseen   *Posterior
	Exponent float64 // of its answer after the warm-up; 0: it stays as it is

	// Own has the weights and exponents of the answer without the fleet alone: Weights, and
	// those in Pool. All else is that of the posterior. Share is the weight of
	// the answer with the fleet against that one. Nil while Guest answers.
	Own   *Posterior
	Share float64

	// Guest is the posterior of the members in a basis of theirs, during the warm-up; nil
	// afterwards. The forests in its stack answer together with it. GuestWeight is its
	// weight in the answer, and GuestForests that of its answer with the forests, against
	// its answer without them.
	Guest                     *Posterior
	GuestWeight, GuestForests float64
}

// Report is the answer of a fleet by itself.
type Report struct {
	Class      string  // the most probable one, of the model's or of the members'
	Confidence float64 // its probability
	Unseen     float64 // probability of classes with few own labels, or none
	Rare       string  // the most probable of these
	Rarely     float64 // its probability
	Members    int     // whose sites are in it
}

// company holds the fleet's part of the last prediction.
type company struct {
	ws             *Workspace // of the guest, or of Unseen
	probs          []float64  // C+X by latent function, or by class of the guest's answer
	one            []float64  // C+X of one horizon
	mean, variance []float64  // C+X
	named          []float64  // by class of the model
	refined        []float64  // 3×C  see refinement
	sides          []float64  // 2×C  the answers with forests and without, of a guest; empty if it has none
	unseen         []float64  // answer of Unseen; nil: it gave none
	own, guest     []float64  // answers that were mixed, by class; own is empty without a guest
	known          bool       // the fleet has answered
	alone          *Workspace // of the answer without the fleet
	both           []float64  // 2×C  the answers with the fleet and without; empty: there is one
}

// clone returns a copy that shares means and factors.
func (f *Fleet) clone() *Fleet {
	if f == nil {
		return nil
	}
	c := *f
	c.Classes, c.Index, c.Rare = slices.Clone(f.Classes), slices.Clone(f.Index), slices.Clone(f.Rare)
	c.Foreign = slices.Clone(f.Foreign)
	if f.Guest != nil {
		c.Guest = f.Guest.Snapshot()
	}
	if f.Unseen == f.Guest {
		c.Unseen = c.Guest
	} else if f.Unseen != nil {
		c.Unseen = f.Unseen.Snapshot()
	}
	if f.Own != nil {
		c.Own = f.Own.Snapshot()
	}
	return &c
}

// FleetWeight returns the weight of the fleet in the answers, 0 to 1: that of the guest, or
// that of the fleet's horizons in the answer with them, times the weight of this answer.
func (p *Posterior) FleetWeight() (sum float64) {
	f := p.Fleet
	switch {
	case f == nil:
		return 0
	case f.Guest != nil:
		return f.GuestWeight
	}
	for _, w := range p.Weights[len(p.Weights)-f.Horizons:] {
		sum += w
	}
	if f.Own != nil {
		sum *= f.Share
	}
	return sum
}

// WithShares returns f with the weights of the answers of another one. It shares all else
// with f.
func (f *Fleet) WithShares(of *Fleet) *Fleet {
	c := *f
	c.Share, c.Exponent, c.GuestWeight, c.GuestForests = of.Share, of.Exponent, of.GuestWeight, of.GuestForests
	return &c
}

// loadFleet prepares n inputs for the answers of the guest, or of Unseen.
func (p *Posterior) loadFleet(x []float64, n int, ws *Workspace) {
	f := p.Fleet
	if f == nil {
		return
	}
	of := f.Guest
	if of == nil && f.Mixes() {
		of = f.Unseen
	}
	if of == nil {
		return
	}
	if ws.company.ws == nil {
		ws.company.ws = NewWorkspace()
	}
	of.load(x, n, ws.company.ws)
}

// accompany mixes the fleet's answer for input i into dst, the own answer.
func (p *Posterior) accompany(dst []float64, i int, ws *Workspace) {
	f, c := p.Fleet, &ws.company
	c.known, c.own, c.unseen = false, c.own[:0], nil
	switch {
	case f == nil:
	case f.Guest != nil:
		var novelty float64
		c.guest, novelty = f.Guest.AnswerTo(c.guest, i, 0, c.ws)
		f.Guest.withForests(c.guest, i, f.GuestForests, p.forestsAsked(f.Guest.Pool.Stack.Members, ws), c.ws)
		c.own = append(c.own, dst...)
		c.known = true
		c.named = grow(c.named, len(dst))
		clear(c.named)
		copy(c.named, c.guest)
		for k := range dst {
			dst[k] += f.GuestWeight * (c.named[k] - dst[k])
		}
		if f.Mixes() {
			f.mixRare(dst, c.named)
		}
		ws.answer.novelty += f.GuestWeight * (novelty - ws.answer.novelty)
	case f.Horizons > 0 && p.Built():
		p.fleetProbs(ws)
		c.known = true
		if f.Mixes() {
			p.answerUnseen(i, len(dst), ws)
			f.mixRare(dst, c.named)
		}
	}
}

// fleetProbs leaves the answer of the fleet's horizons over the latent functions of the
// model and the foreign ones, at the input of ws.answer.row.
func (p *Posterior) fleetProbs(ws *Workspace) {
	f, c := p.Fleet, &ws.company
	own, foreign, first := len(p.Latent), len(f.Classes), len(p.Bank)-f.Horizons
	all := own + foreign
	c.probs, c.one, c.mean, c.variance = grow(c.probs, all), grow(c.one, all), grow(c.mean, all), grow(c.variance, all)
	clear(c.probs)
	var total float64
	for _, w := range p.Weights[first:] {
		total += w
	}
	for h := range f.Horizons {
		weight := 1 / float64(f.Horizons)
		if total > 0 {
			weight = p.Weights[first+h] / total
		}
		probs := ws.perHorizon[(first+h)*own : (first+h+1)*own]
		if foreign > 0 {
			probs = c.one
			p.withForeign(h, probs, ws)
		}
		for k, v := range probs {
			c.probs[k] += weight * v
		}
	}
}

// withForeign stores the probabilities under fleet horizon h over all latent functions.
func (p *Posterior) withForeign(h int, probs []float64, ws *Workspace) {
	f, c, b := p.Fleet, &ws.company, p.Bases[0]
	own, m := len(p.Latent), b.M
	mean, variance := ws.moments(len(p.Bank)-f.Horizons+h, p)
	copy(c.mean, mean)
	copy(c.variance, variance)
	w, q, g := ws.w[ws.answer.row*m:(ws.answer.row+1)*m], ws.q[ws.answer.row], &f.Foreign[h]
	for x := range f.Classes {
		u := ws.u[:m]
		dense.MulTriTrans(1, m, w, m, g.U[x*m*m:], m, u, m)
		c.mean[own+x] = dense.Dot(g.Mean[x*m:(x+1)*m], w)
		c.variance[own+x] = q + dense.Dot(u, u)
	}
	ws.grid.Probs(probs, c.mean, c.variance, Fine)
	for k, v := range probs {
		probs[k] = (1-b.Eps)*v + b.Eps/float64(len(probs))
	}
}

// Report returns the answer of the fleet alone in the last prediction; false if there is
// no fleet.
func (p *Posterior) Report(ws *Workspace) (r Report, ok bool) {
	f, c := p.Fleet, &ws.company
	if f == nil || !c.known {
		return Report{}, false
	}
	r.Members = f.Members
	probs, own := c.probs, len(p.Latent)
	if f.Guest != nil {
		probs, own = c.named, 0
	}
	for i, v := range probs {
		k := i // class of the model; −1 for one of others
		switch {
		case f.Guest != nil:
		case i < own:
			k = p.Latent[i]
		default:
			k = f.Index[i-own]
		}
		name, rare := "", true
		if k >= 0 {
			name, rare = p.Names[k], k < len(f.Rare) && f.Rare[k]
		} else {
			name = f.Classes[i-own]
		}
		if v > r.Confidence {
			r.Class, r.Confidence = name, v
		}
		if rare {
			if r.Unseen += v; v > r.Rarely {
				r.Rare, r.Rarely = name, v
			}
		}
	}
	return r, r.Class != ""
}

// Guest returns the answers of the guest and of the model alone that were mixed in the
// last prediction, by class; nil without a guest. Valid until the next call.
func (ws *Workspace) Guest() (guest, own []float64) {
	if len(ws.company.own) == 0 {
		return nil, nil
	}
	return ws.company.named, ws.company.own
}
