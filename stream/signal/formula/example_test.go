package formula_test

import (
	"fmt"

	"edge/stream/signal/formula"
)

func ExampleCompile() {
	p, err := formula.Compile([]formula.Definition{
		{Name: "factor", Text: "power / (voltage * current)"},
		{Name: "rise", Text: "rate(power)"},
	}, []string{"power", "voltage", "current"}, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := p.NewMemory()
	fmt.Println(p.Names())
	fmt.Println(p.Append(nil, m, &formula.Row{Time: 0, X: []float64{460, 230, 2.5}}))
	fmt.Println(p.Append(nil, m, &formula.Row{Time: 2e9, X: []float64{690, 230, 4}}))
	// Output:
	// [factor rise]
	// [0.8 NaN]
	// [0.75 115]
}
