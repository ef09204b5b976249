package mixture_test

import (
	"fmt"

	"edge/model"
	"edge/online/mixture"
)

func ExampleNew() {
	view := &model.Posterior{Names: []string{"a", "b"}, Counts: make([]uint64, 2)}
	m := mixture.New(mixture.Config{Features: 2, Horizons: 2, Chain: true}, view)
	m.ResetHorizons()
	m.Grow(0)
	// In a minibatch of four samples the first horizon gave the labels a log
	// probability of −1, the second of −3.
	m.WeighHorizons([]float64{-1, -3}, mixture.Together(4))
	fmt.Printf("weights of the horizons: %.2f\n", view.Weights)
	for _, class := range []int{0, 0, 1, 0} {
		m.NextLabel(class)
	}
	fmt.Println("transitions:", view.Pool.Order.Steps[0].Counts)
	// Output:
	// weights of the horizons: [0.73 0.27]
	// transitions: [1 1 1 0]
}
