package published

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"edge/internal/process"
	"edge/lab"
)

// Point is the state of a training at one moment.
type Point struct {
	Seconds float64   `json:"seconds"` // of processor time, without the scoring
	Updates int       `json:"updates"`
	Scores  []float64 `json:"scores"`
}

// Curve is the course of a training.
type Curve struct {
	Method   string   `json:"method"`
	Inducing int      `json:"inducing"`
	Splits   int      `json:"splits"` // whose mean it is
	Scores   []string `json:"score_names"`
	Points   []Point  `json:"points"`
	Failure  string   `json:"failure,omitempty"` // that ended it
}

// Recorder scores a training at moments of its processor time, and ends it after the last of
// them. The time of the scoring is not counted. A moment that an update begins before and
// ends after is that of its end.
type Recorder struct {
	Moments []float64 // seconds, ascending; nil: every update is scored
	Score   func(now lab.Classifier) ([]float64, error)

	clock   func() time.Duration
	start   time.Duration
	spent   time.Duration // by scoring
	updates int
	next    int
	points  []Point
	err     error
	end     context.CancelFunc
}

// spacedMoments are n moments until the last one, each the same factor after the one before,
// the first a thousandth of the last.
func spacedMoments(n int, last float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = last * math.Pow(1000, -float64(n-1-i)/float64(max(n-1, 1)))
	}
	return out
}

// Run trains by a method until it ends or the last moment has passed, and returns a point for
// every moment: one after the end has the scores of the end. Watch and the context of p are
// the recorder's.
func (r *Recorder) Run(ctx context.Context, fit lab.Method, p lab.Problem) ([]Point, error) {
	ours, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.clock == nil {
		r.clock = clock()
	}
	r.start, r.spent, r.updates, r.next, r.points, r.err, r.end = r.clock(), 0, 0, 0, nil, nil, cancel
	p.Watch = r.watch
	c, err := fit(ours, &p)
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted")
	case r.err != nil:
		return r.points, r.err
	case r.Moments != nil && r.next == len(r.Moments):
		return r.points, nil
	case err != nil || r.Moments == nil:
		return r.points, err
	}
	last := r.seconds()
	scores, err := r.Score(c)
	for r.next < len(r.Moments) && err == nil {
		r.add(last, scores)
	}
	return r.points, err
}

// clock is the processor time, or the wall clock on a system that does not report it.
func clock() func() time.Duration {
	if process.CPUTime() > 0 {
		return process.CPUTime
	}
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

func (r *Recorder) seconds() float64 { return (r.clock() - r.start - r.spent).Seconds() }

func (r *Recorder) add(seconds float64, scores []float64) {
	r.points = append(r.points, Point{seconds, r.updates, scores})
	r.next++
}

// watch is called after each update.
func (r *Recorder) watch(now lab.Classifier) {
	every := r.Moments == nil
	if r.err != nil || !every && r.next == len(r.Moments) {
		return
	}
	r.updates++
	at := r.seconds()
	if !every && at < r.Moments[r.next] {
		return
	}
	before := r.clock()
	scores, err := r.Score(now)
	if err != nil {
		r.err = fmt.Errorf("update %d: %w", r.updates, err)
		r.end()
		return
	}
	if every {
		r.add(at, scores)
	}
	for r.next < len(r.Moments) && r.Moments[r.next] <= at {
		r.add(at, scores)
	}
	r.spent += r.clock() - before
	if !every && r.next == len(r.Moments) {
		r.end()
	}
}

// meanCurve is the mean of the points of several splits, moment by moment.
func meanCurve(splits [][]Point) []Point {
	var out []Point
	for j := range splits[0] {
		p := Point{Scores: make([]float64, len(splits[0][j].Scores))}
		n := float64(len(splits))
		for _, s := range splits {
			p.Seconds += s[j].Seconds / n
			p.Updates += s[j].Updates
			for i, v := range s[j].Scores {
				p.Scores[i] += v / n
			}
		}
		p.Updates /= len(splits)
		out = append(out, p)
	}
	return out
}
