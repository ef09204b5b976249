package terminal_test

import (
	"fmt"
	"os"
	"time"

	"edge/internal/terminal"
)

// A received name cannot change the colour of the terminal.
func ExampleWriter() {
	fmt.Fprintln(terminal.Writer{To: os.Stdout}, "class", "\x1b[31mred")
	// Output: class \u001b[31mred
}

func ExamplePrintJSON() {
	terminal.PrintJSON(os.Stdout, map[string]any{"class": "<idle>", "p": 0.9})
	// Output: {"class":"<idle>","p":0.9}
}

func ExampleSparkline() {
	fmt.Println(terminal.Sparkline([]float64{8, 4, 2, 1}, 4), terminal.Bytes(3<<20), terminal.Duration(100*time.Second))
	// Output: █▅▃▂ 3.0 MiB 1m 40s
}
