// Command below fails unless the number at KEY in a JSON object is below LIMIT:
//
//	below KEY LIMIT FILE
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

func main() {
	if err := check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "below:", err)
		os.Exit(1)
	}
}

func check(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want KEY LIMIT FILE, got %q", args)
	}
	limit, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("%s: %w", args[2], err)
	}
	value, ok := object[args[0]].(float64)
	if !ok || !(value < limit) {
		return fmt.Errorf("%s: %s is %v, want a number below %g", args[2], args[0], object[args[0]], limit)
	}
	fmt.Printf("%s %g is below %g\n", args[0], value, limit)
	return nil
}
