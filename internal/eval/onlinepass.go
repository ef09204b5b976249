package eval

import (
	"context"
	"fmt"
	"math"

	"edge/internal/dataset"
	"edge/internal/process"
	"edge/internal/report"
	"edge/online"
	"edge/online/score"
)

// OnlineParts is the number of times that the online pass is judged.
const OnlineParts = 12

// onlinePass learns the rows once and is judged by held-out rows after every
// twelfth of them. The log evidence is that of the labels before they were learnt.
type onlinePass struct {
	*heldOut
	judged *dataset.Part
	names  []string // of the classes of judged
	total  int      // rows
	rows   int      // so far
	cpu    float64
	points []report.TrainingPoint
}

func (p *onlinePass) Row(row *dataset.Row) error {
	start := process.CPUTime()
	if err := p.heldOut.Row(row); err != nil {
		return err
	}
	p.cpu += (process.CPUTime() - start).Seconds()
	p.rows++
	if p.rows*OnlineParts/p.total == (p.rows-1)*OnlineParts/p.total {
		return nil
	}
	s, err := judgeAll(p.learner.Posterior(), p.names, p.judged, false)
	if err != nil {
		return err
	}
	p.points = append(p.points, report.TrainingPoint{
		Passes: float64(p.rows) / float64(p.total), CPUSeconds: p.cpu, LogEvidence: -p.learner.Scores().NLL, Error: score.Real(s.Error), NLL: score.Real(s.NLL),
	})
	return nil
}

// onlinePass trains a learner online for comparison: as in the daemon, for a
// stream that does not drift and whose labels follow in no order, and without the forest,
// which offline training does not have.
func (t *Training) onlinePass(ctx context.Context, cfg online.Config, rows, judged *dataset.Part, progress func(int)) ([]report.TrainingPoint, error) {
	cfg.Kernel, cfg.Temporal, cfg.Horizons = online.Shared, online.TemporalOff, []online.Horizon{online.Horizon(math.Inf(1))}
	cfg.Experts.Forest = online.NoForest
	if t.How.Batch > 0 {
		cfg.Batch.MaxSize = min(t.How.Batch, 1000)
	}
	h, err := newHeldOut(cfg, rows.Table.Classes)
	if err != nil {
		return nil, err
	}
	p := &onlinePass{heldOut: h, judged: judged, names: rows.Table.Classes, total: rows.Len()}
	if _, err := Run(ctx, &partRows{part: rows}, p, progress); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return p.points, nil
}
