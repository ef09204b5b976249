package top

import (
	"fmt"
)

// A state takes messages, and a layout writes a snapshot of it.
func Example() {
	n := newNodeState("edge", "hall")
	n.receive("edge/hall/state", []byte("online"), true)
	n.receive("edge/hall/info", []byte(`{"version":"v1.2.3","models":[{"name":"bearing","classes":["ok","worn"]}]}`), true)
	v := n.snapshot(true)
	l := layout{width: 60}
	fmt.Println(l.row(segment{text: v.Node}, segment{text: v.State}, segment{text: v.Version}))
	fmt.Println(v.Models[0].Model, v.Models[0].Classes)
	// Output:
	// hall  online  v1.2.3
	// bearing [ok worn]
}
