package model_test

import (
	"fmt"
	"math"

	"edge/model"
)

// A posterior without data: two classes, one kernel with three inducing points, and
// one horizon at its prior, whose first latent function is raised near x = 1.
func ExamplePosterior() {
	params := model.NewParams(3, 1)
	copy(params.Z(), []float64{-1, 0, 1})
	*params.LogNoise() = math.Log(0.1)
	*params.LogitEps() = math.Inf(-1) // labels are never wrong
	basis := model.NewBasis(3, 1)
	if _, err := basis.Set(&params); err != nil {
		fmt.Println(err)
		return
	}
	bank := model.Gaussian{M: 3}
	bank.Grow()
	bank.Grow()
	bank.Mean[2] = 3 // of the whitened value at z = 1
	p := &model.Posterior{
		Names: []string{"a", "b"}, Counts: make([]uint64, 2), Latent: []int{0, 1}, Bases: []*model.Basis{basis},
		Scale: model.Scale{Mu: []float64{0}, Sd: []float64{1}}, Bank: []model.Gaussian{bank}, Weights: []float64{1},
	}
	ws := model.NewWorkspace() // one per goroutine
	for _, x := range []float64{-1, 1} {
		probs, novelty, err := p.PredictTo(nil, []float64{x}, ws)
		fmt.Printf("x = %2.0f: P(a) = %.2f, novelty %.2f, %v\n", x, probs[0], novelty, err)
	}
	// Output:
	// x = -1: P(a) = 0.50, novelty 1.00, <nil>
	// x =  1: P(a) = 0.93, novelty 1.00, <nil>
}

func ExampleEntropy() {
	fmt.Printf("%.3f %.3f\n", model.Entropy([]float64{0.5, 0.5}), model.Entropy([]float64{1, 0}))
	// Output: 0.693 0.000
}

func ExampleMargin() {
	fmt.Printf("%.1f\n", model.Margin([]float64{0.6, 0.3, 0.1}))
	// Output: 0.3
}
