package report

import (
	"math"

	"edge/online/score"
)

// CurvePoint is the mean over the first N samples. The page also draws the scores
// of the latest samples, which --json leaves out.
type CurvePoint struct {
	N     uint64  `json:"n"`
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"`

	Window   PointScores `json:"-"` // of the latest samples, 500 at most
	Coverage score.Real  `json:"-"` // of the prediction sets so far; NaN without sets
}

// PointScores are the scores of the latest samples at a point of a curve.
type PointScores struct {
	N        uint64
	Error    float64
	NLL      float64
	Coverage score.Real // of the prediction sets; NaN without sets
}

// pointOf returns the point of a curve that scores make.
func pointOf(s *score.Scores) CurvePoint {
	w := &s.Window
	return CurvePoint{
		N: s.N, Error: s.Error, NLL: s.NLL, Coverage: coverageOf(s.Sets),
		Window: PointScores{N: w.N, Error: w.Error, NLL: w.NLL, Coverage: coverageOf(w.Sets)},
	}
}

// coverageOf returns the covered fraction, NaN without sets.
func coverageOf(sets *score.Coverage) score.Real {
	if sets == nil {
		return score.Real(math.NaN())
	}
	return sets.Covered
}

// Curve collects the scores over a stream in bounded memory: when it is full,
// every second point is dropped and the distance between points doubles. The zero
// value is ready.
type Curve struct {
	points []CurvePoint
	step   uint64
}

const (
	curvePoints = 200
	curveStep   = 10
)

// Due reports whether the scores after n samples belong to the curve.
func (c *Curve) Due(n uint64) bool {
	var last uint64
	if len(c.points) > 0 {
		last = c.points[len(c.points)-1].N
	}
	return n >= last+max(c.step, curveStep)
}

// Add appends a point for which Due was true.
func (c *Curve) Add(s score.Scores) {
	c.points = append(c.points, pointOf(&s))
	if len(c.points) == curvePoints {
		for i := range curvePoints / 2 {
			c.points[i] = c.points[2*i+1]
		}
		c.points = c.points[:curvePoints/2]
		c.step = 2 * max(c.step, curveStep)
	}
}

// Ending returns the points, the last of which is s.
func (c Curve) Ending(s score.Scores) []CurvePoint {
	points := append([]CurvePoint{}, c.points...)
	if n := len(points); s.N > 0 && (n == 0 || points[n-1].N < s.N) {
		points = append(points, pointOf(&s))
	}
	return points
}
