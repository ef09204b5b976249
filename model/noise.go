package model

import "math"

// Noise corrects the answer of a stream of which a part of the labels is wrong, whatever
// the features are. A product of experts is a logistic model. It cannot give all clear samples
// the one probability that wrong labels leave them: its probabilities are too small where the
// features are clear, and too large where they are clearest.
//
//	q_k ∝ p_k^Sharpness,   p_k ← (1 − Weight)·p_k + Weight·((1 − Share)·q_k + Share·π_k)
//
// with π the frequencies of the classes.
//
// Source: Bootkrajang & Kabán (2012), "Label-noise robust logistic regression".
type Noise struct {
	Sharpness float64 // 0: the answer stays as it is
	Share     float64 // of labels that follow π
	Weight    float64
}

// noisy holds the output of Noise in the last prediction.
type noisy struct {
	logs, sharp []float64 // C, C  log p, q; empty: it was not used
}

// mixNoise applies Noise to dst, the answer of features and order.
func (p *Posterior) mixNoise(dst []float64, ws *Workspace) {
	n, out := p.Pool.Noise, &ws.blends.noisy
	out.logs, out.sharp = out.logs[:0], out.sharp[:0]
	if n.Sharpness == 0 {
		return
	}
	for _, v := range dst {
		logp := math.Log(max(v, floorProb))
		out.logs, out.sharp = append(out.logs, logp), append(out.sharp, float64(n.Sharpness*logp))
	}
	softmax(out.sharp)
	for k, q := range out.sharp {
		q += float64(n.Share * (ws.forecast.pi[k] - q))
		dst[k] += float64(n.Weight * (q - dst[k]))
	}
}

// Noisy returns log p and q of Noise in the last prediction, C each; empty if it was not
// used. Valid until the next call.
func (ws *Workspace) Noisy() (logs, sharp []float64) {
	return ws.blends.noisy.logs, ws.blends.noisy.sharp
}
