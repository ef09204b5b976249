// Package labtest holds the helpers that the tests of the laboratory share: the problems of golden
// vectors, rows of sensors, and comparisons.
package labtest

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/internal/dataset"
	"edge/lab"
	"edge/model"
	"edge/test/golden"
)

// Parameters are those of a golden vector, with a first index for the kernel.
type Parameters struct {
	Z        [][][]float64
	LogEll   [][]float64 `json:"log_ell"`
	LogAmp   []float64   `json:"log_amp"`
	LogNoise []float64   `json:"log_noise"`
}

// Theta is the parameters, or their gradient, in the order of model.Params.
func (p *Parameters) Theta() []float64 {
	var theta []float64
	for g := range p.Z {
		theta = append(theta, golden.Flat(p.Z[g])...)
		theta = append(theta, p.LogEll[g]...)
		theta = append(theta, p.LogAmp[g], p.LogNoise[g], 0)
	}
	return theta
}

// Params are the parameters of the model.
func (p *Parameters) Params() model.Params {
	return model.Params{M: len(p.Z[0]), D: len(p.Z[0][0]), Theta: p.Theta()}
}

// Problem is the data of a golden file.
type Problem struct {
	X    [][]float64
	Y    []int
	C    int
	XNew [][]float64 `json:"X_new"`
}

// Data are the rows of the problem.
func (p *Problem) Data() *lab.Data {
	return &lab.Data{D: len(p.X[0]), C: p.C, X: golden.Flat(p.X), Y: p.Y}
}

// PairSites are the sites of all pairs in a golden vector.
type PairSites struct {
	S1Y [][]float64 `json:"s1_y"`
	S2Y [][]float64 `json:"s2_y"`
	S1K [][]float64 `json:"s1_k"`
	S2K [][]float64 `json:"s2_k"`
}

// Check compares sites.
func (s *PairSites) Check(t *testing.T, got *lab.PairSites, rel float64) {
	t.Helper()
	golden.Close(t, "s1_y", got.S1Y.RawMatrix().Data, golden.Flat(s.S1Y), rel)
	golden.Close(t, "s2_y", got.S2Y.RawMatrix().Data, golden.Flat(s.S2Y), rel)
	golden.Close(t, "s1_k", got.S1K.RawMatrix().Data, golden.Flat(s.S1K), rel)
	golden.Close(t, "s2_k", got.S2K.RawMatrix().Data, golden.Flat(s.S2K), rel)
}

// Posterior is the result of a fixed point.
type Posterior struct {
	V       [][][]float64
	M       [][]float64
	MeanNew [][]float64 `json:"mean_new"`
	VarNew  [][]float64 `json:"var_new"`
	PNew    [][]float64 `json:"p_new"`
}

// Check compares a posterior and its predictions, in which eps is 0.
func (p *Posterior) Check(t *testing.T, s *lab.Sparse, x [][]float64, rel float64) {
	t.Helper()
	for k := range p.V {
		golden.Close(t, fmt.Sprintf("V of class %d", k), s.V[k].RawMatrix().Data, golden.Flat(p.V[k]), rel)
	}
	golden.Close(t, "m", s.M.RawMatrix().Data, golden.Flat(p.M), rel)
	mean, variance := s.Latent(golden.Flat(x))
	golden.Close(t, "mean of new rows", mean.RawMatrix().Data, golden.Flat(p.MeanNew), rel)
	golden.Close(t, "variance of new rows", variance.RawMatrix().Data, golden.Flat(p.VarNew), rel)
	golden.Close(t, "probabilities of new rows", lab.Probabilities(mean, variance).RawMatrix().Data, golden.Flat(p.PNew), max(rel, 1e-8))
}

// Converged runs sweeps of a new approximation to its fixed point: at most that many,
// until no site changes by more than tol.
func Converged[T interface {
	Run(sweeps int, damping, tol float64) error
}](t *testing.T, a T, err error, sweeps int, damping, tol float64) T {
	t.Helper()
	if err == nil {
		err = a.Run(sweeps, damping, tol)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Waveform returns n rows of the demo's sensors, of the first classes.
func Waveform(n, classes int) *lab.Data {
	w, d := dataset.NewWaveform(3), &lab.Data{D: dataset.WaveformFeatures, C: classes}
	for row := (dataset.Row{}); d.N() < n; {
		w.Next(&row)
		if y := int(row.Label[0] - '0'); y < classes {
			d.X, d.Y = append(d.X, row.X...), append(d.Y, y)
		}
	}
	return d
}

// Table is a matrix of rows.
func Table(rows [][]float64) *mat.Dense {
	return mat.NewDense(len(rows), len(rows[0]), golden.Flat(rows))
}

// Near compares numbers by their absolute difference.
func Near(t *testing.T, what string, got, want, abs float64) {
	t.Helper()
	if d := math.Abs(got - want); !(d <= abs) {
		t.Errorf("%s = %.15g, want %.15g (error %.2g, want at most %.2g)", what, got, want, d, abs)
	}
}

// Differences are central differences of f in every element of x.
func Differences(x []float64, step float64, f func(x []float64) float64) []float64 {
	out, at := make([]float64, len(x)), append([]float64(nil), x...)
	for i := range x {
		at[i] = x[i] + step
		up := f(at)
		at[i] = x[i] - step
		out[i], at[i] = (up-f(at))/(2*step), x[i]
	}
	return out
}

// Twelve is the problem of twelve points in the golden files, with their parameters for
// one kernel, so that properties are tested without the files, too.
func Twelve() (*lab.Data, model.Params) {
	d := &lab.Data{D: 2, C: 3, Y: []int{1, 2, 2, 0, 2, 0, 0, 1, 2, 2, 1, 1}, X: []float64{
		0.0012301533574825742, 0.2987455375084699,
		-0.2741378553622176, -0.8905918387572742,
		-0.45467078517172255, -0.9916465549964624,
		0.060143602597438485, 1.3402152455545335,
		-0.49220651855132963, -0.6204748998199404,
		0.4898420501851982, 0.35688700816006075,
		0.10541424899789856, -0.9304680447082047,
		-0.02925182246327349, 0.6953031944582878,
		-1.344214547285082, -0.45761576104021817,
		-1.901222739800844, -1.289537739784976,
		-1.8417350377917323, -0.23509113107468127,
		-1.2674464814437032, 0.2712643588217015,
	}}
	p := Parameters{
		Z:        [][][]float64{{{0.15675108662422516, -0.18693094462995438}, {-2.516759710820513, -0.5386928958466366}, {-0.048500945401071985, 0.11330898600330756}, {-1.5301357655053935, -0.47775327603393064}}},
		LogEll:   [][]float64{{0.1, -0.2}},
		LogAmp:   []float64{0.35},
		LogNoise: []float64{-1.6},
	}
	return d, p.Params()
}

// PerClass gives every class a kernel of its own near p, by fixed shifts.
func PerClass(p model.Params, classes int) model.Params {
	out := model.Params{M: p.M, D: p.D}
	for range classes {
		out.Theta = append(out.Theta, p.Theta...)
	}
	for i := range out.Theta {
		out.Theta[i] += 0.1 * math.Sin(float64(7*i)+0.3)
	}
	for g := range classes {
		group := out.Group(g)
		*group.LogitEps() = 0
	}
	return out
}
