package sep_test

import (
	"fmt"
	"math"

	"edge/model"
	"edge/online/sep"
)

func ExampleNew() {
	cfg := sep.Config{
		Features: 1, Inducing: 4, Horizons: []float64{math.Inf(1)}, Window: 20, Batch: 8, Sweeps: 2, Damping: 0.5,
		LearningRate: 0.02, NoiseStart: 0.01, NoiseMax: 0.2, LearnNoise: true, Clip: model.DefaultClip, Seed: 1,
	}
	view := &model.Posterior{Names: []string{"low", "high"}, Counts: make([]uint64, 2), Weights: []float64{1}}
	b := sep.New(cfg, view)

	x := []float64{-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2}
	mb := sep.Minibatch{
		X: x, Classes: []int{0, 0, 0, 0, 1, 1, 1, 1}, Weights: []float64{1, 1, 1, 1, 1, 1, 1, 1}, Latents: []int{0, 1}, Reach: math.Inf(1),
	}
	if err := b.Begin(x, len(x), 2, false); err != nil { // scaling, inducing inputs, kernel
		fmt.Println(err)
		return
	}
	b.Grow(0) // a latent function for each class
	b.Grow(1)
	for range 10 {
		b.Save()
		if err := b.Learn(mb); err != nil {
			fmt.Println(b.Undo(err))
		}
	}
	probs, _, _ := view.PredictTo(nil, []float64{1.2}, model.NewWorkspace())
	fmt.Println("P(high | 1.2) above 0.9:", probs[1] > 0.9)
	// Output:
	// P(high | 1.2) above 0.9: true
}

func ExampleCavity() {
	mean, v, _ := sep.Cavity(0.5, 0.4, 1, 0.8) // the marginal N(0.5, 0.4) without the site (1, 0.8)
	fmt.Printf("N(%.2f, %.2f)\n", mean, v)
	// Output: N(0.30, 0.67)
}
