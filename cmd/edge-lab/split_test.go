package main

import (
	"math"
	"testing"

	"edge/test/harness"
)

func TestEvalHoldout(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 200)
	for _, mode := range []string{"holdout", "cv"} {
		for _, how := range [][]string{nil, {"--passes", "5", "--batch", "50"}, {"--passes", "20", "--sites", "explicit", "--schedule", "constant"}} {
			args := append([]string{path, "--mode", mode, "--repeats", "4", "--inducing", "10"}, how...)
			r := evalJSON(t, args...)[0]
			samples := map[string]uint64{"holdout": 180, "cv": 150}[mode]
			if r.Mode != mode || r.Samples != samples || len(r.Runs) != 4 || r.Error > 0.5 || r.NLL > math.Log(3) {
				t.Errorf("%v: %+v", args, r)
			}
			var mean, ss float64
			for _, run := range r.Runs {
				mean += run.NLL / 4
			}
			for _, run := range r.Runs {
				ss += (run.NLL - mean) * (run.NLL - mean)
			}
			if math.Abs(mean-r.NLL) > 1e-12 || math.Abs(math.Sqrt(ss/3/4)-r.NLLSE) > 1e-12 {
				t.Errorf("%v: nll %g ± %g, of the runs %g ± %g", args, r.NLL, r.NLLSE, mean, math.Sqrt(ss/12))
			}
			for figure, se := range map[string]float64{"error": r.ErrorSE, "brier": r.BrierSE, "ece": r.ECESE, "macro-F1": r.MacroF1SE, "balanced": float64(r.BalancedSE), "kappa": float64(r.KappaSE)} {
				if !(se > 0 && se < 0.5) {
					t.Errorf("%v: the standard error of %s is %g", args, figure, se)
				}
			}
			if again := evalJSON(t, args...)[0]; again.Runs[3] != r.Runs[3] {
				t.Errorf("%v: a second time %+v, then %+v", args, r.Runs[3], again.Runs[3])
			}
		}
	}
}
