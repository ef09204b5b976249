package model

import (
	"math"
	"slices"
)

// refining is the exponent by which forests refine the answer of a fleet.
const refining = 0.8

// mixRare replaces the answer in dst for the classes in Rare by that of the fleet at the input
// of ws.answer.row, after stack, if the fleet answers for them.
func (p *Posterior) mixRare(dst []float64, ws *Workspace) {
	f, c, own := p.Fleet, &ws.company, len(p.Latent)
	if !f.Mix || !slices.Contains(f.Rare, true) {
		return
	}
	c.named = grow(c.named, len(dst))
	clear(c.named)
	for i, v := range c.probs {
		if i < own {
			c.named[p.Latent[i]] += v
		} else if k := f.Index[i-own]; k >= 0 {
			c.named[k] += v
		}
	}
	p.refine(c.named, ws)
	var rare, others, total float64
	for k, v := range c.named {
		if total += v; k < len(f.Rare) && f.Rare[k] {
			rare += v
		} else {
			others += dst[k]
		}
	}
	if !(rare > 0 && others > 0) {
		return
	}
	rare /= total // without the classes that the model does not name
	for k := range dst {
		if k < len(f.Rare) && f.Rare[k] {
			dst[k] = c.named[k] / total
		} else {
			dst[k] *= (1 - rare) / others
		}
	}
}

// refine lets the forests of the members, and the own one, refine g, the answer of the
// fleet's horizons by class. The basis of these has its inducing points where the own
// classes are; each forest knows its own classes K apart, wherever they are: see refinement,
// with α = 1 and β = refining. The own forest counts for the classes that are not in Rare.
func (p *Posterior) refine(g []float64, ws *Workspace) {
	members, c := p.Pool.Stack.Members, len(g)
	if members == nil || len(ws.blends.output.Answer) == 0 {
		return
	}
	r := ws.company.refinement(g)
	own, answers := ws.blends.forests[c:2*c], ws.blends.forests[4*c:]
	var of, to float64
	for k, v := range own {
		if k < len(p.Fleet.Rare) && !p.Fleet.Rare[k] {
			of, to = of+math.Exp(r.base[k]), to+math.Exp(v)
		}
	}
	for k, v := range own {
		if k < len(p.Fleet.Rare) && !p.Fleet.Rare[k] {
			r.gain[k] = members.Own * (v - r.base[k] + math.Log(of/to))
			r.weight[k] = members.Own
		}
	}
	r.add(members.All, answers)
	r.to(g, 1, refining)
}
