package model

import "math"

// mixOwn mixes the answer that the model would give without its fleet into dst, the answer
// of all horizons and experts, in the last prediction:
//
//	p_k ← p_own,k + Share·(p_k − p_own,k)
//
// Both stay in ws.
func (p *Posterior) mixOwn(dst []float64, ws *Workspace) {
	f, c := p.Fleet, &ws.company
	if c.both = c.both[:0]; f == nil || f.Own == nil {
		return
	}
	if c.alone == nil {
		c.alone = NewWorkspace()
	}
	c.both = append(append(c.both, dst...), dst...)
	f.Own.recombine(c.both[len(dst):], f.Horizons, ws, c.alone)
	for k, v := range c.both[len(dst):] {
		dst[k] = v + float64(f.Share*(dst[k]-v))
	}
}

// recombine stores in dst the answer by the weights and exponents of p. Its parts are in ws: those
// of the last prediction, by a posterior that has the horizons of p, and behind them that many of a
// fleet.
func (p *Posterior) recombine(dst []float64, fleet int, ws, to *Workspace) {
	c, horizons := len(dst), len(p.Weights)
	b, from := &to.forecast, &ws.forecast
	b.paths, b.pi, b.ratio, b.recent, b.chained = from.paths, from.pi, from.ratio, from.recent, from.chained
	all := grow(to.blends.experts, len(p.blend(to).Exponents)*c)
	to.blends.experts = all
	copy(all[:horizons*c], ws.blends.experts)
	copy(all[horizons*c:], ws.blends.experts[(horizons+fleet)*c:])
	if own := ws.blends.ownForest(c); own != nil {
		copy(all[(horizons+1)*c:], own)
	}
	clear(dst)
	for h, weight := range p.Weights {
		for k, v := range all[h*c : (h+1)*c] {
			dst[k] += float64(weight * math.Exp(v))
		}
	}
	b.logp, b.members = grow(b.logp, c), grow(b.members, len(Members)*c)
	for k, v := range dst {
		b.logp[k] = math.Log(max(v, floorProb))
	}
	p.combine(dst, b)
	p.mix(dst, to)
	p.mixNoise(dst, to)
	p.mixFrequencies(dst, to)
}

// ownForest returns the logarithms of the own forest's answer where those among the experts
// are of the members' forests as well; nil elsewhere.
func (b *blends) ownForest(c int) []float64 {
	if len(b.forests) < 2*c {
		return nil
	}
	return b.forests[c : 2*c]
}

// Own returns the answers of all horizons and experts and of the own ones alone that were
// mixed in the last prediction, by class, and the workspace of the latter; nil without a
// fleet. Valid until the next call.
func (ws *Workspace) Own() (with, own []float64, alone *Workspace) {
	both := ws.company.both
	if len(both) == 0 {
		return nil, nil, nil
	}
	return both[:len(both)/2], both[len(both)/2:], ws.company.alone
}
