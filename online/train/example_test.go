package train_test

import (
	"fmt"

	"edge/online"
	"edge/online/train"
)

// plane is a set of samples on a grid, whose class is the side of a line.
type plane struct{}

func (plane) Len() int { return 200 }

func (plane) Row(i int, dst []float64) { dst[0], dst[1] = float64(i%20), float64(i/20) }

func (p plane) Class(i int) int {
	if i%20 > i/20+5 {
		return 1
	}
	return 0
}

// A set is learnt in many passes, and an online learner carries on from there.
func ExampleNew() {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing = []string{"x", "y"}, 10
	t, err := train.New(cfg, train.Default(), []string{"above", "below"}, plane{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for !t.Done() {
		if _, err := t.Step(); err != nil {
			fmt.Println(err)
			return
		}
	}
	s, err := t.Score(plane{})
	fmt.Printf("%g passes, error below 5 %%: %v, %v\n", t.Passes(), s.Error < 0.05, err)
	l, err := t.Learner()
	fmt.Println(l.WarmedUp(), l.Posterior().Version(), err)
	// Output:
	// 20 passes, error below 5 %: true, <nil>
	// true 200 <nil>
}
