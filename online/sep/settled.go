package sep

import "math"

// A stream that stays as it is for long tells ever less of the kernel: a horizon that never forgets
// then knows the latent functions from its sites alone. Steps along its gradient would move the
// kernel by chance, and its evidence prefers latent functions that vary less and less. A shorter
// horizon, which begins at the prior, would learn ever more slowly when the stream changes. So the
// kernel of a bank that has learnt for long moves less while such a horizon answers, and its latent
// functions keep the variance of the start.
const (
	settledAfter = 50_000         // labels
	leastSignal  = 1 / StartNoise // least variance of a latent function, in those of its noise
	maxRise      = 0.02           // of the logarithm of that quotient in a step
)

// settled reports whether the bank has learnt for long.
func (b *Bank) settled() bool { return b.live && b.view.N > settledAfter }

// ageFactor is the factor of the rate of a settled bank: it falls with the number of labels as far as
// horizons that never forget answer.
func (b *Bank) ageFactor() float64 {
	if !b.settled() {
		return 1
	}
	var kept float64
	for h, length := range b.cfg.Horizons {
		if math.IsInf(length, 1) {
			kept += b.weight(h)
		}
	}
	return max(1-kept, settledAfter/float64(b.view.N))
}

// keepSignal raises the variance of the latent functions of a settled bank to leastSignal, by so little
// in a step that the answers do not suffer. Only its quotient by that of the noise carries information,
// so that both move alike.
func (b *Bank) keepSignal() {
	if !b.settled() {
		return
	}
	for g := range b.bases {
		p := b.params.Group(g)
		if low := math.Log(leastSignal) - (*p.LogAmp() - *p.LogNoise()); low > 0 {
			low = min(low, maxRise)
			*p.LogAmp() += low / 2
			*p.LogNoise() -= low / 2
		}
	}
}
