package mixture

import (
	"math"

	"edge/model"
	"edge/online/wire"
)

// noise learns model.Noise: u = (log Sharpness, logit Share) by Newton's steps on the log
// probability of the labels under a = (1 − Share)·q + Share·π, one a minibatch of n samples,
// with the outer products of the gradients as curvature,
//
//	g_i = ∂ log a_iy/∂u,   F ← F + w Σ_i g_i g_iᵀ,   u ← u + F⁻¹·w Σ_i g_i
//	F ← (1 − n/memory)·F + n/memory·I,   w = min(1, mostApart/alike)
//
// and Weight by e_i = log a_iy/p_iy, in two sums that fade as F does, at most mostAhead:
//
//	Weight = 1/(1 + exp(lead − min(Σ w Σ_i e_i, Σ clip(w Σ_i e_i, ±noiseVote))))
//
// Wrong labels come at any time: they show in most minibatches, and in the sum. Where the
// model fails for a while, the sum alone has evidence for them; where an error is rare and
// costs much, most minibatches alone have. Both sums are bounded from above, so that the
// answer without noise returns soon. It begins with the end of the warm-up, whose
// models err for want of labels.
type noise struct {
	on    bool
	at    [2]float64 // u
	curve [3]float64 // lower triangle of F
	ahead [2]float64 // the sums

	pending [6]float64 // sums of the minibatch that is filling: g, the lower triangle of ggᵀ, e
}

const (
	noiseLead  = 8    // log weight of the answer without noise
	noiseVote  = 0.5  // nats of a minibatch in the second sum
	mostAhead  = 11   // of both sums
	firstShare = 0.03 // of the wrong labels
	mostSharp  = 8
	leastShare = 1e-3
	mostShare  = 0.5
	mostNoise  = 1e100 // of a number in a state
)

// StartNoise lets wrong labels show, unless they may already. A state that was without is
// trusted: they have to earn their weight.
func (m *Mixture) StartNoise(trusted bool) {
	if m.own.Mixture != nil {
		m.own.StartNoise(trusted)
	}
	if m.noise.on || !m.canBeNoisy() {
		return
	}
	m.noise = noise{on: true, at: [2]float64{0, model.Logit(firstShare)}, curve: [3]float64{1, 0, 1}}
	if trusted {
		m.noise.ahead = [2]float64{earned, earned}
	}
	m.setNoise()
}

// canBeNoisy reports whether the stream's labels are judged as they come: not if they were
// requested, or weigh by their class.
func (m *Mixture) canBeNoisy() bool { return !m.cfg.FewLabels && !m.cfg.Weighted }

// setNoise stores the noise in the view.
func (m *Mixture) setNoise() {
	m.view.Pool.Noise = model.Noise{}
	if x := &m.noise; x.on {
		lead := noiseLead - min(x.ahead[0], x.ahead[1])
		m.view.Pool.Noise = model.Noise{Sharpness: math.Exp(x.at[0]), Share: x.share(), Weight: 1 / (1 + math.Exp(lead))}
	}
}

func (n *noise) share() float64 { return 1 / (1 + math.Exp(-n.at[1])) }

// observe adds a sample of class k, with that weight, of which the last prediction is in ws.
func (n *noise) observe(k int, weight float64, ws *model.Workspace) {
	logs, sharp := ws.Noisy()
	if !n.on || len(logs) == 0 {
		return
	}
	_, pi := ws.Informed()
	var mean float64
	for i, q := range sharp {
		mean += float64(q * logs[i])
	}
	share, q := n.share(), sharp[k]
	a := max(q+float64(share*(pi[k]-q)), minProb)
	g := [2]float64{(1 - share) * q * math.Exp(n.at[0]) * (logs[k] - mean) / a, (pi[k] - q) * share * (1 - share) / a}
	for i, v := range [6]float64{g[0], g[1], g[0] * g[0], g[0] * g[1], g[1] * g[1], math.Log(a) - logs[k]} {
		n.pending[i] += float64(weight * v)
	}
}

// learn takes the step of a minibatch.
func (n *noise) learn(b Batch) {
	if !n.on {
		return
	}
	one, fade, f := b.most(mostApart), max(0, 1-float64(b.N)/stackMemory), &n.curve
	most := noiseVote * b.part()
	scale(one, n.pending[:])
	g, vote := n.pending[:2], n.pending[5]
	for i, v := range n.pending[2:5] {
		f[i] += v
	}
	if det := float64(f[0]*f[2]) - float64(f[1]*f[1]); det > 0 {
		n.step(0, (float64(f[2]*g[0])-float64(f[1]*g[1]))/det)
		n.step(1, (float64(f[0]*g[1])-float64(f[1]*g[0]))/det)
	}
	for i, v := range [3]float64{1, 0, 1} {
		f[i] = float64(fade*f[i]) + float64((1-fade)*v)
	}
	for i, v := range [2]float64{vote, min(max(vote, -most), most)} {
		n.ahead[i] = min(float64(fade*n.ahead[i])+v, mostAhead)
	}
	n.pending = [6]float64{}
}

// step moves a parameter, within its bounds.
func (n *noise) step(i int, by float64) {
	bounds := [2][2]float64{{0, math.Log(mostSharp)}, {model.Logit(leastShare), model.Logit(mostShare)}}[i]
	n.at[i] = min(max(n.at[i]+min(max(by, -maxStackStep), maxStackStep), bounds[0]), bounds[1])
}

// EncodeNoise appends the noise; nothing before the end of the warm-up.
func (m *Mixture) EncodeNoise(e *wire.Encoder) {
	if !m.noise.on {
		return
	}
	for _, part := range m.noise.parts() {
		e.Floats(part)
	}
	if m.own.Mixture != nil {
		m.own.EncodeNoise(e)
	}
}

// DecodeNoise reads the values that EncodeNoise wrote, after those of EncodeOwn.
func (m *Mixture) DecodeNoise(d *wire.Decoder) {
	x := noise{on: true}
	for _, part := range x.parts() {
		for i := range part {
			part[i] = d.Number("label noise")
			if math.Abs(part[i]) > mostNoise {
				d.Fail("label noise holds %g", part[i])
			}
		}
	}
	if d.Err() == nil && m.canBeNoisy() {
		x.step(0, 0)
		x.step(1, 0)
		m.noise = x
		m.setNoise()
	}
	if m.own.Mixture != nil {
		m.own.DecodeNoise(d)
	}
}

// parts are the numbers of a state.
func (n *noise) parts() [4][]float64 {
	return [...][]float64{n.at[:], n.curve[:], n.ahead[:], n.pending[:]}
}
