package published

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/compare"
	"edge/lab/ep"
	"edge/lab/linear"
	"edge/lab/tied"
	"edge/lab/vi"
)

// CourseConfig are the conditions of the figures over training time.
type CourseConfig struct {
	Methods  []string
	Inducing []int   // numbers M
	Splits   int     // of figure 4
	Train    float64 // fraction of the rows learnt, of figure 4
	Seed     uint64
	Seconds  float64 // of processor time, of one training
	Points   int     // moments at which it is scored
	Batch    int     // rows of a minibatch, of figures 5 and 7
	Rate     float64 // of Adam, of figures 5 and 7
	Shared   bool    // one kernel for all classes
}

const mostPoints = 10_000 // moments of one training

// Validate reports settings out of range.
func (c *CourseConfig) Validate() error {
	for _, m := range c.Inducing {
		if m < 2 {
			return errors.New("--inducing: want numbers of 2 or more")
		}
	}
	switch {
	case len(c.Methods) == 0 || len(c.Inducing) == 0:
		return errors.New("--methods, --inducing: want one or more")
	case c.Splits < 1:
		return errors.New("--repeats: want 1 or more")
	case !(c.Train > 0 && c.Train < 1):
		return errors.New("--train-fraction: want a number between 0 and 1")
	case !(c.Seconds > 0 && c.Seconds <= math.MaxFloat64):
		return errors.New("--seconds: want a time above 0")
	case c.Points < 2 || c.Points > mostPoints:
		return fmt.Errorf("--points: want 2 to %d", mostPoints)
	case c.Batch < 1:
		return errors.New("--batch: want 1 or more")
	case !(c.Rate > 0):
		return errors.New("--rate: want a number above 0")
	}
	return nil
}

// DefaultBatches are the conditions of figure 4, with less time and fewer splits.
func DefaultBatches() CourseConfig {
	return CourseConfig{
		Methods: []string{"gfitc", "sep-pairs", "ep", "vi"}, Inducing: []int{4, 20, 100}, Splits: 1, Train: 0.2,
		Seed: 1, Seconds: 60, Points: 16, Batch: 200, Rate: 0.001,
	}
}

// DefaultMinibatches are the conditions of figure 5, with less time.
func DefaultMinibatches() CourseConfig {
	return CourseConfig{
		Methods: []string{"ep", "sep", "vi", "linear"}, Inducing: []int{200}, Splits: 1, Train: 0.9,
		Seed: 1, Seconds: 120, Points: 16, Batch: 200, Rate: 0.001,
	}
}

// endless is a number of updates that the time ends before.
const endless = 1 << 30

var errorAndNLL = []string{"error", "nll"}

// judgeBy scores by the rows of d.
func judgeBy(d *lab.Data) func(lab.Classifier) ([]float64, error) {
	return func(now lab.Classifier) ([]float64, error) {
		wrong, nll, err := compare.Judge(now, d)
		return []float64{wrong, nll}, err
	}
}

// Batches returns error and nll of full batches over training time, the mean over splits, for
// each method and number of inducing points. Splits in which a method fails are left out.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), figure 4.
func Batches(ctx context.Context, d *lab.Data, c CourseConfig, done func(method string)) ([]Curve, error) {
	methods, err := compare.Named(c.Methods)
	if err != nil {
		return nil, err
	}
	var curves []Curve
	for _, m := range c.Inducing {
		for i := range methods {
			curve := Curve{Method: methods[i].Name, Inducing: m, Scores: errorAndNLL}
			var splits [][]Point
			for split := range c.Splits {
				points, err := c.batch(ctx, d, m, &methods[i], split)
				if ctx.Err() != nil {
					return nil, err
				}
				if err != nil {
					curve.Failure = err.Error()
				} else {
					splits = append(splits, points)
				}
				done(curve.Method)
			}
			if curve.Splits = len(splits); len(splits) > 0 {
				curve.Points = meanCurve(splits)
			}
			curves = append(curves, curve)
		}
	}
	return curves, nil
}

func (c *CourseConfig) batch(ctx context.Context, d *lab.Data, m int, method *compare.Method, split int) ([]Point, error) {
	cfg := compare.Config{Train: c.Train, Seed: c.Seed, Updates: endless, Shared: c.Shared}
	s, err := compare.NewSplit(d, cfg, split)
	if err != nil {
		return nil, err
	}
	cfg.Inducing = float64(m) / float64(s.Learn.N())
	r := Recorder{Moments: spacedMoments(c.Points, c.Seconds), Score: judgeBy(s.Judge)}
	return r.Run(ctx, method.Fit, *cfg.Problem(s.Learn, split))
}

// linearRates are the learning rates of soft-max regression, of which the best one at the end
// is taken.
var linearRates = []float64{0.001, 0.003, 0.01, 0.03}

// stochastic returns the method of a name with minibatches; linear is soft-max regression at
// a rate of its own.
func (c *CourseConfig) stochastic(name string) (lab.Method, error) {
	switch name {
	case "ep":
		return ep.Stochastic(c.Batch, c.Rate), nil
	case "sep":
		return tied.Stochastic(tied.Total, c.Batch, c.Rate), nil
	case "vi":
		return vi.Stochastic(c.Batch, c.Rate), nil
	}
	return nil, fmt.Errorf("--methods: %q has no minibatches here: want ep, sep, vi or linear", name)
}

// Minibatches returns error and nll of minibatches over training time, for each method and
// number of inducing points. learn and judge are standardised.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), figure 5.
func Minibatches(ctx context.Context, learn, judge *lab.Data, c CourseConfig, done func(method string)) ([]Curve, error) {
	var curves []Curve
	for i, m := range c.Inducing {
		for _, name := range c.Methods {
			if name == "linear" && i > 0 {
				continue // it has no inducing points
			}
			curve, err := c.minibatch(ctx, learn, m, name, errorAndNLL, judgeBy(judge))
			if err != nil {
				return nil, err
			}
			curves = append(curves, *curve)
			done(name)
		}
	}
	return curves, nil
}

// Objectives returns the two means over the judging rows that variational inference sets
// apart, over training time: of E[log p], which its bound sees, and of log E[p], by which
// predictions are scored.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), figure 7.
func Objectives(ctx context.Context, learn, judge *lab.Data, c CourseConfig) ([]Curve, error) {
	score := func(now lab.Classifier) ([]float64, error) {
		probs, err := now.Predict(judge.X)
		if err != nil {
			return nil, err
		}
		mean, log := objectives(now.(*vi.VI), probs, judge.Y)
		return []float64{mean, log}, nil
	}
	var curves []Curve
	for _, m := range c.Inducing {
		curve, err := c.minibatch(ctx, learn, m, "vi", []string{"expected_log", "log_expected"}, score)
		if err != nil {
			return nil, err
		}
		curves = append(curves, *curve)
	}
	return curves, nil
}

// objectives are the means of E[log p] and log E[p], from the probabilities E[p] of labels as
// they are reported.
func objectives(v *vi.VI, probs *mat.Dense, y []int) (expected, log float64) {
	n, share := float64(len(y)), v.Eps/float64(v.C)
	for i, label := range y {
		p := probs.At(i, label)
		log += math.Log(p) / n
		expected += v.ExpectedLog((p-share)/(1-v.Eps)) / n
	}
	return expected, log
}

func (c *CourseConfig) minibatch(ctx context.Context, learn *lab.Data, m int, name string, scores []string, score func(lab.Classifier) ([]float64, error)) (*Curve, error) {
	cfg := compare.Config{Inducing: float64(min(m, learn.N())) / float64(learn.N()), Seed: c.Seed, Updates: endless, Shared: c.Shared}
	r := Recorder{Moments: spacedMoments(c.Points, c.Seconds), Score: score}
	curve := &Curve{Method: name, Inducing: m, Splits: 1, Scores: scores}
	if name != "linear" {
		fit, err := c.stochastic(name)
		if err != nil {
			return nil, err
		}
		curve.Points, err = r.Run(ctx, fit, *cfg.Problem(learn, 0))
		return curve, err
	}
	curve.Inducing = 0
	for _, rate := range linearRates {
		points, err := r.Run(ctx, linear.Train(c.Batch, rate), *cfg.Problem(learn, 0))
		if err != nil {
			return nil, err
		}
		if at := len(points) - 1; curve.Points == nil || points[at].Scores[1] < curve.Points[at].Scores[1] {
			curve.Method, curve.Points = fmt.Sprintf("linear, rate %g", rate), points
		}
	}
	return curve, nil
}

// CommonScale centres each feature and divides all by one deviation, for features in one unit,
// such as pixels.
func CommonScale(learn, judge *lab.Data) {
	n := float64(learn.N())
	var square float64
	for j := range learn.D {
		var mean float64
		for i := range learn.Y {
			mean += learn.Row(i)[j] / n
		}
		for _, d := range []*lab.Data{learn, judge} {
			for i := range d.Y {
				d.Row(i)[j] -= mean
			}
		}
		for i := range learn.Y {
			square += learn.Row(i)[j] * learn.Row(i)[j] / n
		}
	}
	if square == 0 {
		return
	}
	sd := math.Sqrt(square / float64(learn.D))
	for _, d := range []*lab.Data{learn, judge} {
		for i := range d.X {
			d.X[i] /= sd
		}
	}
}
