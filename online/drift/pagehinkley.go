package drift

import (
	"math"

	"edge/online/wire"
)

// pageHinkley adds up the distances of the numbers from their running mean, and
// compares the sum with its minimum,
//
//	m_t = Σ (x_i − x̄_i − δ),   alarm if m_t − min m > λ
//
// with x in units of its running standard deviation, and x_i − x̄_i at most λ/5: one wrong
// label of a good model is 30 deviations or more, and no change. A warning needs half of λ.
//
// Source: Page, "Continuous inspection schemes" (Biometrika 1954); Hinkley
// (1971); Gama et al., "A survey on concept drift adaptation" (2014), 3.2.
type pageHinkley struct {
	lambda       float64
	n            uint64
	mean, square float64
	sum, lowest  float64
	low          uint64  // n where the sum was lowest
	since        float64 // Σ x since then
}

const (
	pageTolerance = 0.1 // δ, in standard deviations
	pageFirst     = 30  // numbers before the first alarm
	pageShare     = 5   // numbers that an alarm needs at least, however large
)

func (p *pageHinkley) add(x float64) alarm {
	p.n++
	gap := x - p.mean
	p.mean += gap / float64(p.n)
	p.square += gap * (x - p.mean)
	p.since += x
	sd := math.Sqrt(p.square / float64(p.n))
	if !(sd > 0) { // all are equal: nothing has risen
		p.low, p.since = p.n, 0
		return alarm{}
	}
	if p.n < pageFirst {
		return alarm{}
	}
	p.sum += min((x-p.mean)/sd, p.lambda/pageShare) - pageTolerance
	if p.sum < p.lowest {
		p.lowest, p.low, p.since = p.sum, p.n, 0
	}
	n := p.n - p.low
	found := alarm{before: p.mean, after: p.mean, since: n}
	if n > 0 {
		found.after = p.since / float64(n)
		if p.low > 0 {
			found.before = (p.mean*float64(p.n) - p.since) / float64(p.low)
		}
	}
	switch rise := p.sum - p.lowest; {
	case rise > p.lambda: // and begins again
		found.level = Drifted
		*p = pageHinkley{lambda: p.lambda}
	case rise > p.lambda/2:
		found.level = Warning
	}
	return found
}

func (p *pageHinkley) encode(e *wire.Encoder) {
	e.Uint(p.n)
	e.Uint(p.low)
	for _, v := range p.numbers() {
		e.Float(*v)
	}
}

func (p *pageHinkley) decode(d *wire.Decoder) {
	p.n, p.low = d.Uint(), d.Uint()
	for _, v := range p.numbers() {
		*v = d.Number("detector")
	}
	if p.low > p.n || p.square < 0 {
		d.Fail("detector's numbers contradict each other")
	}
}

func (p *pageHinkley) numbers() []*float64 {
	return []*float64{&p.mean, &p.square, &p.sum, &p.lowest, &p.since}
}
