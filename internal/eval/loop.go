package eval

import (
	"context"
	"errors"
	"io"
	"time"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/internal/timing"
	"edge/online"
	"edge/online/score"
)

// Policy is one way to evaluate a model on rows: when a label is learnt, and which
// prediction is judged by it.
type Policy interface {
	// Row predicts, judges and learns one row. The row's memory is valid until Row
	// returns.
	Row(row *dataset.Row) error
	// Position counts the rows on the axis of the curve.
	Position() uint64
	// Scores returns the scores so far.
	Scores() score.Scores
}

// Course describes the way of a policy through its rows.
type Course struct {
	Curve report.Curve
	Taken time.Duration // in Policy.Row
}

// ErrInterrupted occurs when the context ends before the rows do.
var ErrInterrupted = errors.New("interrupted")

// await returns the error of f, or ErrInterrupted once the context ends.
func await(ctx context.Context, f func() error) error {
	return interrupted(ctx, timing.Await(ctx, f))
}

// interrupted returns ErrInterrupted in place of the error of a context.
func interrupted(ctx context.Context, err error) error {
	if err != nil && err == ctx.Err() {
		return ErrInterrupted
	}
	return err
}

// summarize is dataset.Summarize until the context ends.
func summarize(ctx context.Context, path string, f dataset.Format) (dataset.Summary, error) {
	s, err := dataset.Summarize(ctx, path, f)
	return s, interrupted(ctx, err)
}

// Run passes the rows to the policy, one after the other, until they end.
// progress is called with 1 after each row; nil: not called.
func Run(ctx context.Context, rows dataset.Rows, p Policy, progress func(int)) (c Course, err error) {
	var row dataset.Row
	for {
		if err := rows.Next(&row); errors.Is(err, io.EOF) {
			return c, nil
		} else if err != nil {
			return c, err
		}
		if ctx.Err() != nil {
			return c, ErrInterrupted
		}
		start := time.Now()
		if err := p.Row(&row); err != nil {
			return c, err
		}
		c.Taken += time.Since(start)
		if progress != nil {
			progress(1)
		}
		if c.Curve.Due(p.Position()) {
			c.Curve.Add(p.Scores())
		}
	}
}

// streamPolicy is a policy whose scores make a report.
type streamPolicy interface {
	Policy
	// finish follows the last row: labels that were held back for others are learnt.
	finish()
	// complete adds the results of the policy to the report of the learner.
	complete(r *report.Report, curve report.Curve)
}

// runStream runs a policy and reports on the learner that it used.
func runStream(ctx context.Context, name string, learner *online.Learner, rows dataset.Rows, p streamPolicy, progress func(int)) (*report.Report, error) {
	c, err := Run(ctx, rows, p, progress)
	if err != nil {
		return nil, err
	}
	p.finish()
	r, err := report.New(name, learner, c.Curve, c.Taken)
	if err != nil {
		return nil, err
	}
	p.complete(r, c.Curve)
	return r, nil
}
