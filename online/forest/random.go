package forest

import "math/bits"

// random is a generator of which the state is one number, so that a restored learner
// carries on with the same draws.
//
// Source: Steele, Lea & Flood (2014), "Fast splittable pseudorandom number generators",
// the generator SplitMix64.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below draws a number from 0 to n−1.
func (r *random) below(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// fraction draws a number from 0, to 1 without it.
func (r *random) fraction() float64 { return float64(r.next()>>11) / (1 << 53) }
