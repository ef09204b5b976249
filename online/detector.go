package online

import (
	"math"
	"slices"
)

// detector watches a stream of numbers for a rise of their mean.
type detector interface {
	// add takes the next number and reports how sure it is that the mean has risen.
	add(x float64) alarm
	encode(e *encoder)
	decode(d *decoder)
}

// alarm is what a detector found.
type alarm struct {
	level         Level
	before, after float64 // means
	since         uint64  // numbers that came after the change, as far as is known
}

// adwin keeps a window that it cuts wherever its two parts have means that
// differ by more than chance allows,
//
//	ε = √(2/m·σ²·ln(2/δ')) + 2/(3m)·ln(2/δ'),   1/m = 1/n₀ + 1/n₁,   δ' = δ/ln n
//
// in an exponential histogram of O(log n) buckets, 85 at most. Numbers are in [0, 1]. A fall
// of the mean cuts the window without an alarm: a model that gets better is no
// drift. A warning has a δ ten times as large, and cuts nothing.
//
// Source: Bifet & Gavaldà, "Learning from time-changing data with adaptive
// windowing" (SDM 2007), ADWIN2.
type adwin struct {
	delta float64
	rows  [][]bucket // rows[i] holds buckets of 2^i numbers, oldest first; the last row is the oldest
	clock uint64     // numbers since the last look
}

// bucket sums up neighbours.
type bucket struct {
	sum, square float64 // of the numbers; of their distances from their mean
}

const (
	adwinBuckets = 5  // of a size
	adwinRows    = 17 // sizes: 650 000 numbers at most
	adwinClock   = 16 // numbers between two looks
	adwinPart    = 10 // numbers that a part has at least
	warningDelta = 10 // times as large
)

func (a *adwin) add(x float64) alarm {
	if len(a.rows) == 0 {
		a.rows = append(a.rows, nil)
	}
	a.rows[0] = append(a.rows[0], bucket{sum: x})
	for i := 0; len(a.rows[i]) > adwinBuckets; i++ {
		if i+1 == len(a.rows) {
			if len(a.rows) == adwinRows {
				a.rows[i] = slices.Delete(a.rows[i], 0, 1)
				break
			}
			a.rows = append(a.rows, nil)
		}
		p, q := a.rows[i][0], a.rows[i][1]
		n := float64(uint64(1) << i)
		gap := (p.sum - q.sum) / n
		a.rows[i+1] = append(a.rows[i+1], bucket{p.sum + q.sum, p.square + q.square + gap*gap*n/2})
		a.rows[i] = slices.Delete(a.rows[i], 0, 2)
	}
	if a.clock++; a.clock < adwinClock {
		return alarm{}
	}
	a.clock = 0
	return a.look()
}

// look cuts the window as often as it must.
func (a *adwin) look() (found alarm) {
	for {
		n, sum, square := a.total()
		if n < 2*adwinPart {
			return found
		}
		variance := square / float64(n)
		cut, warned := false, alarm{}
		var n0, sum0 float64
	scan:
		for i := len(a.rows) - 1; i >= 0; i-- {
			for _, b := range a.rows[i] {
				n0, sum0 = n0+float64(uint64(1)<<i), sum0+b.sum
				n1 := float64(n) - n0
				if n0 < adwinPart || n1 < adwinPart {
					continue
				}
				u0, u1 := sum0/n0, (sum-sum0)/n1
				here := alarm{Warning, u0, u1, uint64(n1)}
				switch {
				case math.Abs(u1-u0) > a.bound(a.delta, n0, n1, variance):
					cut = true
					if here.level = Drifted; u1 > u0 && found.level < Drifted {
						found = here
					}
					break scan
				case u1 > u0 && warned.level < Warning && u1-u0 > a.bound(warningDelta*a.delta, n0, n1, variance):
					warned = here
				}
			}
		}
		if !cut {
			if found.level < Warning {
				found = warned
			}
			return found
		}
		last := len(a.rows) - 1
		a.rows[last] = slices.Delete(a.rows[last], 0, 1)
		if len(a.rows[last]) == 0 {
			a.rows = a.rows[:last]
		}
	}
}

func (a *adwin) bound(delta, n0, n1, variance float64) float64 {
	inv := 1/n0 + 1/n1
	log := math.Log(2 * math.Log(n0+n1) / min(delta, 1))
	return math.Sqrt(2*inv*variance*log) + 2.0/3*inv*log
}

// total returns number, sum and squared distances from the mean of the window.
func (a *adwin) total() (n uint64, sum, square float64) {
	for i, row := range a.rows {
		size := uint64(1) << i
		for _, b := range row {
			if n > 0 {
				gap := b.sum/float64(size) - sum/float64(n)
				square += gap * gap * float64(n) * float64(size) / float64(n+size)
			}
			n, sum, square = n+size, sum+b.sum, square+b.square
		}
	}
	return n, sum, square
}

func (a *adwin) encode(e *encoder) {
	e.uint(a.clock)
	e.int(len(a.rows))
	for _, row := range a.rows {
		e.int(len(row))
		for _, b := range row {
			e.float(b.sum)
			e.float(b.square)
		}
	}
}

func (a *adwin) decode(d *decoder) {
	a.clock = uint64(d.int(adwinClock-1, "clock of the detector"))
	a.rows = make([][]bucket, d.int(adwinRows, "rows of the detector"))
	for i := range a.rows {
		a.rows[i] = make([]bucket, d.int(adwinBuckets, "buckets of the detector"))
		for j := range a.rows[i] {
			a.rows[i][j] = bucket{d.number("detector"), d.number("detector")}
		}
	}
	if n := len(a.rows); n > 0 && len(a.rows[n-1]) == 0 {
		d.fail("detector has an empty row")
	}
}

// pageHinkley adds up how far the numbers are above their mean so far, and
// compares the sum with the smallest that it has been,
//
//	m_t = Σ (x_i − x̄_i − δ),   alarm if m_t − min m > λ
//
// with x in units of its running standard deviation. A warning needs half of λ.
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
)

func (p *pageHinkley) add(x float64) alarm {
	p.n++
	gap := x - p.mean
	p.mean += gap / float64(p.n)
	p.square += gap * (x - p.mean)
	p.since += x
	sd := math.Sqrt(p.square / float64(p.n))
	if p.n < pageFirst || !(sd > 0) {
		return alarm{}
	}
	p.sum += (x-p.mean)/sd - pageTolerance
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
	case rise > p.lambda: // and begins anew
		found.level = Drifted
		*p = pageHinkley{lambda: p.lambda}
	case rise > p.lambda/2:
		found.level = Warning
	}
	return found
}

func (p *pageHinkley) encode(e *encoder) {
	e.uint(p.n)
	e.uint(p.low)
	for _, v := range p.numbers() {
		e.float(*v)
	}
}

func (p *pageHinkley) decode(d *decoder) {
	p.n, p.low = d.uint(), d.uint()
	for _, v := range p.numbers() {
		*v = d.number("detector")
	}
	if p.low > p.n || p.square < 0 {
		d.fail("detector's numbers contradict each other")
	}
}

func (p *pageHinkley) numbers() []*float64 {
	return []*float64{&p.mean, &p.square, &p.sum, &p.lowest, &p.since}
}
