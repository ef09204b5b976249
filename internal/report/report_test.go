package report

import (
	"testing"

	"edge/online/score"
)

func TestCurveIsBounded(t *testing.T) {
	var c Curve
	var s score.Scores
	for s.N = 1; s.N <= 100000; s.N++ {
		if c.Due(s.N) {
			c.Add(s)
		}
	}
	s.N = 100001
	points := c.Ending(s)
	if len(points) < curvePoints/2 || len(points) > curvePoints || points[len(points)-1].N != s.N {
		t.Fatalf("%d points, the last at %d", len(points), points[len(points)-1].N)
	}
	for i := 1; i < len(points)-1; i++ {
		if step, first := points[i].N-points[i-1].N, points[1].N-points[0].N; step != first {
			t.Fatalf("points %d and %d are %d apart, the first two %d", i-1, i, step, first)
		}
	}
}
