package sep

import (
	"math"
	"slices"
	"testing"

	"edge/model"
)

// Values beyond model.MaxFeature count as it: scalings and ranks of any finite values are finite.
func TestScaleOfHugeValues(t *testing.T) {
	x := []float64{math.MaxFloat64, 1, -math.MaxFloat64, 2, math.Inf(1), 3, -math.MaxFloat64, math.NaN()}
	for name, scale := range map[string]func(s *model.Scale){
		"robust": func(s *model.Scale) { RobustScale(s, x, 4, 2) },
		"plain":  func(s *model.Scale) { PlainScale(s, x, 4, false) },
		"common": func(s *model.Scale) { PlainScale(s, x, 4, true) },
	} {
		s := &model.Scale{Mu: make([]float64, 2), Sd: make([]float64, 2)}
		scale(s)
		for j := range 2 {
			if !(math.Abs(s.Mu[j]) <= model.MaxFeature && s.Sd[j] > 0 && s.Sd[j] <= model.MaxFeature) {
				t.Errorf("%s: feature %d has mean %g and standard deviation %g", name, j, s.Mu[j], s.Sd[j])
			}
		}
		if math.Abs(s.Mu[1]-2) > 1e-15 || name != "common" && math.Abs(s.Sd[1]-math.Sqrt(2./3)) > 1e-15 {
			t.Errorf("%s: the other feature has mean %g and standard deviation %g", name, s.Mu[1], s.Sd[1])
		}
	}
	if r := ranks(x, 4, 2); r[0] != -model.MaxFeature || r[model.RankPoints-1] != model.MaxFeature || slices.ContainsFunc(r, func(v float64) bool { return v-v != 0 }) {
		t.Errorf("ranks %g", r)
	}
}

// The scaling follows the known values by their number over the memory, at most by half; values are
// clipped, and a tenth of the standard deviation before stays. The digits are by hand.
func TestTrack(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		x      []float64
		memory float64
		sd0    float64
		mu, sd float64 // afterwards; 10 and 2 before
	}{
		"two of three":  {[]float64{11, nan, 13}, 10, 2, 10.4, math.Sqrt(0.8*4 + 0.2*(0.6*0.6+2.6*2.6)/2)},
		"outlier":       {[]float64{1e9}, 10, 2, 11.6, math.Sqrt(0.9*4 + 0.1*14.4*14.4)}, // 8 standard deviations away: 26
		"outlier below": {[]float64{-1e9}, 10, 2, 8.4, math.Sqrt(0.9*4 + 0.1*14.4*14.4)},
		"short memory":  {[]float64{12, 12, 12}, 1, 2, 11, math.Sqrt(0.5*4 + 0.5)},
		"none":          {[]float64{nan, nan}, 10, 2, 10, 2},
		"least":         {[]float64{10, 10}, 2, 30, 10, 3},
	} {
		s := &model.Scale{Mu: []float64{0, 10}, Sd: []float64{1, 2}, Clip: 8}
		var x []float64
		for _, v := range c.x {
			x = append(x, 0, v)
		}
		track(s, []float64{1, c.sd0}, x, len(c.x), c.memory)
		if math.Abs(s.Mu[1]-c.mu) > 1e-12 || math.Abs(s.Sd[1]-c.sd) > 1e-12 || s.Mu[0] != 0 {
			t.Errorf("%s: mean %v and standard deviation %v, want %v and %v; the other mean is %v", name, s.Mu[1], s.Sd[1], c.mu, c.sd, s.Mu[0])
		}
	}
}
