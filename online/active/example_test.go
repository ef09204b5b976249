package active_test

import (
	"fmt"
	"time"

	"edge/online/active"
)

func ExampleNewSelector() {
	s := active.NewSelector(active.Config{Strategy: active.Margin, Budget: 0.1}, 1)
	requests := 0
	for i := range 5000 {
		margin := float64(i%10) / 10 // between the two most probable classes
		if s.Select(1-margin, uint64(requests), time.Duration(i)*time.Second) {
			requests++
		}
	}
	fmt.Printf("%d requests, %.0f allowed\n", requests, s.Allowed())
	// Output:
	// 497 requests, 500 allowed
}
