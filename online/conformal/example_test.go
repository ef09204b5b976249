package conformal_test

import (
	"fmt"

	"edge/online/conformal"
)

func ExampleNewThreshold() {
	t := conformal.NewThreshold(conformal.Config{Coverage: 0.9})
	u := t.Uncertainty()
	x, probs := []float64{0.3, 1.2}, []float64{0.05, 0.7, 0.25}
	fmt.Println("set", u.AppendSet(nil, probs, x))

	meta := u.Meta(probs, 0)
	decision := meta.Decide(probs, x, 0) // the label was class 0
	t.Judge(probs, x, 0)
	t.Learn() // a minibatch of one label
	fmt.Printf("holds the label: %v; threshold %.3f, then %.3f\n", decision.Holds, meta.Threshold, t.Uncertainty().Threshold)
	// Output:
	// set [1 2]
	// holds the label: false; threshold 0.900, then 0.927
}

func ExampleCoverageController() {
	var c conformal.CoverageController // the zero value is ready
	u := c.Threshold(conformal.Uncertainty{Coverage: 0.9, Quantile: 0.8, Threshold: 0.8})
	c.JudgeNow(false, 1) // the set of one class missed the label
	fmt.Printf("threshold %.3f, then %.3f\n", u.Threshold, c.Threshold(u).Threshold)
	// Output:
	// threshold 0.800, then 0.823
}
