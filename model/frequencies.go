package model

// mixFrequencies gives the frequencies of the classes their weight in dst, the
// answer of features and order, which stays in ws. They bound the loss of streams
// whose features have nothing to do with the label:
//
//	p(y=k) ← (1 − Prior)·p(y=k) + Prior·π_k
func (p *Posterior) mixFrequencies(dst []float64, ws *Workspace) {
	ws.blends.informed = append(ws.blends.informed[:0], dst...)
	for k, pi := range ws.forecast.pi {
		dst[k] += p.Pool.Prior * (pi - dst[k])
	}
}

// Informed returns the answer of features and order in the last prediction, and the
// frequencies π that Pool.Prior mixes it with: C each. Valid until the next call.
func (ws *Workspace) Informed() (answer, pi []float64) { return ws.blends.informed, ws.forecast.pi }
