package report

import (
	"math"

	"edge/online/score"
)

// Run is one repeat of several.
type Run struct {
	Seed     uint64     `json:"seed"` // of the shuffle or split; without either, of the model
	Error    float64    `json:"error"`
	NLL      float64    `json:"nll"`
	Brier    float64    `json:"brier"`
	ECE      float64    `json:"ece"`
	MacroF1  float64    `json:"macro_f1"`
	Balanced score.Real `json:"balanced_accuracy"`
	Kappa    score.Real `json:"kappa"`
	Digest   string     `json:"digest"`
	Held     string     `json:"held,omitempty"` // the device or recordings that judged
	Judged   uint64     `json:"judged,omitempty"`
}

func runError(r Run) float64 { return r.Error }

func runNLL(r Run) float64 { return r.NLL }

// standardError returns the standard error of a figure's mean over the runs; 0
// for a single run. Folds and splits of one set overlap, which makes the true
// standard error larger.
func standardError(runs []Run, figure func(Run) float64) float64 {
	n := float64(len(runs))
	if n < 2 {
		return 0
	}
	var mean, ss float64
	for _, r := range runs {
		mean += figure(r) / n
	}
	for _, r := range runs {
		ss += (figure(r) - mean) * (figure(r) - mean)
	}
	return math.Sqrt(ss / (n - 1) / n)
}

// meanSets returns the mean results of prediction sets; nil if a report has none.
func meanSets(reports []*Report) (sets *score.Coverage, worst *score.Real) {
	sets, worst = new(score.Coverage), new(score.Real)
	n := score.Real(len(reports))
	for _, r := range reports {
		if s := r.Sets; s == nil {
			sets = nil
		} else if sets != nil {
			sets.N += s.N
			sets.Covered += s.Covered / n
			sets.Size += s.Size / n
			sets.Empty += s.Empty / n
		}
		if w := r.SetsWorst; w == nil {
			worst = nil
		} else if worst != nil {
			*worst += *w / n
		}
	}
	return sets, worst
}

// Mean returns the mean over repeats, with the speed and size of the last one and
// the curve of the first. Scores that belong to one run alone are left out; the
// charts pool the samples of all runs.
func Mean(reports []*Report) *Report {
	mean := *reports[len(reports)-1]
	mean.Figures = Figures{}
	mean.Seconds, mean.Digest, mean.Tenths, mean.Curve = 0, "", nil, reports[0].Curve
	n := float64(len(reports))
	for _, r := range reports {
		mean.Error += r.Error / n
		mean.NLL += r.NLL / n
		mean.Brier += r.Brier / n
		mean.ECE += r.ECE / n
		mean.MacroF1 += r.MacroF1 / n
		mean.Balanced += r.Balanced / score.Real(n)
		mean.Kappa += r.Kappa / score.Real(n)
		mean.Seconds += r.Seconds / n
		mean.Runs = append(mean.Runs, Run{r.Seed, r.Error, r.NLL, r.Brier, r.ECE, r.MacroF1, r.Balanced, r.Kappa, r.Digest, r.Held, r.Judges})
	}
	mean.StandardErrors = StandardErrors{
		ErrorSE: standardError(mean.Runs, runError), NLLSE: standardError(mean.Runs, runNLL),
		BrierSE:    standardError(mean.Runs, func(r Run) float64 { return r.Brier }),
		ECESE:      standardError(mean.Runs, func(r Run) float64 { return r.ECE }),
		MacroF1SE:  standardError(mean.Runs, func(r Run) float64 { return r.MacroF1 }),
		BalancedSE: score.Real(standardError(mean.Runs, func(r Run) float64 { return float64(r.Balanced) })),
		KappaSE:    score.Real(standardError(mean.Runs, func(r Run) float64 { return float64(r.Kappa) })),
	}
	mean.Asked = meanAsked(reports)
	mean.Sets, mean.SetsWorst = meanSets(reports)
	mean.Charts = pool(reports)
	if mean.Seconds > 0 {
		mean.SamplesPerSecond = float64(mean.Samples) / mean.Seconds
	}
	return &mean
}
