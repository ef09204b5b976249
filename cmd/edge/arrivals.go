package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"edge/model"
	"edge/online"
	"edge/stream"
)

// arrivals is a stream whose labels come late or not at all. Every row is
// answered when it arrives and judged by that answer, as far as the file knows
// its label; the learner is told Delay rows later, of a Fraction of them.
type arrivals struct {
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
	judge   online.Judge
	class   map[string]int
	names   []string
}

// tardy is a row that waits for its label.
type tardy struct {
	due     int // the row after which the label comes
	version uint64
	event   online.Event
}

// plain reports whether labels come with their rows, all of them, and nothing is missing.
func (a *arrivals) plain() bool { return a.Delay == 0 && a.Fraction == 1 && a.Missing == 0 }

// check reports what is out of range.
func (a *arrivals) check() error {
	switch {
	case a.Delay < 0 || !(a.Fraction >= 0 && a.Fraction <= 1) || !(a.Missing >= 0 && a.Missing < 1):
		return errors.New("--delay, --label-fraction and --missing: want rows, 0 to 1, and 0 to below 1")
	case !slices.Contains([]string{stream.OnMissingReject, stream.OnMissingImpute, stream.OnMissingMarginalise}, a.OnMissing):
		return fmt.Errorf("--on-missing %s: want reject, impute or marginalise", a.OnMissing)
	}
	return nil
}

// lose makes features of a row missing, and does about all that are missing what
// it should; false if the row is refused. One feature stays, drawn like the others.
func (a *arrivals) lose(x []float64) bool {
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
		if a.OnMissing == stream.OnMissingImpute && a.post.Version() > 0 {
			x[j] = a.post.Scale.Mu[j]
		}
	}
	return lost == 0 || lost < len(x) && a.OnMissing != stream.OnMissingReject
}

// run plays rows to learner and reports how its answers were.
func (a *arrivals) run(ctx context.Context, learner *online.Learner, rows Rows, name string, progress func(int)) (*Report, error) {
	a.learner, a.post, a.rng, a.class = learner, learner.Posterior(), rand.New(rand.NewPCG(a.Seed, 0)), map[string]int{}
	var (
		row   Row
		curve Curve
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
			curve.Add(a.judge.Scores(a.names))
		}
	}
	r, err := newReport(name, learner, curve, taken)
	if err == nil {
		r.judged(a.judge.Scores(a.names), curve)
	}
	return r, err
}

// row answers one row, and teaches the labels that come with it.
func (a *arrivals) row(n int, row *Row) error {
	told := a.rng.Float64() < a.Fraction && row.Label != ""
	if !a.lose(row.X) {
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
	if row.Label != "" {
		a.judge.Add(a.inOrder(probs), a.classOf(row.Label))
	}
	if told {
		ev := online.Event{Kind: online.Observe, X: append([]float64(nil), row.X...), Label: row.Label}
		if a.Delay > 0 {
			doubt := a.learner.Doubt()
			ev.Probs, ev.Ahead, ev.Last, ev.Epoch, ev.Said = probs, ahead, max(last, 0), a.post.Epoch, doubt.Say(probs, novelty)
		}
		a.waiting = append(a.waiting, tardy{n + a.Delay, a.post.Version(), ev})
	}
	for len(a.waiting) > 0 && a.waiting[0].due <= n {
		t := &a.waiting[0]
		a.lag.Observe(a.learner.Posterior().Version()+uint64(a.learner.Pending())+1, t.version)
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

// classOf returns the index that a label has among those that were seen.
func (a *arrivals) classOf(label string) int {
	k, known := a.class[label]
	if !known {
		k = len(a.names)
		a.class[label] = k
		a.names = append(a.names, label)
	}
	return k
}

// inOrder returns a prediction over the labels in the order of their coming.
func (a *arrivals) inOrder(probs []float64) []float64 {
	now := make([]float64, len(a.names))
	for i, name := range a.post.Classes() {
		k := a.classOf(name)
		for k >= len(now) {
			now = append(now, 0)
		}
		now[k] = probs[i]
	}
	return now
}
