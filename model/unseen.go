package model

import (
	"math"
	"slices"
)

// refining is the exponent by which forests refine the answer of a fleet.
const refining = 0.8

// Mixes reports whether the fleet answers for rare classes.
func (f *Fleet) Mixes() bool { return f.Unseen != nil && slices.Contains(f.Rare, true) }

// answerUnseen leaves the answer of Unseen for input i, over c classes, with its exponent and
// refined, in ws.company.named.
func (p *Posterior) answerUnseen(i, c int, ws *Workspace) {
	of := &ws.company
	of.guest, _ = p.Fleet.Unseen.AnswerTo(of.guest, i, 0, of.ws)
	of.unseen = of.guest
	of.named = grow(of.named, c)
	clear(of.named)
	copy(of.named, of.guest)
	sharpen(of.named, p.Fleet.Exponent)
	p.refine(of.named, ws)
}

// sharpen raises probabilities to a power, which is above 0, and scales their sum to 1.
func sharpen(p []float64, power float64) {
	if power == 0 || power == 1 {
		return
	}
	var sum float64
	for k, v := range p {
		p[k] = math.Pow(v, power)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
}

// Unseen returns the answer of model.Fleet.Unseen in the last prediction, before its exponent
// and the forests, by class; nil if it gave none. Valid until the next call.
func (ws *Workspace) Unseen() []float64 { return ws.company.unseen }

// mixRare replaces the answer in dst for the classes in Rare by that in g.
func (f *Fleet) mixRare(dst, g []float64) {
	var rare, others float64
	for k, v := range g {
		if f.rare(k) {
			rare += v
		} else {
			others += dst[k]
		}
	}
	if !(rare > 0 && others > 0) {
		return
	}
	for k := range dst {
		if f.rare(k) {
			dst[k] = g[k]
		} else {
			dst[k] *= (1 - rare) / others
		}
	}
}

// rare reports whether class k has few own labels.
func (f *Fleet) rare(k int) bool { return k < len(f.Rare) && f.Rare[k] }

// refine lets the forests of the members, and the own one, refine g, the answer of Unseen by
// class. Each forest knows its own classes K apart, wherever they are: see refinement, with
// α = 1 and β = refining. The own forest counts for the classes that are not in Rare.
func (p *Posterior) refine(g []float64, ws *Workspace) {
	members, c := p.Pool.Stack.Members, len(g)
	if members == nil || len(ws.blends.output.Answer) == 0 {
		return
	}
	r := ws.company.refinement(g)
	own, answers := ws.blends.forests[c:2*c], ws.blends.forests[4*c:]
	var of, to float64
	for k, v := range own {
		if k < len(p.Fleet.Rare) && !p.Fleet.rare(k) {
			of, to = of+math.Exp(r.base[k]), to+math.Exp(v)
		}
	}
	for k, v := range own {
		if k < len(p.Fleet.Rare) && !p.Fleet.rare(k) {
			r.gain[k] = members.Own * (v - r.base[k] + math.Log(of/to))
			r.weight[k] = members.Own
		}
	}
	r.add(members.All, answers)
	r.to(g, 1, refining)
}
