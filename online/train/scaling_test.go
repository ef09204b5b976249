package train

import (
	"math"
	"testing"

	"edge/online"
	"edge/test/golden"
)

// The three ways to standardise the features, with an outlier that the first one clips.
func TestScalings(t *testing.T) {
	const n, d = 40, 2
	set := &cloud{d: d}
	for i := range n {
		set.x, set.y = append(set.x, float64(2*(i%2)-1), float64(10*(i%2))), append(set.y, i%2)
	}
	set.x[0] = -401 // of feature 0, else 1 and −1
	// Feature 0 has the quartiles −1 and 1, so that the outlier becomes −8·2/1.349.
	clipped := -8 * 2 / 1.349
	moments := func(v float64) (mu, sd float64) { // of 20 times 1, 19 times −1, and v
		mu = (1 + v) / n
		return mu, math.Sqrt((20*(1-mu)*(1-mu) + 19*(1+mu)*(1+mu) + (v-mu)*(v-mu)) / n)
	}
	mu, sd := moments(clipped)
	plain, deviation := moments(-401)
	common := math.Sqrt((deviation*deviation + 25) / 2)
	for scaling, want := range map[Scaling][4]float64{PerFeature: {mu, sd, 5, 5}, Plain: {plain, deviation, 5, 5}, Common: {plain, common, 5, common}} {
		how := Default()
		how.Scaling = scaling
		s := newTestTrainer(t, trainConfig(d, 5, online.Shared), how, 2, set).scale
		golden.Close(t, string(scaling), []float64{s.Mu[0], s.Sd[0], s.Mu[1], s.Sd[1]}, want[:], 1e-12)
	}
}
