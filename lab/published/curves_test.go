package published

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/compare"
	"edge/lab/labtest"
	"edge/model"
)

// constant is a classifier whose score is its number of updates.
type constant int

func (constant) Predict([]float64) (*mat.Dense, error) { return nil, nil }

// A training of 1 s an update is scored at the first update after each moment, and the 5 s of
// a scoring are not counted.
func TestRecorder(t *testing.T) {
	var now time.Duration
	fit := func(updates int) lab.Method {
		return func(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
			for i := range updates {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				now += time.Second
				p.Watch(constant(i + 1))
			}
			return constant(-1), nil
		}
	}
	score := func(c lab.Classifier) ([]float64, error) {
		now += 5 * time.Second
		return []float64{float64(c.(constant))}, nil
	}
	r := Recorder{Moments: []float64{0.1, 0.5, 2.5, 4, 7}, Score: score, clock: func() time.Duration { return now }}
	for _, c := range []struct {
		updates int
		want    []Point
	}{
		{100, []Point{{1, 1, []float64{1}}, {1, 1, []float64{1}}, {3, 3, []float64{3}}, {4, 4, []float64{4}}, {7, 7, []float64{7}}}},
		{5, []Point{{1, 1, []float64{1}}, {1, 1, []float64{1}}, {3, 3, []float64{3}}, {4, 4, []float64{4}}, {5, 5, []float64{-1}}}},
	} {
		points, err := r.Run(t.Context(), fit(c.updates), lab.Problem{})
		if err != nil || !slices.EqualFunc(points, c.want, same) {
			t.Errorf("%d updates: %v, %v, want %v", c.updates, points, err, c.want)
		}
	}
	r.Moments = nil
	if points, err := r.Run(t.Context(), fit(3), lab.Problem{}); err != nil || len(points) != 3 || points[2].Seconds != 3 || points[2].Scores[0] != 3 {
		t.Errorf("every update: %v, %v", points, err)
	}
	bad := errors.New("no score")
	r.Score = func(lab.Classifier) ([]float64, error) { return nil, bad }
	if _, err := r.Run(t.Context(), fit(3), lab.Problem{}); !errors.Is(err, bad) {
		t.Errorf("error %v of a score, want %v", err, bad)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Run(ended, fit(3), lab.Problem{}); err == nil {
		t.Error("no error for an interruption")
	}
}

func same(a, b Point) bool {
	return a.Updates == b.Updates && math.Abs(a.Seconds-b.Seconds) < 1e-9 && slices.Equal(a.Scores, b.Scores)
}

func TestMoments(t *testing.T) {
	m := spacedMoments(4, 100)
	for i, want := range []float64{0.1, 1, 10, 100} {
		if math.Abs(m[i]-want) > 1e-9 {
			t.Errorf("moments %v", m)
		}
	}
}

// The log evidence of each schedule rises.
func TestEvidence(t *testing.T) {
	cfg := compare.Config{Inducing: 0.2, Train: 0.9, Seed: 1, Updates: 8}
	curves, err := Evidence(t.Context(), labtest.Waveform(60, 3), cfg, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if len(curves) != 3 {
		t.Fatalf("%d curves", len(curves))
	}
	for _, c := range curves {
		if len(c.Points) != 8 || c.Inducing != 11 {
			t.Fatalf("%s: %d points, M = %d", c.Method, len(c.Points), c.Inducing)
		}
		if first, last := c.Points[1].Scores[0], c.Points[7].Scores[0]; !(last > first) {
			t.Errorf("%s: log evidence %g, then %g", c.Method, first, last)
		}
	}
	var out bytes.Buffer
	if err := PrintCurves(&out, curves, 4); err != nil || strings.Count(out.String(), "\n") != 1+3*4 {
		t.Errorf("%v\n%s", err, &out)
	}
}

// finite reports points with scores that are not numbers, and the number of them.
func finite(t *testing.T, curves []Curve, points int) {
	t.Helper()
	for _, c := range curves {
		if len(c.Points) != points || c.Failure != "" {
			t.Errorf("%s: %d points, want %d: %s", c.Method, len(c.Points), points, c.Failure)
		}
		for _, p := range c.Points {
			for _, v := range p.Scores {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %+v", c.Method, p)
				}
			}
		}
	}
}

func TestBatches(t *testing.T) {
	c := DefaultBatches()
	c.Inducing, c.Splits, c.Seconds, c.Points, c.Train = []int{2, 5}, 2, 0.02, 3, 0.5
	done := 0
	curves, err := Batches(t.Context(), labtest.Waveform(60, 3), c, func(string) { done++ })
	if err != nil {
		t.Fatal(err)
	}
	if len(curves) != 8 || done != 16 || curves[0].Splits != 2 {
		t.Errorf("%d curves of %d trainings", len(curves), done)
	}
	finite(t, curves, 3)
}

func TestMinibatches(t *testing.T) {
	c := DefaultMinibatches()
	c.Inducing, c.Seconds, c.Points, c.Batch, c.Shared = []int{5}, 0.03, 3, 20, true
	d := labtest.Waveform(90, 3)
	learn, judge := d.Rows(span(0, 60)), d.Rows(span(60, 90))
	compare.Standardise(learn, judge)
	curves, err := Minibatches(t.Context(), learn, judge, c, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(curves) != 4 || !strings.HasPrefix(curves[3].Method, "linear, rate 0.0") {
		t.Errorf("%+v", curves)
	}
	finite(t, curves, 3)
	c.Methods = []string{"gfitc"}
	if _, err := Minibatches(t.Context(), learn, judge, c, func(string) {}); err == nil || !strings.Contains(err.Error(), "gfitc") {
		t.Errorf("a method without minibatches: %v", err)
	}

	// The log is concave: the mean of the log is below the log of the mean.
	both, err := Objectives(t.Context(), learn, judge, c)
	if err != nil {
		t.Fatal(err)
	}
	finite(t, both, 3)
	for _, p := range both[0].Points {
		if !(p.Scores[0] < p.Scores[1] && p.Scores[1] < 0) {
			t.Errorf("E[log p], log E[p]: %v", p.Scores)
		}
	}
}

func span(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func TestCommonScale(t *testing.T) {
	learn := &lab.Data{D: 2, C: 2, X: []float64{0, 5, 2, 5}, Y: []int{0, 1}}
	judge := &lab.Data{D: 2, C: 2, X: []float64{3, 6}, Y: []int{0}}
	CommonScale(learn, judge)
	sd := math.Sqrt(0.5) // of variances 1 and 0
	for i, want := range []float64{-1 / sd, 0, 1 / sd, 0} {
		if math.Abs(learn.X[i]-want) > 1e-12 {
			t.Errorf("rows learnt %v", learn.X)
		}
	}
	if math.Abs(judge.X[0]-2/sd) > 1e-12 || math.Abs(judge.X[1]-1/sd) > 1e-12 {
		t.Errorf("rows that judge %v", judge.X)
	}
}

// Inducing points move, and more of them predict better.
func TestDraw(t *testing.T) {
	c := DefaultPlane()
	c.Methods, c.Inducing, c.Rows, c.Updates, c.Grid = append(c.Methods, "vi-stochastic"), []int{1, 12}, 80, 6, 7
	p, err := Draw(t.Context(), c, func(*Panel) {})
	if err != nil {
		t.Fatal(err)
	}
	if p.Learn.N() != 80 || p.Judge.N() != 80 || len(p.Panels) != 10 || p.BestError > 0.2 {
		t.Fatalf("%d panels, the best error %g", len(p.Panels), p.BestError)
	}
	for i, panel := range p.Panels {
		if panel.Failure != "" || len(panel.Z) != 2*panel.Inducing || len(panel.Regions) != 3 || !(panel.NLL > 0 && panel.NLL < 1.5) {
			t.Errorf("%+v", panel)
		}
		if i%2 == 1 && !(panel.Error < p.Panels[i-1].Error) {
			t.Errorf("%s: error %g with 12 inducing points, %g with one", panel.Method, panel.Error, p.Panels[i-1].Error)
		}
		if start := p.Learn.Row(rand.New(rand.NewPCG(c.Seed, 1)).Perm(c.Rows)[0]); slices.Equal(panel.Z[:2], start) {
			t.Errorf("%s: the first inducing point has not moved", panel.Method)
		}
	}
	// In each point of the grid at most one class is the largest, and one nearly everywhere.
	for i := range c.Grid {
		for j := range c.Grid {
			above := 0
			for _, r := range p.Truth {
				if r.At(i, j) > 0 {
					above++
				}
			}
			if above != 1 {
				t.Errorf("%d classes are the largest at %d, %d", above, i, j)
			}
		}
	}
	var out bytes.Buffer
	if err := PrintPanels(&out, p); err != nil || strings.Count(out.String(), "\n") != 12 {
		t.Errorf("%v\n%s", err, &out)
	}
}

// Each method with inducing points keeps the parameters that it is told to.
func TestParametersAreHeld(t *testing.T) {
	d := labtest.Waveform(60, 3)
	methods, err := compare.Named([]string{"sep", "sep-pairs", "sep-robust", "ep", "ep-outer", "rep", "gfitc", "sep-stochastic", "ep-stochastic", "vi", "vi-stochastic", "vi-natural"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := compare.Config{Inducing: 0.1, Updates: 4, Shared: true}
	for _, m := range methods {
		p := cfg.Problem(d, 0)
		p.Hold = func(grad []float64) { clear(grad[p.Start.M*p.Start.D:]) }
		c, err := m.Fit(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		got := c.(interface{ Parameters() model.Params }).Parameters()
		if !slices.Equal(got.Theta[p.Start.M*p.Start.D:], p.Start.Theta[p.Start.M*p.Start.D:]) {
			t.Errorf("%s: the kernel has moved", m.Name)
		}
		if slices.Equal(got.Z(), p.Start.Z()) {
			t.Errorf("%s: the inducing points have not moved", m.Name)
		}
	}
}

// The truth on the grid belongs to the latents that drew the labels.
func TestPlaneIsOfTheProcess(t *testing.T) {
	p, err := NewPlane(300, 9, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, y := range p.Learn.Y { // by the cell whose centre is the nearest, where the truth is clear
		x := p.Learn.Row(i)
		a := int(math.Round((x[0]/planeSide + 1) / 2 * 8))
		b := int(math.Round((x[1]/planeSide + 1) / 2 * 8))
		for k, r := range p.Truth {
			if k != y && r.At(a, b) > 1.5 {
				t.Errorf("row %d has label %d, and the truth beside it is %d by %g", i, y, k, r.At(a, b))
			}
		}
	}
}
