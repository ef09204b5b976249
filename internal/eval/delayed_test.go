package eval

import (
	"math"
	"testing"

	"edge/internal/dataset"
	"edge/online"
	"edge/stream/codec"
)

// Features go missing with the probability that is given, and never all of them; a row is left out where
// on_missing rejects it.
func TestFeaturesGoMissing(t *testing.T) {
	cfg := online.DefaultConfig()
	cfg.Features = []string{"a", "b", "c", "d", "e"}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for how, mayLack := range map[string]bool{codec.OnMissingMarginalise: true, codec.OnMissingReject: false} {
		d := newDelayed(Arrival{Missing: 0.3, OnMissing: how, Seed: 1}, learner, false, 0)
		const rows = 4000
		var lost [6]int // rows by their number of missing features
		for range rows {
			row := dataset.Row{X: []float64{1, 2, 3, 4, 5}}
			ok := d.remove(&row)
			missing := row.Lacking()
			lost[missing]++
			if ok != (missing == 0 || mayLack) {
				t.Fatalf("%s: a row without %d features is taken: %v", how, missing, ok)
			}
		}
		// Of the four features that may go, k go with the probability of a binomial distribution.
		for k, choices := range []float64{1, 4, 6, 4, 1, 0} {
			p := choices * math.Pow(0.3, float64(k)) * math.Pow(0.7, float64(4-k))
			if got := float64(lost[k]) / rows; math.Abs(got-p) > 4*math.Sqrt(p*(1-p)/rows) {
				t.Errorf("%s: %d features are missing in %.3f of the rows, want %.3f", how, k, got, p)
			}
		}
	}
}
