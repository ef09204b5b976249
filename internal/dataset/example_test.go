package dataset_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"edge/internal/dataset"
)

// Separator, decimal comma, header and missing value are detected.
func ExampleOpenInput() {
	text := "time;temp;state\n1;20,5;ok\n2;;worn\n"
	d, err := dataset.OpenInput("-", strings.NewReader(text), dataset.Format{Ignore: []string{"time"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	fmt.Println(d.Features)
	for row := (dataset.Row{}); ; {
		if err := d.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(row.Number, row.X, row.Label)
	}
	// Output:
	// [temp]
	// 1 [20.5] ok
	// 2 [NaN] worn
}

func ExampleNewWaveform() {
	w := dataset.NewWaveform(1)
	var row dataset.Row
	for range 3 {
		w.Next(&row)
		fmt.Printf("%d x1 %.2f class %s\n", row.Number, row.X[0], row.Label)
	}
	// Output:
	// 1 x1 -0.50 class 1
	// 2 x1 0.86 class 0
	// 3 x1 -0.42 class 2
}
