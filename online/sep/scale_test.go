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
