package studentt

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/model"
)

// Grid has a Gaussian q(e_k | s_g) of its own for each node of the scale:
//
//	F = log Σ π_g exp F_g,  ∂F = Σ q_g ∂F_g
//
// with F_g the variational Gaussian bound of the amplitude s_g. Its gap is that of the
// Gaussian bound alone; its cost is that of as many Gaussian bounds as there are nodes.
type Grid struct {
	*Scale
	nodes []*node
}

// NewGrid returns the q of the prior at each node.
func NewGrid(d *lab.Data, p model.Params, link Link, s *Scale) (*Grid, error) {
	rows, p, err := latents(d, p, link)
	if err != nil {
		return nil, err
	}
	g := &Grid{Scale: s}
	for _, l := range s.Log {
		sparse, err := lab.NewSparse(rows, scaled(p, l), lab.Jitter)
		if err != nil {
			return nil, err
		}
		g.nodes = append(g.nodes, &node{sparse, link, d.Y, lab.NewTable(rows), lab.NewTable(rows)})
	}
	return g, nil
}

// scaled returns the parameters with the amplitudes times exp(logS).
func scaled(p model.Params, logS float64) model.Params {
	out := p.Clone()
	for i := range out.Groups() {
		group := out.Group(i)
		*group.LogAmp() += logS
	}
	return out
}

// Kernel are the parameters, at s = 1.
func (g *Grid) Kernel() model.Params { return scaled(g.nodes[0].Params, -g.Log[0]) }

// SetParams moves the parameters and computes each q from its stored sites.
func (g *Grid) SetParams(p model.Params) error {
	for i, n := range g.nodes {
		if err := n.SetParams(scaled(p, g.Log[i])); err != nil {
			return err
		}
		if err := n.Solve(n.s1, n.s2); err != nil {
			return err
		}
	}
	return nil
}

// roundSteps are the steps of each node between two looks at the bound.
const roundSteps = 10

// negligible is the share of a node that takes no part in the further rounds of a run.
const negligible = 1e-9

// Run takes rounds of 10 steps at each node until the bound rises by less than tolerance, at
// most that many. After the first one, nodes without weight rest: their steps are the
// slowest, and change nothing.
//
// With pairs the steps of the classes do not know of each other, and what all classes have
// in common converges the slower the larger the amplitude is.
func (g *Grid) Run(rounds int, tolerance float64) error {
	before, weight := math.Inf(-1), make([]float64, len(g.nodes))
	for i := range weight {
		weight[i] = 1
	}
	for range rounds {
		for i, n := range g.nodes {
			if weight[i] < negligible {
				continue
			}
			if err := n.run(roundSteps); err != nil {
				return err
			}
		}
		now, share := g.weigh()
		if now-before < tolerance {
			return nil
		}
		before, weight = now, share
	}
	return nil
}

// LogZ is the bound.
func (g *Grid) LogZ() float64 {
	sum, _ := g.weigh()
	return sum
}

func (g *Grid) weigh() (sum float64, share []float64) {
	bounds := make([]float64, len(g.nodes))
	for i, n := range g.nodes {
		bounds[i] = n.bound()
	}
	return g.mix(bounds)
}

// Gradient is the derivative of the bound with the q held fixed, which is the total one at
// their optimum. Inducing points, lengthscales and noise are the same at all nodes.
func (g *Grid) Gradient() []float64 {
	_, share := g.weigh()
	sum := make([]float64, len(g.nodes[0].Params.Theta))
	for i, n := range g.nodes {
		for j, v := range n.gradient() {
			sum[j] += share[i] * v
		}
	}
	return sum
}

// Predict returns the probabilities of the classes, n×C, the mean over the nodes.
func (g *Grid) Predict(x []float64) (*mat.Dense, error) {
	_, share := g.weigh()
	var out mat.Dense
	for i, n := range g.nodes {
		blend(&out, share[i], gaussian(newRows(n.Sparse, n.link, x), 1, 1))
	}
	return &out, nil
}

// node is the variational Gaussian process of one amplitude, by natural gradients. At its
// optimum N pairs of numbers are the whole of q:
//
//	P_k = I + Σ −2T_ik w_i w_iᵀ,  b_k = Σ (G_ik − 2T_ik mean_ik) w_i
//
// with G and T the derivatives of Σ E log p in means and variances. T ≤ 0, as both links are
// log-concave.
type node struct {
	*lab.Sparse
	link   Link
	labels []int
	s1, s2 *mat.Dense // N×C
}

func (n *node) expect() *expected {
	return learnt(n.Sparse, n.link, n.labels).expect(&rules{dof: math.Inf(1), growth: n.link.growth()}, 1, 1, 1)
}

func (n *node) run(steps int) error {
	const step = 0.5
	for range steps {
		e := n.expect()
		s1, s2 := lab.NewTable(n.Data), lab.NewTable(n.Data)
		for i, t := range e.spread {
			s1.RawMatrix().Data[i] = max(-2*t, 0)
			s2.RawMatrix().Data[i] = e.mean[i] - 2*t*n.Mean.RawMatrix().Data[i]
		}
		lab.Blend(n.s1, s1, step)
		lab.Blend(n.s2, s2, step)
		if err := n.Solve(n.s1, n.s2); err != nil {
			return err
		}
	}
	return nil
}

// bound is Σ E log p − Σ KL_k, with log|V| = 2 logN − b·m.
func (n *node) bound() float64 {
	sum := n.expect().sum
	for k := range n.C {
		m := n.M.RowView(k)
		norms := lab.Norms{
			Mean: mat.Dot(m, m), Trace: mat.Trace(n.V[k]), Size: n.Params.M,
			LogDet: n.LogN[k] - 0.5*mat.Dot(n.B.RowView(k), m),
		}
		sum -= norms.KL()
	}
	return sum
}

func (n *node) gradient() []float64 {
	e := n.expect()
	rows, c := n.N(), n.C
	g, t := mat.NewDense(rows, c, e.mean), mat.NewDense(rows, c, e.spread)
	var twice mat.Dense
	twice.Scale(2, t)
	theta := n.Sparse.Gradient(lab.Features{W: n.AlongPosterior(g, &twice), Q: t})
	setNoise(n.Sparse, theta, e)
	return theta
}
