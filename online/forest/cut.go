package forest

import (
	"math"
	"slices"

	"edge/model"
)

const (
	thresholds  = 8    // of a feature, among which a cut is chosen
	fewFeatures = 8    // among which a cut is chosen at least, if there are as many
	tie         = 1e-9 // gains and entropies that differ by less are equal, however they are rounded: the first one counts
)

// cut is a split of a leaf, chosen among more candidates than that of a leaf that grows.
type cut struct {
	gain      float64 // decrease of the entropy of the labels, in nats times the weight of the samples; −∞ where there is none
	feature   int
	threshold float32
}

// cutter chooses cuts.
type cutter struct {
	candidates int      // features
	order      []uint16 // D  features, shuffled as far as they were drawn

	// Of the samples of a leaf, m of them with labels of c classes:
	classes    []uint8   // m  numbered in the order in which they come
	weights    []float32 // m
	values     []float32 // m  of one feature
	thresholds [thresholds]float32
	between    []float64 // (thresholds+1)×c  weight of each class up to each threshold, and above all
	sides      []float64 // 2×c  on both sides of one
}

func newCutter(candidates, features int) cutter {
	return cutter{candidates: max(candidates, min(fewFeatures, features)), order: make([]uint16, features)}
}

// choose draws features that differ among the samples, and for each thresholds among
// their values, and returns the cut with the least entropy of the labels. There is none for few
// samples, nor for those of one class.
func (c *cutter) choose(slots []uint16, r *ring, random *random) cut {
	best := cut{gain: math.Inf(-1)}
	if len(slots) < minSplit || c.label(slots, r) < 2 {
		return best
	}
	c.divide()
	whole := entropy(c.sides)
	for j := range c.order {
		c.order[j] = uint16(j)
	}
	for i, left := 0, c.candidates; i < len(c.order) && left > 0; i++ {
		feature := draw(c.order, i, random)
		lo, hi, missing := c.read(slots, r, feature)
		if !(lo < hi) && !(lo == hi && missing) {
			continue
		}
		left--
		c.draw(random, math.Nextafter32(hi, lo))
		c.count()
		c.divide()
		for i, threshold := range c.thresholds {
			c.pass(i)
			if gain := whole - entropy(c.sides); gain > best.gain+tie {
				best = cut{gain, feature, threshold}
			}
		}
	}
	return best
}

// label reads classes and weights of the samples, and returns the number of classes.
func (c *cutter) label(slots []uint16, r *ring) int {
	c.classes, c.weights = c.classes[:0], c.weights[:0]
	var numbers [256]uint8
	n := 0
	for _, slot := range slots {
		k := r.label[slot]
		if numbers[k] == 0 {
			n++
			numbers[k] = uint8(n)
		}
		c.classes, c.weights = append(c.classes, numbers[k]-1), append(c.weights, r.weight[slot])
	}
	c.between = slices.Grow(c.between[:0], (thresholds+1)*n)[:(thresholds+1)*n]
	c.sides = slices.Grow(c.sides[:0], 2*n)[:2*n]
	clear(c.between)
	for i, k := range c.classes {
		c.between[k] += float64(c.weights[i])
	}
	return n
}

// read reads the values of a feature, and returns the least and the largest known one, and whether
// one is missing.
func (c *cutter) read(slots []uint16, r *ring, feature int) (lo, hi float32, missing bool) {
	lo, hi = float32(math.Inf(1)), float32(math.Inf(-1))
	c.values = c.values[:0]
	for _, slot := range slots {
		v := r.x[int(slot)*r.d+feature]
		c.values = append(c.values, v)
		if v < lo { // false for a missing one
			lo = v
		}
		if v > hi {
			hi = v
		}
		missing = missing || v != v
	}
	return lo, hi, missing
}

// draw draws thresholds among the values, none above top but for a missing one, which is told from
// all known ones. It keeps them in order: to sort them would add a sort of float32 to the program.
func (c *cutter) draw(random *random, top float32) {
	for i := range c.thresholds {
		v := c.values[random.below(len(c.values))]
		switch {
		case v != v:
			v = known
		case v > top:
			v = top
		}
		for ; i > 0 && c.thresholds[i-1] > v; i-- {
			c.thresholds[i] = c.thresholds[i-1]
		}
		c.thresholds[i] = v
	}
}

// count counts the samples between the thresholds.
func (c *cutter) count() {
	clear(c.between)
	n, t := len(c.sides)/2, &c.thresholds
	for i, v := range c.values {
		at := above(v, t[0]) + above(v, t[1]) + above(v, t[2]) + above(v, t[3]) +
			above(v, t[4]) + above(v, t[5]) + above(v, t[6]) + above(v, t[7])
		c.between[at*n+int(c.classes[i])] += float64(c.weights[i])
	}
}

// above is 1 for a value above a threshold, or missing, and 0 otherwise.
func above(v, threshold float32) (n int) {
	if model.Above(v, threshold) {
		n = 1
	}
	return n
}

// divide puts all samples above the threshold.
func (c *cutter) divide() {
	n := len(c.sides) / 2
	clear(c.sides)
	for i, v := range c.between {
		c.sides[n+i%n] += v
	}
}

// pass moves the samples between thresholds i−1 and i to the other side.
func (c *cutter) pass(i int) {
	n := len(c.sides) / 2
	for k, v := range c.between[i*n : (i+1)*n] {
		c.sides[k] += v
		c.sides[n+k] -= v
	}
}
