package config_test

import (
	"fmt"

	"edge/internal/config"
)

const text = `
mqtt: {servers: [mqtt://broker.lan]}
streams: {vibration: {topics: [factory/+/vibration], features: [rms, kurtosis, peak_hz]}}
models: {bearing: {streams: [vibration], window: 200}}
`

// A configuration is its file, completed by defaults and overridden by variables.
func ExampleParse() {
	c, err := config.Parse("edge.yaml", []byte(text), []string{"EDGE_STORE_DURABILITY=relaxed"})
	if err != nil {
		fmt.Println(err)
		return
	}
	learner, err := c.Learner("bearing")
	fmt.Println(learner.Features, learner.Window, c.Store.Durability, c.Store.Checkpoint, err)
	// Output: [rms kurtosis peak_hz] 200 relaxed every 5m0s or after 5000 samples or after 8MiB of journal <nil>
}

// Every error is reported at once, with its position.
func ExampleParse_errors() {
	_, err := config.Parse("edge.yaml", []byte(text+"stor: {}\nhttp: {listen: }\n"), nil)
	fmt.Println(err)
	// Output:
	// edge.yaml:5:1: unknown key "stor" in the configuration; did you mean "store"?
	// edge.yaml:6:16: http.listen has no value; leave the key out for its default
}

// A learnt state determines the number of inducing points that the file leaves
// open.
func ExampleConfig_Effective() {
	c, err := config.Parse("edge.yaml", []byte(text), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	before, _ := c.Learner("bearing")
	learnt := before
	learnt.Inducing = 64
	after, _ := c.Effective(map[string]string{"bearing": learnt.Shape()}).Learner("bearing")
	fmt.Println(before.Inducing, after.Inducing, c.Models["bearing"].Learner.Inducing)
	// Output: 50 64 0
}
