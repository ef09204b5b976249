package report

import (
	"bytes"
	"math"
	"strings"
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

// Where all predictions abstain, the table has no error of those that are left.
func TestPrintWithoutAnswers(t *testing.T) {
	for kept, want := range map[float64]string{0: " 0.000 ", 0.5: " 0.500 (error 0.2500) "} {
		a := &score.Abstentions{N: 4, Kept: score.Real(kept), Error: score.Real(kept / 2)}
		if kept == 0 {
			a.Error = score.Real(math.NaN())
		}
		var out bytes.Buffer
		if err := Print(&out, []*Report{{Dataset: "x", Figures: Figures{Abstained: a}}}); err != nil || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "NaN") {
			t.Errorf("%v: the table lacks %q:\n%s", err, want, &out)
		}
	}
}
