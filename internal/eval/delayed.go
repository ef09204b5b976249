package eval

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"edge/internal/dataset"
	"edge/internal/report"
	"edge/model"
	"edge/online"
	"edge/online/conformal"
	"edge/online/score"
	"edge/stream/codec"
)

// Arrival describes a stream whose labels come late or never and whose features
// may be missing.
type Arrival struct {
	Delay     int     // rows from a row to its label
	Fraction  float64 // of the labels that come
	Missing   float64 // probability that a feature of a row is missing
	OnMissing string  // on_missing of the stream; rejected rows are not judged
	Seed      uint64  // of the random choices
}

// Plain reports whether every label comes with its row and no feature is removed.
func (a *Arrival) Plain() bool { return a.Delay == 0 && a.Fraction == 1 && a.Missing == 0 }

// delayed predicts every row when it arrives and judges that prediction if the
// file has the row's label; the learner receives the label Delay rows later.
type delayed struct {
	Arrival
	slow     bool // every label is a minibatch of its own
	hold     int  // rows after which their labels come together; 0: each comes Delay rows later
	learner  *online.Learner
	post     *model.Posterior
	ws       model.Workspace
	rng      *rand.Rand
	lag      online.Lag
	pending  []delayedLabel // oldest first
	judge    score.Judge
	worst    report.Worst
	aim      conformal.CoverageController
	set      []int // scratch
	classes  report.ClassBook
	rows     int
	rejected int // rows, by OnMissing
}

// delayedLabel is a row that waits for its label.
type delayedLabel struct {
	due   int    // index of the row after which the label comes
	row   int    // its number, from 1
	known uint64 // labels at that time
	event online.Event
	sets  bool // the prediction has a set,
	holds bool // which contains the label,
	size  int  // and this number of classes
}

func newDelayed(a Arrival, learner *online.Learner, slow bool, hold int) *delayed {
	return &delayed{Arrival: a, slow: slow, hold: hold, learner: learner, post: learner.Posterior(), rng: rand.New(rand.NewPCG(a.Seed, 0))}
}

// remove makes features missing and treats all missing ones as OnMissing demands;
// false if the row is rejected. One feature, drawn at random, always stays.
func (d *delayed) remove(row *dataset.Row) bool {
	x := row.X
	if d.Missing > 0 {
		stays := d.rng.IntN(len(x))
		for j := range x {
			if d.rng.Float64() < d.Missing && j != stays {
				x[j] = math.NaN()
			}
		}
	}
	lost, none := row.Lacking(), row.Empty()
	if d.OnMissing == codec.OnMissingImpute {
		impute(x, d.post)
	}
	return lost == 0 || !none && d.OnMissing != codec.OnMissingReject
}

func (d *delayed) Row(row *dataset.Row) error {
	n := d.rows
	d.rows++
	labelled := d.rng.Float64() < d.Fraction && row.Label != ""
	if !d.remove(row) {
		d.rejected++
		return nil
	}
	due, ahead := n+d.Delay, 0
	if d.hold > 0 {
		due = n - n%d.hold + d.hold - 1
	}
	switch {
	case d.Delay == 0 && labelled:
		ahead = len(d.pending) + 1
	case d.Delay > 0:
		ahead = d.lag.Ahead(uint64(n)+1, d.post.Pool.Order.Labels)
	}
	probs, novelty, err := d.post.PredictNextTo(nil, row.X, ahead, &d.ws)
	if err != nil {
		return err
	}
	uncertainty := d.aim.Threshold(d.learner.Uncertainty())
	meta := uncertainty.Meta(probs, novelty)
	meta.Last, meta.Version = d.post.Pool.Order.Last+1, d.post.Version()
	d.set = uncertainty.AppendSet(d.set[:0], probs, row.X)
	holds := meta.Sets && slices.ContainsFunc(d.set, func(k int) bool { return d.post.Classes()[k] == row.Label })
	if row.Label != "" {
		d.judge.AddPublished(d.classes.InOrder(d.post.Classes(), probs), d.classes.ClassOf(row.Label), score.Decision{
			Ruled: meta.Ruled, Abstained: meta.Abstained, Sets: meta.Sets, Size: len(d.set), Holds: holds,
			Late: true, Last: d.lastLabel(),
		})
		d.worst.Follow(d.judge.Coverage())
	}
	if labelled {
		ev := online.Event{Kind: online.Observe, X: slices.Clone(row.X), Label: row.Label}
		if due > n {
			ev.Probs, ev.Parts, ev.Epoch, ev.Meta = probs, d.ws.AppendParts(nil), d.post.Epoch, meta
		}
		d.pending = append(d.pending, delayedLabel{due, n + 1, d.post.Version() + uint64(d.learner.Pending()), ev, meta.Sets, holds, len(d.set)})
	}
	return d.learn(n)
}

// lastLabel is the class of the last label that the learner knows, in the judge's numbers,
// counted from 1; 0: none.
func (d *delayed) lastLabel() int {
	last := d.post.Pool.Order.Last
	if last < 0 {
		return 0
	}
	return d.classes.ClassOf(d.post.Classes()[last]) + 1
}

// learn passes the labels that are due after row n to the learner.
func (d *delayed) learn(n int) error {
	for len(d.pending) > 0 && d.pending[0].due <= n {
		t := d.pending[0]
		place := d.post.Version() + uint64(d.learner.Pending()) + 1
		if t.sets {
			d.aim.Judge(t.holds, t.size, t.known, place)
		}
		out := d.learner.Add(&t.event)
		d.pending = d.pending[1:]
		if out.Refused != nil && !errors.Is(out.Refused, online.ErrClass) && !out.Closed {
			return out.Refused
		}
		if d.slow {
			out.Closed = d.learner.Add(&closing).Closed || out.Closed
		}
		if out.Closed {
			d.post = d.learner.Posterior()
		} else {
			d.post = d.learner.Ordered(d.post)
		}
		d.lag.Observe(d.post.Pool.Order.Labels, uint64(t.row))
	}
	return nil
}

// finish leaves the labels that have not come: their rows are judged.
func (d *delayed) finish() {}

func (d *delayed) Position() uint64 { return uint64(d.rows) }

func (d *delayed) Scores() score.Scores { return d.judge.Scores(d.classes.Names) }

func (d *delayed) complete(r *report.Report, curve report.Curve) {
	r.Judged(d.Scores(), curve)
	r.SetsWorst = d.worst.Coverage()
}
