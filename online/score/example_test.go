package score_test

import (
	"fmt"

	"edge/online/score"
)

func ExampleJudge() {
	var j score.Judge // the zero value is ready
	j.Add([]float64{0.9, 0.1}, 0)
	j.Add([]float64{0.7, 0.3}, 1)
	j.AddPublished([]float64{0.2, 0.8}, 1, score.Decision{Sets: true, Size: 1, Holds: true})
	s := j.Scores([]string{"ok", "worn"})
	fmt.Printf("%d samples: error %.3f, log loss %.3f, coverage %.0f of %d sets\n", s.N, s.Error, s.NLL, s.Sets.Covered, s.Sets.N)
	fmt.Println("confusion", s.Matrix)
	// Output:
	// 3 samples: error 0.333, log loss 0.511, coverage 1 of 1 sets
	// confusion [[1 0] [1 1]]
}
