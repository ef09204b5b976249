package model

import "math"

// Exponents of sites and forests in the answer of a guest. Members' own blends know theirs
// by labels; a fleet without own labels has fixed ones.
const (
	guestSites   = 0.5
	guestForests = 0.4
)

// refinement is the state in which forests, of which each knows some classes K_m, refine an
// answer g over C classes:
//
//	log g_k ← α·log g_k + β·Σ_{m: k∈K_m} w_m·(log p_m(k | K_m) − log g(k | K_m))/Σ_{m: k∈K_m} w_m + const
//
// A forest so divides the probability that g gives to its classes.
type refinement struct {
	base, gain, weight []float64 // C: log g_k, the sums over m of the products and of w_m
}

// refinement begins to refine g. Its memory is that of c.
func (c *company) refinement(g []float64) (r refinement) {
	n := len(g)
	c.refined = grow(c.refined, 3*n)
	clear(c.refined)
	r = refinement{c.refined[:n], c.refined[n : 2*n], c.refined[2*n:]}
	for k, v := range g {
		r.base[k] = math.Log(max(v, floorExpert))
	}
	return r
}

// add adds the answers of members, as answersTo stores them.
func (r *refinement) add(all []MemberForest, answers []float64) {
	for i := range all {
		m := &all[i]
		answer := answers[:m.Classes]
		answers = answers[m.Classes:]
		offset := m.offset(answer, r.base)
		for at, k := range m.Index {
			if k >= 0 {
				r.gain[k] += float64(m.Weight * (answer[at] + offset - r.base[k]))
				r.weight[k] += m.Weight
			}
		}
	}
}

// to stores the refined answer, with the exponents alpha and beta, in g. The mean of the forests has a
// floor, which bounds what those that are far too sure can do.
func (r *refinement) to(g []float64, alpha, beta float64) {
	for k := range g {
		if g[k] = float64(alpha * r.base[k]); r.weight[k] > 0 {
			g[k] += float64(beta * (max(r.base[k]+r.gain[k]/r.weight[k], math.Log(floorExpert)) - r.base[k]))
		}
	}
	softmax(g)
}

// withForests lets the forests of members, if there are any, answer together with p, a
// guest, whose answer for input i is g. Of classes that all of them know
//
//	r_k ∝ g_k^guestSites · f_k^guestForests,     g_k ← g_k + share·(r_k − g_k)
//
// with the weighted geometric mean f of the forests' answers. The exponents of the other
// classes have the same sum.
//
//	share    weight of r, 0 to 1
//	answers  of the forests, as answersTo stores them; nil: they are asked
func (p *Posterior) withForests(g []float64, i int, share float64, answers []float64, ws *Workspace) {
	members, c := p.Pool.Stack.Members, len(g)
	sides := &ws.company.sides
	*sides = (*sides)[:0]
	if members == nil || len(members.All) == 0 {
		return
	}
	*sides = append(append(*sides, g...), g...)
	if answers == nil {
		ws.blends.forests = grow(ws.blends.forests, members.answers())
		answers = ws.blends.forests
		members.answersTo(answers, ws.rawInput(i, p.Dim()))
	}
	r, refined := ws.company.refinement(g), (*sides)[:c]
	r.add(members.All, answers)
	r.to(refined, guestSites+guestForests, guestForests)
	for k, v := range refined {
		g[k] += float64(share * (v - g[k]))
	}
}

// forestsAsked returns the answers of members' forests that the own blend has asked for in
// this prediction; nil if it has not asked these members.
func (p *Posterior) forestsAsked(of *MemberForests, ws *Workspace) []float64 {
	s := &p.Pool.Stack
	if !ws.answer.combined || len(ws.blends.output.Answer) == 0 || s.Forest == nil || s.Members == nil || s.Members != of {
		return nil
	}
	return ws.blends.forests[4*len(p.Names):]
}

// GuestForests returns the answers of the guest with the members' forests and without them
// that were mixed in the last prediction, each the probabilities of C classes; nil without any.
// Valid until the next call.
func (ws *Workspace) GuestForests() (with, without []float64) {
	if guest := ws.company.ws; len(ws.company.own) > 0 && guest != nil && len(guest.company.sides) > 0 {
		sides := guest.company.sides
		return sides[:len(sides)/2], sides[len(sides)/2:]
	}
	return nil, nil
}
