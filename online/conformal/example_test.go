package conformal_test

import (
	"fmt"

	"edge/online/conformal"
)

func ExampleNewThreshold() {
	t := conformal.NewThreshold(conformal.Config{Coverage: 0.9})
	u := conformal.Uncertainty{Coverage: t.Coverage(), Threshold: t.Value(), Quantile: t.Quantile()}
	x, probs := []float64{0.3, 1.2}, []float64{0.05, 0.7, 0.25}
	meta := u.Meta(probs, 0)
	fmt.Println("set", u.AppendSet(nil, probs, x))

	decision, nonconforming := meta.Decide(probs, x, 0) // the label was class 0
	t.Learn(nonconforming)
	fmt.Printf("holds the label: %v; threshold %.2f, then %.2f\n", decision.Holds, meta.Threshold, t.Value())
	// Output:
	// set [1 2]
	// holds the label: false; threshold 2.20, then 4.30
}

func ExampleCoverageController() {
	var c conformal.CoverageController // the zero value is ready
	u := c.Threshold(conformal.Uncertainty{Coverage: 0.9, Quantile: 2, Threshold: 2})
	c.JudgeNow(false, 1) // the set of one class missed the label
	fmt.Printf("threshold %.2f, then %.2f\n", u.Threshold, c.Threshold(u).Threshold)
	// Output:
	// threshold 2.00, then 3.35
}
