package forest

import "math"

// entropy returns the entropy of the labels on two sides, in nats times the weight of the samples,
//
//	Σ_sides (n log n − Σ_k n_k log n_k)
//
//	sides  2×C  weight of each class
func entropy(sides []float64) (sum float64) {
	c := len(sides) / 2
	for side := range 2 {
		var n float64
		for _, v := range sides[side*c : (side+1)*c] {
			sum -= nLogN(v)
			n += v
		}
		sum += nLogN(n)
	}
	return sum
}

// nLogN is n·log n, and 0 where nothing is left but a rounding below 0.
func nLogN(n float64) float64 {
	switch i := int(n); {
	case n <= 0:
		return 0
	case float64(i) == n && i < len(wholeLogs):
		return wholeLogs[i]
	}
	return n * math.Log(n)
}

// wholeLogs are n·log n of the numbers of samples of usual leaves, whose weights are 1.
var wholeLogs = func() (t [512]float64) {
	for i := 1; i < len(t); i++ {
		t[i] = float64(i) * math.Log(float64(i))
	}
	return t
}()
