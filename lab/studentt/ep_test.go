package studentt

import (
	"fmt"
	"math"
	"testing"

	"edge/lab"
	"edge/lab/labtest"
	"edge/test/golden"
)

func TestEPForEachNode(t *testing.T) {
	var file struct {
		Z, X     [][]float64
		LogEll   []float64 `json:"log_ell"`
		LogAmp   float64   `json:"log_amp"`
		LogNoise float64   `json:"log_noise"`
		Y        []int
		LogS     []float64 `json:"log_s"`
		Pi       []float64 `json:"log_prior_weight"`
		Nodes    []struct {
			S      float64
			S1, S2 [][]float64
			LogZ   float64 `json:"log_zq"`
			labtest.Posterior
		}
		Weight   []float64   `json:"node_weight"`
		Evidence float64     `json:"log_evidence"`
		XNew     [][]float64 `json:"X_new"`
		PNew     [][]float64 `json:"p_new"`
	}
	golden.Reference(t, "student-t/ep_nodes.json", &file)
	d := &lab.Data{D: 2, C: 3, X: golden.Flat(file.X), Y: file.Y}
	p := labtest.Parameters{Z: [][][]float64{file.Z}, LogEll: [][]float64{file.LogEll}, LogAmp: []float64{file.LogAmp}, LogNoise: []float64{file.LogNoise}}
	e, err := NewEP(d, p.Params(), &Scale{file.LogS, file.Pi})
	if err == nil {
		err = e.Run(2000, 0.7, 1e-14)
	}
	if err != nil {
		t.Fatal(err)
	}
	const rel = 1e-7
	for g, want := range file.Nodes {
		t.Run(fmt.Sprintf("s=%.2g", want.S), func(t *testing.T) {
			n := e.nodes[g]
			golden.Close(t, "s1", n.S1.RawMatrix().Data, golden.Flat(want.S1), rel)
			golden.Close(t, "s2", n.S2.RawMatrix().Data, golden.Flat(want.S2), rel)
			labtest.Near(t, "log evidence", n.LogZ(), want.LogZ, 1e-7)
			for k := range n.V {
				n.V[k].Scale(want.S, n.V[k])
			}
			for k := range want.V {
				golden.Close(t, "V", n.V[k].RawMatrix().Data, golden.Flat(want.V[k]), rel)
				n.V[k].Scale(1/want.S, n.V[k])
				var m []float64
				for _, v := range n.M.RawRowView(k) {
					m = append(m, v*math.Sqrt(want.S))
				}
				golden.Close(t, "m", m, want.M[k], rel)
			}
			mean, variance := n.Latent(golden.Flat(file.XNew))
			golden.Close(t, "mean of new rows", mean.RawMatrix().Data, golden.Flat(want.MeanNew), rel)
			golden.Close(t, "variance of new rows", variance.RawMatrix().Data, golden.Flat(want.VarNew), rel)
		})
	}
	evidence, share := e.weigh()
	labtest.Near(t, "log evidence", evidence, file.Evidence, 1e-7)
	golden.Close(t, "weights", share, file.Weight, rel)
	got, err := e.Predict(golden.Flat(file.XNew))
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "probabilities", got.RawMatrix().Data, golden.Flat(file.PNew), 1e-6)
}

// At fixed points of two classes, and of the grid, the gradients are the total ones.
func TestGradientsAtFixedPoints(t *testing.T) {
	three, p := labtest.Twelve()
	two := twoClasses(three)
	shape := p
	check := func(name string, theta []float64, value func(theta []float64) float64, gradient func() []float64) {
		value(theta)
		got := gradient()
		golden.Close(t, name, got, labtest.Differences(theta, 1e-4, value), 1e-6)
	}
	e, err := NewEP(two, p, NewScale(3, 3))
	if err != nil {
		t.Fatal(err)
	}
	move := func(set func() error, run func() error, logZ func() float64) float64 {
		if err := set(); err != nil {
			t.Fatal(err)
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		return logZ()
	}
	check("EP", p.Theta, func(theta []float64) float64 {
		shape.Theta = theta
		return move(func() error { return e.SetParams(shape) }, func() error { return e.Run(1000, 0.7, 1e-8) }, e.LogZ)
	}, e.Gradient)
	for link, d := range map[Link]*lab.Data{Logistic: two, Pairs: three} {
		s := &Scale{[]float64{-1.5, -0.5}, logWeights(3, []float64{-1.5, -0.5})}
		g, err := NewGrid(d, p, link, s)
		if err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("grid %d", link), p.Theta, func(theta []float64) float64 {
			shape.Theta = theta
			return move(func() error { return g.SetParams(shape) }, func() error { return g.Run(40, 1e-12) }, g.LogZ)
		}, g.Gradient)
	}
}
