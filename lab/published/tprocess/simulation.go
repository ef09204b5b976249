package tprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"text/tabwriter"

	"gonum.org/v1/gonum/mat"

	"edge/internal/terminal"
	"edge/lab"
	"edge/lab/studentt"
	"edge/model"
)

// Simulation are its conditions: labels of 70 points in [0, 1] from a Gaussian process of
// variance 5 and lengthscale 0.25 by the logistic link, and the same with 4 to 7 of them
// flipped.
type Simulation struct {
	Sets    int
	Updates int // evaluations of L-BFGS
	Seed    uint64
}

// StandardSimulation has the number of sets of the published figures.
func StandardSimulation() Simulation { return Simulation{Sets: 19, Updates: 300, Seed: 1} }

// Validate reports settings out of range.
func (s *Simulation) Validate() error {
	switch {
	case s.Sets < 1:
		return errors.New("--sets: want 1 or more")
	case s.Updates < 10:
		return errors.New("--updates: want 10 or more")
	}
	return nil
}

// Constants of the simulation.
const (
	points      = 70
	judged      = 101 // points at equal distances
	trueEll     = 0.25
	trueAmp     = 5.0
	firstEll    = 0.3
	nugget      = 1e-8 // on the covariance of a draw
	leastFlip   = 4
	mostFlip    = 7
	halfway     = 0.02 // a mean distance of the predictions from 1/2 that is degenerate
	leastEll    = 0.02
	mostEll     = 5.0
	leastAmp    = 0.05
	mostAmp     = 500.0
	cleanLabels = "clean"
	flipLabels  = "flipped"
)

// Fit is a method on one set.
type Fit struct {
	Lengthscale, Variance float64
	KL                    float64 // mean of KL(true ‖ predicted) over the judged points, nats
	Degenerate            bool    // predictions near 1/2, or a kernel far from all data
	Failure               string
}

// Summary is a method over all sets: medians, and the number of degenerate or failed fits.
type Summary struct {
	Method      string  `json:"method"`
	Labels      string  `json:"labels"`
	Sets        int     `json:"sets"`
	Lengthscale float64 `json:"lengthscale"`
	Variance    float64 `json:"variance"`
	KL          float64 `json:"kl"`
	Degenerate  int     `json:"degenerate"`
}

// learner is a method of the simulation by its name.
type learner struct {
	name string
	fit  lab.Method
}

func learners() []learner {
	o := studentt.Options{Full: true, Isotropic: true}
	published := func(nu float64, p studentt.Objective) lab.Method { return studentt.Published(nu, p).Train(o) }
	return []learner{
		{"VGP", studentt.Gaussian().Train(o)},
		{"TP tied, ν 3", studentt.Tied(3, false).Train(o)},
		{"TP tied free, ν 3", studentt.Tied(3, true).Train(o)},
		{"TP, ν 3", studentt.NonCentred(3).Train(o)},
		{"TP grid, ν 3", studentt.TrainGrid(3, o)},
		{"VTP1, ν 3", published(3, studentt.VTP1)},
		{"VTP1, ν 25", published(25, studentt.VTP1)},
		{"VTP2, ν 3", published(3, studentt.VTP2)},
		{"VTP2 printed, ν 3", published(3, studentt.VTP2Printed)},
		{"t-divergence, ν 3", published(3, studentt.SVTP2)},
	}
}

// sample is one set with its true probabilities at the judged points.
type sample struct {
	clean, flipped *lab.Data
	judge, truth   []float64
}

func newSample(seed uint64) (*sample, error) {
	r := rand.New(rand.NewPCG(seed, 8))
	x := make([]float64, points, points+judged)
	for i := range x {
		x[i] = r.Float64()
	}
	for i := range judged {
		x = append(x, float64(i)/(judged-1))
	}
	k := kernel(math.Log(trueEll), math.Log(trueAmp))
	c, cov := lab.Covariance(&k, x, x), mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i {
			cov.SetSym(i, j, c.At(i, j))
		}
		cov.SetSym(i, i, c.At(i, i)+nugget)
	}
	var factor mat.Cholesky
	if !factor.Factorize(cov) {
		return nil, model.ErrFactor
	}
	var l mat.TriDense
	factor.LTo(&l)
	f := mat.NewVecDense(len(x), nil)
	for i := range x {
		f.SetVec(i, r.NormFloat64())
	}
	f.MulVec(&l, f)
	s := &sample{judge: x[points:], clean: &lab.Data{D: 1, C: 2, X: x[:points:points]}}
	for i := range x {
		p := 1 / (1 + math.Exp(-f.AtVec(i)))
		switch {
		case i >= points:
			s.truth = append(s.truth, p)
		case r.Float64() < p:
			s.clean.Y = append(s.clean.Y, 1)
		default:
			s.clean.Y = append(s.clean.Y, 0)
		}
	}
	s.flipped = &lab.Data{D: 1, C: 2, X: s.clean.X, Y: slices.Clone(s.clean.Y)}
	for _, i := range r.Perm(points)[:leastFlip+r.IntN(mostFlip-leastFlip+1)] {
		s.flipped.Y[i] = 1 - s.flipped.Y[i]
	}
	return s, nil
}

// kernel has one inducing point, which full processes replace by the rows.
func kernel(logEll, logAmp float64) model.Params {
	p := model.NewParams(1, 1)
	clear(p.Theta)
	p.LogEll()[0], *p.LogAmp() = logEll, logAmp
	return p
}

// fit learns a set.
func (s *Simulation) fit(ctx context.Context, l learner, d *lab.Data, of *sample) (*Fit, error) {
	p := &lab.Problem{Data: d, Start: kernel(math.Log(firstEll), 0), Updates: s.Updates}
	c, err := l.fit(ctx, p)
	if ctx.Err() != nil {
		return nil, errors.New("tprocess: interrupted")
	}
	if err != nil {
		return &Fit{Failure: err.Error(), Degenerate: true}, nil
	}
	probs, err := c.Predict(of.judge)
	if err != nil {
		return nil, err
	}
	learnt := c.(interface{ Kernel() model.Params }).Kernel()
	f := &Fit{Lengthscale: math.Exp(learnt.LogEll()[0]), Variance: math.Exp(*learnt.LogAmp())}
	var distance float64
	for i, t := range of.truth {
		const least = 1e-12
		q := min(max(probs.At(i, 1), least), 1-least)
		f.KL += (t*math.Log(t/q) + (1-t)*math.Log((1-t)/(1-q))) / judged
		distance += math.Abs(q-0.5) / judged
	}
	f.Degenerate = distance < halfway || f.Lengthscale < leastEll || f.Lengthscale > mostEll || f.Variance < leastAmp || f.Variance > mostAmp
	return f, nil
}

// Run fits all methods to all sets. done is called after each method of a set.
func (s *Simulation) Run(ctx context.Context, done func()) ([]Summary, error) {
	samples := make([]*sample, s.Sets)
	for i := range samples {
		var err error
		if samples[i], err = newSample(s.Seed + uint64(i)); err != nil {
			return nil, err
		}
	}
	var out []Summary
	for _, l := range learners() {
		fits := map[string][]*Fit{}
		for _, of := range samples {
			for labels, d := range map[string]*lab.Data{cleanLabels: of.clean, flipLabels: of.flipped} {
				f, err := s.fit(ctx, l, d, of)
				if err != nil {
					return nil, err
				}
				fits[labels] = append(fits[labels], f)
			}
			done()
		}
		out = append(out, summarise(l.name, cleanLabels, fits[cleanLabels]), summarise(l.name, flipLabels, fits[flipLabels]))
	}
	return out, nil
}

// Methods is the number of methods of a simulation.
func (s *Simulation) Methods() int { return len(learners()) }

func summarise(name, labels string, fits []*Fit) Summary {
	out := Summary{Method: name, Labels: labels, Sets: len(fits)}
	var ells, amps, losses []float64
	for _, f := range fits {
		if f.Degenerate {
			out.Degenerate++
		}
		if f.Failure == "" {
			ells, amps, losses = append(ells, f.Lengthscale), append(amps, f.Variance), append(losses, f.KL)
		}
	}
	out.Lengthscale, out.Variance, out.KL = median(ells), median(amps), median(losses)
	return out
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return 0.5 * (v[(len(v)-1)/2] + v[len(v)/2])
}

// PrintSummaries writes a line for each method and kind of labels.
func PrintSummaries(w io.Writer, all []Summary) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "method\tlabels\tsets\tmedian lengthscale\tmedian variance\tmedian KL\tdegenerate\t")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.3f\t%.3g\t%.3f\t%d\t\n", s.Method, s.Labels, s.Sets, s.Lengthscale, s.Variance, s.KL, s.Degenerate)
	}
	return t.Flush()
}
