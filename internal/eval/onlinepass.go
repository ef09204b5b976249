package eval

import (
	"context"
	"errors"
	"math"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/process"
	"edge/internal/report"
	"edge/online"
)

// OnlineParts is how often the online pass is judged.
const OnlineParts = 12

// onlinePass teaches the rows once, in their order, to a learner as the daemon
// has it for a stream that does not drift and whose labels follow in no order,
// and judges it after every twelfth of them. The log evidence is that of the
// labels before they were learnt.
func (t *Training) onlinePass(ctx context.Context, cfg online.Config, table *dataset.Table, rows, judged *dataset.Part, progress func(int)) ([]report.TrainingPoint, error) {
	if len(cfg.Classes.Names) == 0 {
		cfg.Classes.Names = table.Classes
	}
	cfg.Kernel, cfg.Temporal, cfg.Horizons = online.Shared, online.TemporalOff, []online.Horizon{online.Horizon(math.Inf(1))}
	if t.How.Batch > 0 {
		cfg.Batch.MaxSize = min(t.How.Batch, 1000)
	}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	var points []report.TrainingPoint
	var spent float64
	ev := online.Event{Kind: online.Observe, X: make([]float64, len(table.Features))}
	n := rows.Len()
	for i := range n {
		if ctx.Err() != nil {
			return nil, errors.New("train: interrupted")
		}
		rows.Row(i, ev.X)
		ev.Label = table.Classes[rows.Class(i)]
		start := process.CPUTime()
		learner.Add(&ev)
		spent += (process.CPUTime() - start).Seconds()
		progress(1)
		if (i+1)*OnlineParts/n == i*OnlineParts/n {
			continue
		}
		s, err := judgeAll(learner.Posterior(), table.Classes, judged, false)
		if err != nil {
			return nil, err
		}
		points = append(points, report.TrainingPoint{
			Passes: float64(i+1) / float64(n), CPUSeconds: spent, LogEvidence: -learner.Scores().NLL, Error: s.Error, NLL: s.NLL,
		})
	}
	return points, nil
}
