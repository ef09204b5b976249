package published

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"edge/internal/process"
	"edge/lab"
	"edge/lab/compare"
	"edge/model"
)

// PlaneConfig are the conditions of figure 3.
type PlaneConfig struct {
	Methods  []string
	Inducing []int // numbers M
	Rows     int   // that are learnt; as many judge
	Updates  int
	Seed     uint64
	Grid     int // points on a side of the pictures
}

// DefaultPlane are the published conditions with fewer updates and numbers M.
func DefaultPlane() PlaneConfig {
	return PlaneConfig{Methods: []string{"ep", "sep-pairs", "gfitc", "vi"}, Inducing: []int{1, 4, 16, 64}, Rows: 1000, Updates: 100, Seed: 1, Grid: 24}
}

// Validate reports settings out of range.
func (c *PlaneConfig) Validate() error {
	for _, m := range c.Inducing {
		if m < 1 || m > c.Rows {
			return fmt.Errorf("--inducing: want numbers from 1 to the number of rows, %d", c.Rows)
		}
	}
	switch {
	case len(c.Methods) == 0 || len(c.Inducing) == 0:
		return errors.New("--methods, --inducing: want one or more")
	case c.Rows < 2 || c.Rows > 3000:
		return errors.New("--rows: want 2 to 3000")
	case c.Updates < 1:
		return errors.New("--updates: want 1 or more")
	case c.Grid < 2:
		return errors.New("--grid: want 2 or more")
	}
	return nil
}

// The process that the labels are drawn from.
const (
	planeSide    = 2.5 // of the square, to either side of 0
	planeClasses = 3
	planeNoise   = 0.01 // variance on the latents, whose own is 1 at a lengthscale of 1
)

// Plane is a problem in two dimensions, with the answers of the methods.
type Plane struct {
	Learn, Judge *lab.Data
	Axis         []float64    // of the grid, in either direction
	Truth        []*mat.Dense // of each class, the true latent on the grid less the largest other one: above 0 in its region
	BestError    float64      // of the largest true latent, on the judging rows
	Panels       []Panel
}

// Panel is one method with one number of inducing points.
type Panel struct {
	Method   string  `json:"method"`
	Inducing int     `json:"inducing"`
	Error    float64 `json:"error"`
	NLL      float64 `json:"nll"`
	Seconds  float64 `json:"seconds"` // of processor time
	Failure  string  `json:"failure,omitempty"`

	Z       []float64    `json:"-"` // M×2, where the inducing points are at the end
	Regions []*mat.Dense `json:"-"` // as Truth, of the predicted probabilities
}

// NewPlane draws the problem: uniform inputs, latents of the prior with the kernel of
// planeKernel, and the largest noisy one as label.
func NewPlane(rows, grid int, seed uint64) (*Plane, error) {
	r := rand.New(rand.NewPCG(seed, 3))
	n := 2 * rows
	x := make([]float64, 2*n)
	for i := range x {
		x[i] = planeSide * (2*r.Float64() - 1)
	}
	kernel := planeKernel(1)
	const jitter = 1e-8
	c := lab.Covariance(&kernel, x, x)
	prior := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			prior.SetSym(i, j, c.At(i, j))
		}
		prior.SetSym(i, i, prior.At(i, i)+jitter)
	}
	var chol mat.Cholesky
	if !chol.Factorize(prior) {
		return nil, model.ErrFactor
	}
	p := &Plane{Axis: make([]float64, grid)}
	for i := range grid {
		p.Axis[i] = planeSide * (2*float64(i)/float64(grid-1) - 1)
	}
	cross := lab.Covariance(&kernel, p.cells(), x)
	var l mat.TriDense
	chol.LTo(&l)
	latent, onGrid := mat.NewDense(n, planeClasses, nil), mat.NewDense(grid*grid, planeClasses, nil)
	for k := range planeClasses {
		z, f, alpha, g := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(grid*grid, nil)
		for i := range n {
			z.SetVec(i, r.NormFloat64())
		}
		f.MulVec(&l, z)
		if err := chol.SolveVecTo(alpha, f); err != nil {
			return nil, fmt.Errorf("published: %w", err)
		}
		g.MulVec(cross, alpha) // the mean of the latent given the rows, which leave it no freedom
		latent.SetCol(k, f.RawVector().Data)
		onGrid.SetCol(k, g.RawVector().Data)
	}
	p.Truth = regions(onGrid, grid)
	p.label(x, latent, rows, r)
	return p, nil
}

// label draws the labels, and divides the rows.
func (p *Plane) label(x []float64, latent *mat.Dense, rows int, r *rand.Rand) {
	all := &lab.Data{D: 2, C: planeClasses, X: x}
	for i := range 2 * rows {
		noisy, best := make([]float64, planeClasses), 0
		for k := range noisy {
			noisy[k] = latent.At(i, k) + math.Sqrt(planeNoise)*r.NormFloat64()
			if latent.At(i, k) > latent.At(i, best) {
				best = k
			}
		}
		y := largest(noisy)
		all.Y = append(all.Y, y)
		if i >= rows && y != best {
			p.BestError += 1 / float64(rows)
		}
	}
	p.Learn = &lab.Data{D: 2, C: planeClasses, X: x[:2*rows], Y: all.Y[:rows]}
	p.Judge = &lab.Data{D: 2, C: planeClasses, X: x[2*rows:], Y: all.Y[rows:]}
}

func largest(v []float64) int {
	best := 0
	for k := range v {
		if v[k] > v[best] {
			best = k
		}
	}
	return best
}

// planeKernel is the true kernel with m inducing points at 0.
func planeKernel(m int) model.Params {
	p := model.NewParams(m, 2)
	*p.LogNoise() = math.Log(planeNoise)
	return p
}

// cells are the points of the grid, the second coordinate the faster one.
func (p *Plane) cells() []float64 {
	var x []float64
	for _, a := range p.Axis {
		for _, b := range p.Axis {
			x = append(x, a, b)
		}
	}
	return x
}

// regions are, for each class, its value less the largest other one, on the grid.
func regions(v *mat.Dense, grid int) []*mat.Dense {
	n, c := v.Dims()
	out := make([]*mat.Dense, c)
	for k := range out {
		out[k] = mat.NewDense(grid, grid, nil)
		for i := range n {
			other := math.Inf(-1)
			for j, value := range v.RawRowView(i) {
				if j != k {
					other = max(other, value)
				}
			}
			out[k].Set(i/grid, i%grid, v.At(i, k)-other)
		}
	}
	return out
}

// Draw returns the problem with a panel for each method and number of inducing points. All
// start at the same random rows; the kernel is the true one, and only inducing points are
// learnt. done is called after each panel.
//
// Source: Villacampa-Calvo & Hernández-Lobato (2017), figure 3.
func Draw(ctx context.Context, c PlaneConfig, done func(*Panel)) (*Plane, error) {
	methods, err := compare.Named(c.Methods)
	if err != nil {
		return nil, err
	}
	p, err := NewPlane(c.Rows, c.Grid, c.Seed)
	if err != nil {
		return nil, err
	}
	order := rand.New(rand.NewPCG(c.Seed, 1)).Perm(c.Rows)
	for i := range methods {
		for _, m := range c.Inducing {
			start := planeKernel(m)
			copy(start.Z(), p.Learn.Rows(order[:m]).X)
			panel, err := p.panel(ctx, &methods[i], &lab.Problem{
				Data: p.Learn, Start: start, Updates: c.Updates, Seed: c.Seed,
				Hold: func(grad []float64) { clear(grad[2*m:]) },
			})
			if err != nil {
				return nil, err
			}
			p.Panels = append(p.Panels, *panel)
			done(panel)
		}
	}
	return p, nil
}

// panel learns by one method. A method that fails numerically is a panel with a Failure.
func (p *Plane) panel(ctx context.Context, m *compare.Method, problem *lab.Problem) (*Panel, error) {
	out := &Panel{Method: m.Name, Inducing: problem.Start.M}
	before := process.CPUTime()
	fitted, err := m.Fit(ctx, problem)
	out.Seconds = (process.CPUTime() - before).Seconds()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	if err == nil {
		out.Error, out.NLL, err = compare.Judge(fitted, p.Judge)
	}
	if err == nil {
		var probs *mat.Dense
		if probs, err = fitted.Predict(p.cells()); err == nil {
			out.Regions = regions(probs, len(p.Axis))
		}
	}
	if err != nil {
		out.Failure = err.Error()
		return out, nil
	}
	if at, ok := fitted.(interface{ Parameters() model.Params }); ok {
		params := at.Parameters()
		out.Z = append(out.Z, params.Z()...)
	}
	return out, nil
}
