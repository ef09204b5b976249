package drift

import (
	"math"
	"slices"

	"edge/online/wire"
)

// adwin keeps a window, and cuts it wherever its two parts have means that
// differ by more than chance allows,
//
//	ε = √(2/m·σ²·ln(2/δ')) + 2/(3m)·ln(2/δ'),   1/m = 1/n₀ + 1/n₁,   δ' = δ/ln n
//
// in an exponential histogram of O(log n) buckets, 85 at most. Numbers are in
// [0, 1]. A fall of the mean cuts the window without an alarm: a model that
// improves is no drift. A warning has a δ ten times as large, and does not cut. Of several
// cuts that are possible the one whose difference is largest, in units of its ε, dates the
// change.
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
	adwinPart    = 10 // numbers of the smallest part
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
		cut, risen, warned := a.compare()
		if !cut {
			if found.level < Warning {
				found = warned
			}
			return found
		}
		if found.level < Drifted {
			found = risen
		}
		last := len(a.rows) - 1
		a.rows[last] = slices.Delete(a.rows[last], 0, 1)
		if len(a.rows[last]) == 0 {
			a.rows = a.rows[:last]
		}
	}
}

// compare compares the earlier and the later part of the window at each place between two buckets. It
// reports whether two means differ beyond their bound, and the clearest rise beyond it and beyond that
// of a warning. A fall before any such rise ends the comparison.
func (a *adwin) compare() (cut bool, risen, warned alarm) {
	n, sum, square := a.total()
	if n < 2*adwinPart {
		return false, alarm{}, alarm{}
	}
	variance := square / float64(n)
	var n0, sum0, most, mostWarned float64
	for i := len(a.rows) - 1; i >= 0; i-- {
		for _, b := range a.rows[i] {
			n0, sum0 = n0+float64(uint64(1)<<i), sum0+b.sum
			n1 := float64(n) - n0
			if n0 < adwinPart || n1 < adwinPart {
				continue
			}
			u0, u1 := sum0/n0, (sum-sum0)/n1
			rise := (u1 - u0) / cutBound(a.delta, n0, n1, variance)
			if rise < -1 && !cut {
				return true, alarm{}, alarm{}
			}
			if rise > max(1, most) {
				cut, most, risen = true, rise, alarm{Drifted, u0, u1, uint64(n1)}
			}
			if rise = (u1 - u0) / cutBound(warningDelta*a.delta, n0, n1, variance); rise > max(1, mostWarned) {
				mostWarned, warned = rise, alarm{Warning, u0, u1, uint64(n1)}
			}
		}
	}
	return cut, risen, warned
}

// cutBound returns ε_cut: means of n0 and n1 values of a variance that differ by more do not
// belong to one window, at the confidence δ,
//
//	ε = √(2σ²·ln(2/δ′)/m) + 2·ln(2/δ′)/(3m),  1/m = 1/n0 + 1/n1,  δ′ = δ/ln(n0 + n1)
func cutBound(delta, n0, n1, variance float64) float64 {
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

func (a *adwin) encode(e *wire.Encoder) {
	e.Uint(a.clock)
	e.Int(len(a.rows))
	for _, row := range a.rows {
		e.Int(len(row))
		for _, b := range row {
			e.Float(b.sum)
			e.Float(b.square)
		}
	}
}

func (a *adwin) decode(d *wire.Decoder) {
	a.clock = uint64(d.Int(adwinClock-1, "clock of the detector"))
	a.rows = make([][]bucket, d.Int(adwinRows, "rows of the detector"))
	for i := range a.rows {
		a.rows[i] = make([]bucket, d.Int(adwinBuckets, "buckets of the detector"))
		for j := range a.rows[i] {
			a.rows[i][j] = bucket{d.Number("detector"), d.Number("detector")}
		}
	}
	if n := len(a.rows); n > 0 && len(a.rows[n-1]) == 0 {
		d.Fail("detector has an empty row")
	}
}
