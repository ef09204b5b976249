package model

// answer holds the facts of the last prediction that are beside its parts.
type answer struct {
	row      int // the input
	novelty  float64
	clipped  int  // features beyond the reach of the scaling
	combined bool // from the parts in forecast and blends
}

// AppendParts appends the parts of the last prediction, so that Recall can
// combine it again when the label is known: then the answers of horizons, members and
// experts are judged as they were when the prediction was made. Nothing is appended
// if class frequencies answered.
//
//	novelty, log of the mixture of the horizons (C), π (C),
//	log e_jk of the experts (E×C), distributions by the order (Paths×C, if it was known),
//	log p_k of the own forest (C, if members' forests answered together with it)
func (ws *Workspace) AppendParts(dst []float32) []float32 {
	if !ws.answer.combined {
		return dst
	}
	b := &ws.forecast
	paths := b.paths
	if !b.chained {
		paths = nil
	}
	for _, row := range [...][]float64{{ws.answer.novelty}, b.logp, b.pi, ws.blends.experts, paths, ws.blends.ownForest(len(b.pi))} {
		for _, v := range row {
			dst = append(dst, float32(v))
		}
	}
	return dst
}

// Recall brings ws into the state after the prediction of which parts holds the
// parts, by the present weights and exponents of p. It reports false, and ws is
// unchanged, if parts is not of a prediction of the present number of classes, by the
// present experts and order of labels.
func (p *Posterior) Recall(parts []float32, ws *Workspace) bool {
	c, s := len(p.Names), &p.Pool.Stack
	plain, ordered := 1+(2+len(s.Plain.Exponents))*c, 1+(2+Paths+len(s.Ordered.Exponents))*c
	if !p.Built() || c == 0 {
		return false
	}
	own := 0 // numbers of the own forest
	if s.Members != nil && (len(parts) == plain+c || len(parts) == ordered+c) {
		own = c
	}
	chained := len(parts)-own == ordered
	if chained && p.Pool.Order.Steps == nil || !chained && len(parts)-own != plain {
		return false
	}
	for _, v := range parts {
		if v-v != 0 {
			return false
		}
	}
	b := &ws.forecast
	b.reserve(c)
	b.chained = chained
	experts := len(parts) - own - 1 - 2*c
	if b.chained {
		experts -= Paths * c
		b.paths = grow(b.paths, Paths*c)
	}
	ws.blends.experts = grow(ws.blends.experts, experts)
	ws.answer.novelty, parts = float64(parts[0]), parts[1:]
	paths := b.paths
	if !b.chained {
		paths = nil
	}
	ws.blends.forests = grow(ws.blends.forests, 2*own)
	for _, row := range [...][]float64{b.logp, b.pi, ws.blends.experts, paths, ws.blends.ownForest(c)} {
		for i := range row {
			row[i] = float64(parts[i])
		}
		parts = parts[len(row):]
	}
	if b.chained {
		b.weighPaths(&p.Pool.Order)
	}
	b.next = grow(b.next, c)
	p.combine(b.next, b)
	p.mix(b.next, ws)
	p.mixNoise(b.next, ws)
	p.mixFrequencies(b.next, ws)
	p.mixOwn(b.next, ws)
	return true
}

// PerPath returns the distributions of the label by the order of the labels in the last
// prediction, Paths×C; nil if the order was unknown. Valid until the next call.
func (ws *Workspace) PerPath() []float64 {
	if !ws.forecast.chained {
		return nil
	}
	return ws.forecast.paths
}

// Novelty is that of the last prediction, or of the last one that was recalled.
func (ws *Workspace) Novelty() float64 { return ws.answer.novelty }

// Experts returns log e_jk of the experts of the last prediction, E×C; the horizons
// are the first. Valid until the next call.
func (ws *Workspace) Experts() []float64 { return ws.blends.experts }
