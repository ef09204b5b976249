package eval

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/model"
	"edge/online"
	"edge/online/conformal"
	"edge/online/score"
	"edge/stream/codec"
)

// Delayed is a stream whose labels come late or not at all. Every row is
// answered when it arrives and judged by that answer, as far as the file knows
// its label; the learner is told Delay rows later, of a Fraction of them.
type Delayed struct {
	Delay     int
	Fraction  float64
	Missing   float64 // probability that a feature of a row is missing
	OnMissing string  // as a stream has it; rows that are rejected are not judged
	Seed      uint64  // of the choices

	learner *online.Learner
	post    *model.Posterior
	ws      model.Workspace
	rng     *rand.Rand
	lag     online.Lag
	waiting []tardy // oldest first
	judge   score.Judge
	aim     conformal.CoverageController
	set     []int // scratch
	book    report.ClassBook

	rejected int // rows, by OnMissing
}

// tardy is a row that waits for its label.
type tardy struct {
	due     int    // the row after which the label comes
	version uint64 // of the model that answered
	known   uint64 // labels by then
	event   online.Event
	sets    bool // a prediction set was published,
	holds   bool // with the label in it,
	size    int  // of so many classes
}

// Plain reports whether labels come with their rows, all of them, and nothing is missing.
func (a *Delayed) Plain() bool { return a.Delay == 0 && a.Fraction == 1 && a.Missing == 0 }

// anew is the same for another stream, of which nothing has come yet.
func (a *Delayed) anew() *Delayed {
	return &Delayed{Delay: a.Delay, Fraction: a.Fraction, Missing: a.Missing, OnMissing: a.OnMissing, Seed: a.Seed}
}

// check reports what is out of range.
func (a *Delayed) check() error {
	switch {
	case a.Delay < 0 || !(a.Fraction >= 0 && a.Fraction <= 1) || !(a.Missing >= 0 && a.Missing < 1):
		return errors.New("--delay, --label-fraction and --missing: want rows, 0 to 1, and 0 to below 1")
	}
	return checkOnMissing(a.OnMissing)
}

// lose makes features of a row missing, and does about all that are missing what
// it should; false if the row is refused. One feature stays, drawn like the others.
func (a *Delayed) lose(x []float64) bool {
	if a.Missing > 0 {
		stays := a.rng.IntN(len(x))
		for j := range x {
			if a.rng.Float64() < a.Missing && j != stays {
				x[j] = math.NaN()
			}
		}
	}
	lost := 0
	for j, v := range x {
		if !math.IsNaN(v) {
			continue
		}
		lost++
		if a.OnMissing == codec.OnMissingImpute && a.post.Version() > 0 {
			x[j] = a.post.Scale.Mu[j]
		}
	}
	return lost == 0 || lost < len(x) && a.OnMissing != codec.OnMissingReject
}

// run plays rows to learner and reports how its answers were.
func (a *Delayed) run(ctx context.Context, learner *online.Learner, rows dataset.Rows, name string, progress func(int)) (*report.Report, error) {
	a.learner, a.post, a.rng = learner, learner.Posterior(), rand.New(rand.NewPCG(a.Seed, 0))
	var (
		row   dataset.Row
		curve report.Curve
		taken time.Duration
	)
	for n := 0; ; n++ {
		if err := rows.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errors.New("eval: interrupted")
		}
		start := time.Now()
		if err := a.row(n, &row); err != nil {
			return nil, err
		}
		taken += time.Since(start)
		progress(1)
		if curve.Due(uint64(n + 1)) {
			curve.Add(a.judge.Scores(a.book.Names))
		}
	}
	r, err := report.New(name, learner, curve, taken)
	if err == nil {
		r.Judged(a.judge.Scores(a.book.Names), curve)
	}
	return r, err
}

// row answers one row, and teaches the labels that come with it.
func (a *Delayed) row(n int, row *dataset.Row) error {
	told := a.rng.Float64() < a.Fraction && row.Label != ""
	if !a.lose(row.X) {
		a.rejected++
		return nil
	}
	ahead := 0
	if a.Delay == 0 && told {
		ahead = a.learner.Pending() + 1
	} else if a.Delay > 0 {
		ahead = a.lag.Ahead()
	}
	last := a.post.Pool.Last
	probs, novelty, err := a.post.PredictAfterTo(nil, row.X, last, ahead, &a.ws)
	if err != nil {
		return err
	}
	doubt := a.aim.Threshold(a.learner.Uncertainty())
	said := doubt.Meta(probs, novelty)
	a.set = doubt.AppendSet(a.set[:0], probs, row.X)
	holds := said.Sets && slices.ContainsFunc(a.set, func(k int) bool { return a.post.Classes()[k] == row.Label })
	if row.Label != "" {
		a.judge.AddPublished(a.book.InOrder(a.post.Classes(), probs), a.book.ClassOf(row.Label), score.Decision{
			Ruled: said.Ruled, Abstained: said.Abstained, Sets: said.Sets, Size: len(a.set), Holds: holds,
		})
	}
	if told {
		ev := online.Event{Kind: online.Observe, X: append([]float64(nil), row.X...), Label: row.Label}
		if a.Delay > 0 {
			ev.Probs, ev.Ahead, ev.Last, ev.Epoch, ev.Meta = probs, ahead, max(last, 0), a.post.Epoch, said
		}
		a.waiting = append(a.waiting, tardy{n + a.Delay, a.post.Version(), a.post.Version() + uint64(a.learner.Pending()), ev, said.Sets, holds, len(a.set)})
	}
	for len(a.waiting) > 0 && a.waiting[0].due <= n {
		t := &a.waiting[0]
		place := a.post.Version() + uint64(a.learner.Pending()) + 1
		a.lag.Observe(place, t.version)
		if t.sets {
			a.aim.Judge(t.holds, t.size, t.known, place)
		}
		out := a.learner.Add(&t.event)
		a.waiting = a.waiting[1:]
		if out.Refused != nil && !errors.Is(out.Refused, online.ErrClass) && !out.Closed {
			return out.Refused
		}
		if out.Closed {
			a.post = a.learner.Posterior()
		}
	}
	return nil
}
