package exit_test

import (
	"errors"
	"fmt"

	"edge/internal/exit"
)

// The innermost code wins: a command may give all its errors a code of its own.
func ExampleWith() {
	err := exit.With(exit.Config, errors.New("edge.yaml: no streams"))
	err = exit.With(exit.Runtime, fmt.Errorf("run: %w", err))
	var coded *exit.Error
	if errors.As(err, &coded) {
		fmt.Println(err, coded.Code)
	}
	// Output: run: edge.yaml: no streams 3
}
