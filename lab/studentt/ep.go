package studentt

import (
	"gonum.org/v1/gonum/mat"

	"edge/lab"
	"edge/lab/rep"
	"edge/model"
)

// EP is expectation propagation for each node of the scale, with the sites of the learner
// kept one by one (package rep). A node is a Gaussian process with amplitude and residual
// times s_g, and the same noise; nodes are weighed by their evidence,
//
//	log Z = log Σ π_g Z_g
//
// In the coordinates of the node e = √s_g e', so that V and m of e are s_g V' and √s_g m'.
type EP struct {
	*Scale
	nodes []*rep.REP
}

// NewEP returns sites of 1 at all nodes.
func NewEP(d *lab.Data, p model.Params, s *Scale) (*EP, error) {
	e := &EP{Scale: s}
	for _, l := range s.Log {
		n, err := rep.New(d, scaled(p, l), lab.Jitter, new(lab.Product), 0)
		if err != nil {
			return nil, err
		}
		e.nodes = append(e.nodes, n)
	}
	return e, nil
}

// SetParams moves the parameters, with the sites as they are.
func (e *EP) SetParams(p model.Params) error {
	for g, n := range e.nodes {
		if err := n.SetParams(scaled(p, e.Log[g])); err != nil {
			return err
		}
	}
	return nil
}

// Sweep updates the sites of all nodes once.
func (e *EP) Sweep(rho float64) error {
	for _, n := range e.nodes {
		if _, err := n.Sweep(rho); err != nil {
			return err
		}
	}
	return nil
}

// Run sweeps each node until its largest relative change is below tolerance.
func (e *EP) Run(sweeps int, rho, tolerance float64) error {
	for _, n := range e.nodes {
		if err := n.Run(sweeps, rho, tolerance); err != nil {
			return err
		}
	}
	return nil
}

func (e *EP) weigh() (sum float64, share []float64) {
	evidence := make([]float64, len(e.nodes))
	for g, n := range e.nodes {
		evidence[g] = n.LogZ()
	}
	return e.mix(evidence)
}

// LogZ is the log evidence.
func (e *EP) LogZ() float64 {
	sum, _ := e.weigh()
	return sum
}

// Gradient is the mean over the nodes of the derivatives that hold the cavities fixed.
func (e *EP) Gradient() []float64 {
	_, share := e.weigh()
	sum := make([]float64, len(e.nodes[0].Params.Theta))
	for g, n := range e.nodes {
		for j, v := range n.Gradient() {
			sum[j] += share[g] * v
		}
	}
	return sum
}

// Predict returns the probabilities of the classes, n×C, the mean over the nodes.
func (e *EP) Predict(x []float64) (*mat.Dense, error) {
	_, share := e.weigh()
	var out mat.Dense
	for g, n := range e.nodes {
		p, err := n.Predict(x)
		if err != nil {
			return nil, err
		}
		blend(&out, share[g], p)
	}
	return &out, nil
}
