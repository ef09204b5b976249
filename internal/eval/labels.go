package eval

import (
	"cmp"
	"fmt"

	"edge/online"
	"edge/online/active"
)

// Values of Evaluation.Labels: when labels come that are not delayed by a number of rows.
const (
	LabelsAtOnce   = "at-once"   // each comes before the next row
	LabelsPerBatch = "per-batch" // those of a minibatch come together, after its last row
)

// checkLabels reports an option that contradicts others.
func (e *Evaluation) checkLabels() error {
	switch {
	case e.Labels != "" && e.Labels != LabelsAtOnce && e.Labels != LabelsPerBatch:
		return fmt.Errorf("--labels %s: want %s or %s", e.Labels, LabelsAtOnce, LabelsPerBatch)
	case e.Labels != "" && (e.Mode != "prequential" || e.Arrival.Delay > 0 || len(e.Queries.Strategies) > 0):
		return fmt.Errorf("--labels %s is for streams whose labels are neither late nor requested", e.Labels)
	}
	return nil
}

// hold returns the number of rows after which their labels come together; 0: each
// comes before the next row. A size of minibatches that is given as an option is that
// of the labels as well: so tables compare learners that learn after every N rows.
func (e *Evaluation) hold(cfg *online.Config) int {
	switch {
	case e.Arrival.Delay > 0:
		return 0
	case e.Labels == LabelsPerBatch:
		return cmp.Or(e.Batch, cfg.Batch.MaxSize)
	case e.Labels == LabelsAtOnce:
		return 0
	}
	return e.Batch
}

// slow reports whether every label is learnt alone, as by a daemon whose labels come more
// slowly than batch.max_wait closes a minibatch.
func (e *Evaluation) slow(cfg *online.Config) bool {
	return cfg.Batch.MaxWait > 0 && e.Batch == 0 && e.hold(cfg) == 0
}

// closing ends a minibatch.
var closing = online.Event{Kind: online.Boundary}

// protocol describes when the labels came, for a report.
func (e *Evaluation) protocol(cfg *online.Config, query *active.Config) string {
	switch n := e.hold(cfg); {
	case query.Enabled():
		return "on request"
	case e.Arrival.Delay > 0:
		return fmt.Sprintf("%d rows late", e.Arrival.Delay)
	case n > 0:
		return fmt.Sprintf("after every %d rows", n)
	}
	return "before the next row"
}
