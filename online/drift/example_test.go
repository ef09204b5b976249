package drift_test

import (
	"fmt"

	"edge/online/drift"
)

func ExampleNew() {
	m := drift.New(drift.Default())
	for i := range 400 {
		loss := 0.2 // nats
		if i >= 300 {
			loss = 2
		}
		if c, changed := m.Add(drift.Sample{LogLoss: loss}, true); changed {
			fmt.Printf("sample %d: %s, %s\n", i, c.Level, c.Detail)
		}
	}
	// Output:
	// sample 319: warning, log_loss rose from 0.2 to 2, about 20 labels ago
	// sample 335: drift, log_loss rose from 0.2 to 1.82, about 40 labels ago
}
